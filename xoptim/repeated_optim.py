"""Finds repeated parts of a model: layers of a transformer, blocks of a convolution network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from xbuilder import GraphBuilder
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.support.argument_types import check_type

Key = tuple[str, str]

#: signature of a node: domain, type, numbers of inputs and outputs, attributes
Signature = tuple[str, str, int, int, tuple[bytes, ...]]
#: an edge: an input of a node, or an output with the signature of a reader and its input index
Edge = tuple[int, tuple[Signature, int] | None]

#: largest number of operator types tried as the first node of a repeated part, the rarest first
_SEEDS = 12


def node_type_frequency(
    onx: ModelProto | GraphProto | FunctionProto, min_freq: int = 2
) -> dict[Key, int]:
    """Counts the nodes of each type in the main graph.

    :param onx: model, graph or function
    :param min_freq: types met less often are left out
    :return: `{(domain, op_type): count}`, the most frequent first
    """
    check_type("onx", onx, (ModelProto, GraphProto, FunctionProto))
    check_type("min_freq", min_freq, int)
    nodes = onx.graph.node if isinstance(onx, ModelProto) else onx.node
    counts = Counter((n.domain, n.op_type) for n in nodes)
    return {k: v for k, v in counts.most_common() if v >= min_freq}


@dataclass
class RepeatedPattern:
    """A part of a graph found several times.

    :param instances: nodes of each instance; the nodes at one position play the same role

    Example::

        >>> from xoptim.testing import model_from_text
        >>> body = "a = Abs(x)  b = Exp(a)  c = Abs(b)  y = Exp(c)"
        >>> found = find_largest_repeated_pattern(
        ...     model_from_text(f"agraph (float[n] x) => (float[n] y) {{ {body} }}"))
        >>> found.n_instances, found.n_nodes
        (2, 2)
    """

    instances: list[list[NodeProto]] = field(default_factory=list)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of one instance."""
        return len(self.instances[0]) if self.instances else 0

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.instances)


def _signature(store: GraphStore, record: NodeRecord) -> Signature:
    attributes = sorted(
        a.SerializeToString(deterministic=True) for a in store.proto(record).attribute
    )
    return record.domain, record.op_type, len(record.inputs), len(record.outputs), tuple(attributes)


class _Growth:
    """Instances that grow together, one node each at a time; no node belongs to two instances."""

    def __init__(
        self,
        store: GraphStore,
        seeds: list[NodeRecord],
        signatures: dict[NodeRecord, Signature],
    ):
        self.store = store
        self.signatures = signatures
        self.instances = [[r] for r in seeds]
        self.taken = set(seeds)

    def grow(self) -> None:
        """Adds nodes until no edge leads to the same node in every instance."""
        position = 0
        while position < len(self.instances[0]):
            for edge in self._edges(self.instances[0][position]):
                while self._extend(position, edge):
                    pass
            position += 1

    def _edges(self, record: NodeRecord) -> Iterator[Edge]:
        for i in range(len(record.inputs)):
            yield i, None
        for i, name in enumerate(record.outputs):
            for reader in self.store.readers(name):
                for j, read in enumerate(reader.inputs):
                    if read == name:
                        yield i, (self.signatures[reader], j)

    def _candidates(self, record: NodeRecord, edge: Edge) -> list[NodeRecord]:
        i, target = edge
        if target is None:
            name = record.inputs[i] if i < len(record.inputs) else ""
            producer = self.store.producers.get(name)
            return [] if producer is None else [producer]
        if i >= len(record.outputs):
            return []
        name = record.outputs[i]
        readers = sorted(self.store.readers(name), key=lambda r: r.order)
        signature, j = target
        return [r for r in readers if self.signatures[r] == signature and r.inputs[j] == name]

    def _extend(self, position: int, edge: Edge) -> bool:
        chosen: list[NodeRecord] = []
        for instance in self.instances:
            free = [
                r
                for r in self._candidates(instance[position], edge)
                if r not in self.taken and r not in chosen
            ]
            if not free:
                return False
            chosen.append(free[0])
        if len({self.signatures[r] for r in chosen}) != 1:
            return False
        for instance, record in zip(self.instances, chosen, strict=True):
            instance.append(record)
        self.taken.update(chosen)
        return True


def find_largest_repeated_pattern(
    onx: ModelProto, min_freq: int = 2, max_seeds: int = _SEEDS
) -> RepeatedPattern | None:
    """Finds the largest connected part of the main graph that occurs several times.

    Every instance has the same operators, attributes and edges; weights differ. The instances of
    one node type grow together along edges they all have. Cost: O(seeds x edges).

    :param onx: the model
    :param min_freq: smallest number of instances
    :param max_seeds: number of node types tried as a first node, the rarest first
    :return: the part with the most nodes, None if no part of two nodes is repeated

    ::

        found = find_largest_repeated_pattern(model)
        print(found.n_instances, "instances of", found.n_nodes, "nodes")
    """
    builder = GraphBuilder(onx)
    store = builder.store
    signatures = {r: _signature(store, r) for r in store.nodes}
    groups: dict[Signature, list[NodeRecord]] = {}
    for record, signature in signatures.items():
        groups.setdefault(signature, []).append(record)
    seeds = sorted((g for g in groups.values() if len(g) >= max(min_freq, 2)), key=len)
    best: list[list[NodeRecord]] | None = None
    for group in seeds[:max_seeds]:
        growth = _Growth(store, group, signatures)
        growth.grow()
        if best is None or len(growth.instances[0]) > len(best[0]):
            best = growth.instances
    if best is None or len(best[0]) < 2:
        return None
    rows = [[store.proto(r) for r in sorted(i, key=lambda r: r.order)] for i in best]
    return RepeatedPattern(rows)
