"""End of an iteration: propagates new constants and removes nodes that became dead."""

from __future__ import annotations

from collections.abc import Sequence

from xbuilder.inference.refresh import note_constant_readers
from xbuilder.passes.duplicates import remove_duplicated_shape
from xbuilder.passes.identity import remove_identity_node

from .outcomes import Application
from .redirection import Redirections
from .state import EngineState


def clean(state: EngineState, applications: Sequence[Application]) -> int:
    """Removes dead nodes, identities and duplicated shapes after applications; redirects readers.

    Cost: O(edges of the nodes that were removed, added, or became constant).

    :param state: the engine
    :param applications: the applications of an iteration
    :return: number of nodes removed, except those of the applications, which are counted already
    """
    before = len(state.store)
    note_constant_readers(state.graph, (r for a in applications for r in a.added))
    redirections = Redirections(state)
    for application in applications:
        if application.redirected is not None:
            before -= redirections.redirect(*application.redirected, application.removed)
        if application.added and state.remove_identity:
            _remove_identities(state, application)
        if state.remove_unused:
            _remove_dead(state, application)
    _note_redirected(state, applications)
    shapes = any(r.op_type == "Shape" for a in applications for r in a.added)
    if shapes and state.remove_duplicated_shape:
        remove_duplicated_shape(state.graph)
    return before - len(state.store)


def _note_redirected(state: EngineState, applications: Sequence[Application]) -> None:
    """Notes the readers of redirected results, whose source may have become a constant."""
    producers = state.store.producers
    sources = (a.redirected[1] for a in applications if a.redirected is not None)
    note_constant_readers(state.graph, (producers[name] for name in sources if name in producers))


def _remove_identities(state: EngineState, application: Application) -> None:
    for r in application.added:
        if r.alive and r.op_type == "Identity" and not r.domain:
            remove_identity_node(state.graph, r)


def _remove_dead(state: EngineState, application: Application) -> None:
    store, pinned = state.store, state.store.pinned
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
