"""Checks the invariants of a graph: no table holds the name of a result that was removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..errors import PatternError
from ..store.live_names import LiveNames
from .graph import Graph


def check_graph(graph: Graph) -> None:
    """Checks the store of a graph, and that every table holds live names only. Cost: O(N log N).

    :param graph: a graph or a body; the bodies nested in it are not visited
    :raises PatternError: an invariant does not hold, a table holds a result that was removed
    """
    store, facts, constants = graph.store, graph.facts, graph.constants
    store.check()
    initializers, results = constants.initializers.keys(), store.producers.keys()
    given = {*graph.input_names, *initializers}
    given.update(s.values.name for s in graph.sparse_initializers)
    live = given | results
    for what, names, allowed in (
        ("the facts", facts, live),
        ("the origins of facts", facts.origins, facts.keys()),
        ("the devices", facts.devices, live),
        ("the nodes to keep", store.pinned, results),
        *((f"the {type(n).__name__}", n, results) for n in graph.notes if isinstance(n, LiveNames)),
        ("the values of constants", constants.cached_names, live),
        ("the shared initializers", constants.shared_names, initializers),
        ("the default values", constants.overridable, initializers),
        ("the sources of initializers", constants.sources, initializers),
        ("the external initializers", constants.external_names, initializers),
        ("the parameters", constants.parameter_names, initializers),
        ("the constants made of others", constants.derived, initializers),
    ):
        _check_names(what, names, allowed)
    stale = [n for n, r in constants.computed.items() if store.producers.get(n) is not r]
    _check_names("the computed constants", stale, ())


def _check_names(what: str, names: Iterable[str], live: Collection[str]) -> None:
    stale = sorted(name for name in names if name not in live)
    if stale:
        raise PatternError(
            f"Something is left in {what} of names that are not in the graph any more: "
            f"{stale[:10]}; what takes a node or an initializer away must do it through the store "
            "or the table of constants."
        )
