"""What a store keeps of a node."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from .node_protos import main_domain, may_own_graph, node_captures

Key = tuple[str, str]


class NodeRecord:
    """What the store keeps of a node, so that no protobuf field is read twice.

    `proto` is the node as it is now: it is copied when an edge was renamed, never changed in place.
    `order` sorts nodes, `gap` is the free room after it. `inputs` holds empty strings for missing
    optional inputs, `captured` the names read by the subgraphs.
    """

    __slots__ = (
        "_proto",
        "alive",
        "captured",
        "children",
        "domain",
        "gap",
        "generation",
        "inputs",
        "op_type",
        "order",
        "outputs",
        "stale",
    )

    def __init__(self, proto: NodeProto, order: int, gap: int):
        self._proto = proto
        self.op_type = proto.op_type
        self.domain = main_domain(proto.domain)
        self.inputs = tuple(proto.input)
        self.outputs = tuple(proto.output)
        owner = may_own_graph(self.op_type, self.domain)
        self.captured = node_captures(proto) if owner else ()
        self.order = order
        self.gap = gap
        self.alive = True
        self.stale = False
        self.generation = 0
        self.children: object | None = None

    @property
    def key(self) -> Key:
        """Key of its bucket."""
        return self.domain, self.op_type

    def reads(self) -> Iterable[str]:
        """Every name the node reads, captured ones included, empty ones left out."""
        for name in self.inputs:
            if name:
                yield name
        yield from self.captured

    def __repr__(self) -> str:
        return f"{self.op_type}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}"
