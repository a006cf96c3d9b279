"""Decides conditions of If that have one value in all the runs that do not fail."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set

from ..graph.graph import Graph
from ..inference.required_ranks import must_fail, needed_nodes, required_rank
from ..nested.bodies import children_of
from ..nodes.canonical_attributes import canonical_attributes
from ..nodes.record import NodeRecord
from ..operators.op_traits import RANDOM

_BRANCHES = {1: "then_branch", 0: "else_branch"}
#: nodes above a condition that are read to compare it with another one
_MAX_NODES = 16
#: elements of a constant whose content is compared
_MAX_ELEMENTS = 8


class DecidedConditions:
    """The conditions of the If of a graph that are decided by the ranks of their branches.

    Suppose that a node that always runs requires another rank than the one a branch gives, or that
    a node of the branch requires another rank than the one it reads. Then the run fails if the
    branch is taken, and some runtimes refuse the model once they know the rank. The condition has
    the other value in all the runs that do not fail, for every If of the graph with the same
    condition: the same nodes above it, which read the same results.

    Invariant: an If is visited once; the cost is O(edges) if there is one, else nothing.

    :param graph: the graph
    :param records: its If, maybe other nodes
    """

    def __init__(self, graph: Graph, records: Iterable[NodeRecord]):
        self.graph = graph
        self._pending = [r for r in records if r.op_type == "If" and not r.domain]
        self._known: dict[Hashable, int] = {}

    def condition(self, record: NodeRecord) -> int | None:
        """The condition of an If, None if nothing decides it.

        :param record: an If of the graph
        """
        pending, self._pending = [r for r in self._pending if r.alive], []
        needed = needed_nodes(self.graph) if pending else set()
        for other in pending:
            value = self._decided_by(other, needed)
            if value is not None:
                self._known[self._key(other)] = value
        return self._known.get(self._key(record)) if self._known else None

    def _decided_by(self, record: NodeRecord, needed: Set[NodeRecord]) -> int | None:
        """The only condition whose branch runs and gives the required ranks, else None."""
        children = children_of(self.graph, record)
        if set(children) != set(_BRANCHES.values()):
            return None
        required = [required_rank(self.graph, o, needed) if o else None for o in record.outputs]
        possible = []
        for value, name in _BRANCHES.items():
            body = children[name]
            ranks = [body.facts[spec.name].known_rank() for spec in body.output_specs]
            pairs = zip(required, ranks, strict=False)
            if any(d is not None and r not in (None, d) for d, r in pairs):
                continue
            if not any(must_fail(body, r) for r in needed_nodes(body)):
                possible.append(value)
        return possible[0] if len(possible) == 1 else None

    def _key(self, record: NodeRecord) -> Hashable:
        """The key equal conditions have in common."""
        return self._expression(record.inputs[0], [_MAX_NODES])

    def _expression(self, name: str, left: list[int]) -> Hashable:
        """The expression that computes a result, cut at names beyond some nodes.

        :param name: the result
        :param left: number of nodes that may still be read
        """
        graph = self.graph
        constants, record = graph.constants, graph.store.producers.get(name)
        if name and constants.is_constant(name):
            facts = graph.facts[name]
            dims = facts.shape
            if dims is not None and len(dims) < 2 and all(d in range(_MAX_ELEMENTS) for d in dims):
                value = constants.value(name)
                if value is not None and value.dtype.kind in "bif":
                    return facts.type, dims, value.tobytes()
        known = record is not None and not (record.domain or record.captured)
        if record is None or not known or record.op_type in RANDOM or not left[0]:
            return name
        left[0] -= 1
        index = record.outputs.index(name)
        attributes = canonical_attributes(graph.store.proto(record), graph.main_opset)
        inputs = tuple(self._expression(i, left) for i in record.inputs)
        return record.key, index, attributes, inputs
