"""Hoists loop-invariant nodes (LICM) out of the bodies of Loop and Scan."""

from __future__ import annotations

from collections.abc import Callable

from onnx import NodeProto

from ..facts.facts import ResultFacts
from ..graph.graph import Graph
from ..inference.graph_inference import infer_record
from ..inference.node_inference import refine_results
from ..nested.bodies import children_of, write_back
from ..nodes.copies import copy_node
from ..nodes.determinism import is_deterministic
from ..nodes.record import NodeRecord
from .speculatable import is_speculatable

#: domains whose operators have no state
_KNOWN_DOMAINS = frozenset({"", "ai.onnx.ml", "com.microsoft"})


def move_invariants(
    graph: Graph, record: NodeRecord, fresh: Callable[[str], str], runs: bool
) -> int:
    """Hoists the loop-invariant nodes of a body, which only read outer results, before the loop.

    1. if the loop runs at least once, any of them;
    2. if it may run zero times, those that are speculatable, see :mod:`.is_speculatable`.

    The initializers and the Constant nodes they read follow them. Random nodes, nodes that own a
    graph and results of the body are not hoisted.

    :param graph: the graph that contains the loop
    :param record: Loop or Scan
    :param fresh: gives a name, free in every graph, to a hoisted result
    :param runs: the loop is known to run at least once
    :return: number of hoisted nodes
    """
    child = children_of(graph, record).get("body")
    if child is None:
        return 0
    mover = _Mover(graph, child, fresh, runs)
    count = sum(mover.move(inner) for inner in list(child.store.nodes))
    if count:
        write_back(graph, record, before=mover.moved)
    return count


class _Mover:
    """Hoists nodes of a body one by one, in order, each with the facts of those hoisted before."""

    def __init__(self, graph: Graph, child: Graph, fresh: Callable[[str], str], runs: bool):
        self.outer, self.child, self.fresh, self.runs = graph, child, fresh, runs
        self.moved: list[NodeProto] = []
        self._casts: set[str] = set()

    def move(self, inner: NodeRecord) -> bool:
        """Hoists a node if it may be hoisted. Returns whether it was."""
        if not self._is_invariant(inner):
            return False
        for name in dict.fromkeys(inner.inputs):
            if self._is_given(name):
                self._lift_initializer(name)
            elif name in self.child.store.producers:
                self._take(self.child.store.producers[name])
        self._take(inner)
        return True

    def _is_invariant(self, inner: NodeRecord) -> bool:
        child = self.child
        if inner.captured or inner.domain not in _KNOWN_DOMAINS or child.calls_function(inner):
            return False
        stay = (*child.store.outputs, *child.store.pinned)
        if any(o in stay for o in inner.outputs) or not any(map(self._is_outer, inner.inputs)):
            return False
        if any(i and not self._is_outer(i) and not self._may_follow(i) for i in inner.inputs):
            return False
        node = child.store.proto(inner)
        if not is_deterministic(node, inner.op_type, inner.domain, child.main_opset):
            return False
        if any(a.ref_attr_name for a in node.attribute) or self._is_second_cast(inner):
            return False
        return self.runs or is_speculatable(inner, node, self._facts, child)

    def _is_second_cast(self, inner: NodeRecord) -> bool:
        """Whether a Cast would read a Cast of the outer graph.

        onnxruntime removes such a pair even if a subgraph reads its result, and then fails with
        "Missing Input".
        """
        if inner.op_type != "Cast":
            return False
        producer = self.outer.store.producers.get(inner.inputs[0])
        return inner.inputs[0] in self._casts or (
            producer is not None and producer.op_type == "Cast"
        )

    def _is_given(self, name: str) -> bool:
        return bool(name) and self.child.is_given(name)

    def _is_outer(self, name: str) -> bool:
        return bool(name) and name not in self.child.store.producers and not self._is_given(name)

    def _may_follow(self, name: str) -> bool:
        """Whether a result is a constant of the body that may be hoisted with its reader."""
        child = self.child
        if name in child.store.outputs or name in child.store.pinned:
            return False
        if self._is_given(name):
            return name in child.constants.initializers and name not in child.constants.overridable
        record = child.store.producers[name]
        return record.key == ("", "Constant") and not any(
            a.ref_attr_name for a in child.store.proto(record).attribute
        )

    def _facts(self, name: str) -> ResultFacts:
        """Facts that hold even if the body never runs: those of the outer graph, and constants."""
        return (self.outer if self._is_outer(name) else self.child).facts[name]

    def _lift_initializer(self, name: str) -> None:
        child, new = self.child, self.fresh(name)
        value = child.constants.initializers[name]
        child.constants.remove_initializer(name)
        if new != name:
            child.store.redirect(name, new)
        self.outer.names.reserve(new)
        self.outer.constants.add_initializer(new, value)

    def _take(self, inner: NodeRecord) -> None:
        child, graph = self.child, self.outer
        for name in inner.outputs:
            new = self.fresh(name) if name else name
            if new != name:
                child.store.rename_result(name, new)
        proto = child.store.proto(inner)
        child.store.detach(inner)
        if proto.name:
            # onnxruntime refuses two nodes of one name in a graph, not in two
            proto = copy_node(proto)
            proto.name = graph.unique_node_name(proto.name)
        self.moved.append(proto)
        if inner.op_type == "Cast":
            self._casts.update(inner.outputs)
        # the next checks need these facts before the node is in the outer graph
        outer = NodeRecord(proto, 0, 0)
        refine_results(graph, outer, infer_record(graph, outer))
