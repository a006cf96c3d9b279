"""Rewrites that make a graph larger without end: the graph is put back as it was."""

from __future__ import annotations

from collections.abc import Callable, Collection

from xbuilder.errors import PatternError
from xbuilder.graph.snapshot import Snapshot
from xbuilder.support.rows import Row

from .engine import Engine


class EndlessError(PatternError):
    """Rewrites make the graph larger without an end.

    :param message: the message
    :param names: names of the rewrites
    """

    def __init__(self, message: str, names: Collection[str]):
        super().__init__(message)
        self.names = frozenset(names)


def undo_if_endless(
    engine: Engine, run: Callable[[], None], again: Callable[[Collection[str]], list[Row]]
) -> list[Row]:
    """Runs an optimization. If it does not end, restores the graph, reports the rewrites that
    failed to end, then runs the others if the policy for failures goes on.

    :param engine: the engine
    :param run: the optimization
    :param again: the same one without some rewrites, by name; it returns its statistics
    :return: what *again* returns, nothing if the optimization ends
    :raises EndlessError: it does not end, and the policy is to raise
    """
    snapshot = Snapshot(engine.graph)
    try:
        run()
    except EndlessError as e:
        snapshot.restore()
        for pattern in [p for p in engine.patterns if p.name in e.names]:
            engine.on_failure(e, pattern)
        return again(e.names)
    return []
