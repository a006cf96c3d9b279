"""End of an iteration: propagates new constants and removes nodes that became dead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xbuilder.graph.graph import Graph
from xbuilder.inference.refresh import note_constant_readers
from xbuilder.passes.duplicates import remove_duplicated_shape
from xbuilder.passes.identity import remove_identity, remove_identity_node
from xbuilder.passes.unused import remove_unused
from xbuilder.store.graph_store import GraphStore

from .outcomes import Application
from .redirection import Redirections


class Cleaning(NamedTuple):
    """Simplifications the engine makes by itself around the rewrites.

    :param identity: Identity nodes are removed
    :param unused: dead nodes are removed
    :param duplicated_shape: equal Shape nodes are merged
    """

    identity: bool = True
    unused: bool = True
    duplicated_shape: bool = True

    def before(self, graph: Graph) -> None:
        """Cleans the whole graph before the rewrites."""
        if self.identity:
            remove_identity(graph)
        if self.unused:
            remove_unused(graph)
        if self.duplicated_shape:
            remove_duplicated_shape(graph)

    def after_rewriter(self, graph: Graph) -> None:
        """Cleans the whole graph after a rewriter of graphs changed it."""
        if self.identity:
            remove_identity(graph)
        if self.unused:
            remove_unused(graph)
        graph.store.compact()

    def after(self, graph: Graph, applications: Sequence[Application]) -> int:
        """Removes dead nodes, identities and duplicated shapes after applications; redirects
        readers.

        Cost: O(edges of the nodes that were removed, added, or became constant).

        :param graph: the graph
        :param applications: the applications of an iteration
        :return: number of nodes removed, except those of the applications, which are counted
            already
        """
        before = len(graph.store)
        note_constant_readers(graph, (r for a in applications for r in a.added))
        redirections = Redirections(graph)
        for application in applications:
            if application.redirected is not None:
                before -= redirections.redirect(*application.redirected, application.removed)
            if application.added and self.identity:
                _remove_identities(graph, application)
            if self.unused:
                _remove_dead(graph.store, application)
        _note_redirected(graph, applications)
        shapes = any(r.op_type == "Shape" for a in applications for r in a.added)
        if shapes and self.duplicated_shape:
            remove_duplicated_shape(graph)
        return before - len(graph.store)


def _note_redirected(graph: Graph, applications: Sequence[Application]) -> None:
    """Notes the readers of redirected results, whose source may have become a constant."""
    producers = graph.store.producers
    sources = (a.redirected[1] for a in applications if a.redirected is not None)
    note_constant_readers(graph, (producers[name] for name in sources if name in producers))


def _remove_identities(graph: Graph, application: Application) -> None:
    for r in application.added:
        if r.alive and r.op_type == "Identity" and not r.domain:
            remove_identity_node(graph, r)


def _remove_dead(store: GraphStore, application: Application) -> None:
    pinned = store.pinned
    producers, consumers, outputs = store.producers, store.consumers, store.outputs
    stack: list[str] = []
    for r in application.removed:
        for name in r.inputs if not r.captured else r.reads():
            if name not in consumers and name in producers:
                stack.append(name)
    for r in application.added:
        for name in r.outputs:
            if name not in consumers:
                stack.append(name)
    while stack:
        name = stack.pop()
        record = None if name in consumers else producers.get(name)
        if record is None:
            continue
        for name in record.outputs:
            if name in consumers or name in outputs or name in pinned:
                break
        else:
            store.detach(record)
            stack.extend(record.reads())
