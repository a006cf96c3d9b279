"""The base of composite rewriters, with their inner rewriters and their policy for failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..authoring.rewriters import Member
from ..catalogue.selection import get_pattern_list
from ..engine.engine import Engine
from ..engine.failures import OnFailure, failure_callback
from .rewriters import GraphRewriter


class CompositeRewriter(GraphRewriter):
    """A rewriter made of other rewriters.

    :param rewriters: rewriters of graphs, of nodes, patterns, names of patterns and of sets
    :param name: its name
    :param on_failure: policy for a rewrite that fails: `"raise"`, `"warn"`, `"ignore"`, or a
        function of the error and of the rewrite; by default, the policy of the run it is part of
    """

    def __init__(
        self,
        rewriters: Sequence[Any],
        name: str = "",
        on_failure: str | OnFailure | None = None,
    ):
        self.rewriters: list[Member] = [m for r in rewriters for m in get_pattern_list([r])]
        self.name = name or type(self).__name__
        self._on_failure = None if on_failure is None else failure_callback(on_failure)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(r.name for r in self.rewriters)})"

    @contextmanager
    def failing(self, engine: Engine) -> Iterator[None]:
        """Sets the policy for failures in this context."""
        previous = engine.on_failure
        engine.on_failure = self._on_failure or previous
        try:
            yield
        finally:
            engine.on_failure = previous
