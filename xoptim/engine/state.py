"""What the parts of the engine share while they work on one graph."""

from __future__ import annotations

from ..api.patterns import PatternOptimization
from ..api.queries import GraphQueries
from .outcomes import RefusalKey


class EngineState(GraphQueries):
    """The graph, the patterns and what was decided so far; the loop is in :mod:`.optimizer`."""

    patterns: list[PatternOptimization]
    #: matches that are not tried again
    refused: set[RefusalKey]
    #: calls of `match` that are still watched, by pattern
    calls_to_watch: dict[PatternOptimization, int]
    verifies: bool
    remove_identity: bool
    remove_unused: bool
    remove_duplicated_shape: bool
