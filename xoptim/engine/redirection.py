"""Redirects the readers of a result to an equal one, without an Identity in between."""

from __future__ import annotations

from collections.abc import Sequence

from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.passes.identity import complete_facts


def can_redirect(graph: Graph, result: str, source: str) -> bool:
    """Whether the readers of a result can read another one directly. That one must come before
    and have the same facts.

    :param graph: the graph
    :param result: the result they read
    :param source: the result they would read instead
    """
    store = graph.store
    return (
        result not in store.outputs
        and result not in store.pinned
        and is_same(graph, result, source)
        and _comes_before(graph, source, result)
        and store.can_redirect(result, source)
    )


def is_same(graph: Graph, result: str, source: str) -> bool:
    """Whether two results have the same known type and shape.

    The copy of a constant becomes a constant for the next applications, so it is always inferred.
    """
    a, b = graph.facts[result], graph.facts[source]
    same = a.shape is not None and a.type == b.type and a.shape == b.shape
    is_constant = graph.constants.is_constant
    return same and (not is_constant(source) or is_constant(result))


def _comes_before(graph: Graph, source: str, result: str) -> bool:
    producers = graph.store.producers
    before, after = producers.get(source), producers.get(result)
    if before is None:
        return graph.has_name(source)
    return after is not None and before.order < after.order


class Redirections:
    """Redirects readers at the end of an iteration, in the order of the applications."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._done: dict[str, str] = {}

    def redirect(self, result: str, source: str, removed: Sequence[NodeRecord]) -> int:
        """Performs :attr:`Application.redirected`, unless a later application of the same iteration
        changed the neighbours. The next iteration sees the match again in that case.

        :param result: the result they read
        :param source: the result they read instead
        :param removed: the nodes of the match
        :return: number of nodes removed
        """
        while source in self._done:
            source = self._done[source]
        store = self.graph.store
        record = store.producers.get(result)
        moves = _comes_before(self.graph, source, result) and store.can_redirect(result, source)
        if record is None or not moves:
            return 0
        complete_facts(self.graph, result, source)
        alone = len(removed) == 1 and removed[0] is record
        gone = removed if alone else self._gone(record, removed)
        store.redirect(result, source, gone)
        self._done[result] = source
        return len(gone)

    def _gone(self, record: NodeRecord, removed: Sequence[NodeRecord]) -> list[NodeRecord]:
        """The producer of a result nobody reads any more, and the nodes of a match that only it
        needs."""
        store = self.graph.store
        gone = [record]
        for other in reversed(removed):
            if other is record or not other.alive:
                continue
            for name in other.outputs:
                readers = store.readers(name)
                if name in store.outputs or any(r not in gone for r in readers):
                    break
            else:
                gone.append(other)
        return gone
