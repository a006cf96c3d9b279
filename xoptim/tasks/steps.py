"""The steps of an optimization, reported as they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xbuilder.graph.graph import Graph

from ..engine.engine import Engine
from ..engine.observers import Observer

#: receives the current step and the share that is done, None if it is not known
OnStep: TypeAlias = Callable[[str, float | None], None]


class Steps(Observer):
    """Tells the current pass, and the iteration of the patterns.

    :param on_step: receives them
    """

    def __init__(self, on_step: OnStep):
        self.on_step = on_step

    def on_pass(self, graph: Graph, name: str) -> None:
        """Tells the pass."""
        self.on_step(f"{name.replace('_', ' ')}, {len(graph.store)} nodes", None)

    def iteration(self, engine: Engine, i: int, priority: int) -> None:
        """Tells the iteration."""
        self.on_step(f"patterns, iteration {i}, {len(engine.store)} nodes", None)
