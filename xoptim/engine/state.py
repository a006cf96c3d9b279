"""The state that the parts of the engine share while they work on one graph."""

from __future__ import annotations

from typing import Any

from xbuilder.errors import PatternError

from ..authoring.patterns import PatternOptimization
from ..authoring.rewriters import Member
from ..authoring.seed_queries import SeedQueries
from .failures import OnFailure
from .guards.mutation_guard import NodeGuard
from .outcomes import RefusalKey


class EngineState(SeedQueries):
    """The graph, the patterns and past decisions; the loop is in :mod:`.optimizer`."""

    patterns: list[PatternOptimization]
    #: matches that are not tried again
    refused: set[RefusalKey]
    #: whether the nodes a pattern writes or receives are checked
    checks: bool
    #: the nodes given to patterns, with their content
    guard: NodeGuard
    verifies: bool
    remove_identity: bool
    remove_unused: bool
    remove_duplicated_shape: bool
    #: number of rewrites that may still be applied, -1 if there is no limit
    left: int
    on_failure: OnFailure

    def tell(self, event: str, *args: Any) -> None:
        """Notifies the observers, see :class:`xoptim.engine.observers.Observer`."""
        raise NotImplementedError

    def fail(self, member: Member, message: str, cause: Exception | None = None) -> None:
        """Reports a failing rewrite: raises, or goes on without it.

        :param member: the rewrite
        :param message: message of the error
        :param cause: the error it comes from
        """
        error = PatternError(message)
        error.__cause__ = cause
        self.on_failure(error, member)
