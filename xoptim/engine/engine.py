"""The engine as its parts see it: matching, applying, cleaning, observers."""

from __future__ import annotations

from typing import Any

from xbuilder.errors import PatternError
from xbuilder.support.deferred_list import DeferredList

from ..authoring.patterns import PatternOptimization
from ..authoring.rewriters import Member
from ..authoring.seed_queries import EngineQueries
from .cleaning import Cleaning
from .failures import OnFailure
from .guards.mutation_guard import MutationGuard
from .outcomes import RefusalKey


class Engine(EngineQueries):
    """The interface of the optimizer that the parts of the engine use: the graph and its queries,
    the patterns, past decisions; the loop is in :mod:`.optimizer`."""

    patterns: DeferredList[PatternOptimization]
    #: matches that are not tried again
    refused: set[RefusalKey]
    #: whether the nodes a pattern writes or receives are checked
    checks: bool
    #: the nodes given to patterns, with their content
    guard: MutationGuard
    verifies: bool
    #: what the engine simplifies by itself
    cleaning: Cleaning
    #: number of rewrites that may still be applied, -1 if there is no limit
    left: int
    on_failure: OnFailure

    def notify(self, event: str, *args: Any) -> None:
        """Notifies the observers, see :class:`xoptim.engine.observers.Observer`."""
        raise NotImplementedError

    def fail(self, rewrite: Member, message: str, cause: Exception | None = None) -> None:
        """Reports a rewrite that fails: raises an error, or continues without it.

        :param rewrite: the rewrite
        :param message: message of the error
        :param cause: the error it comes from
        """
        error = PatternError(message)
        error.__cause__ = cause
        self.on_failure(error, rewrite)
