"""Runs rewriters of any kind together until a fixed point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..authoring.patterns import PatternOptimization
from ..engine.failures import OnFailure
from ..engine.optimizer import GraphBuilderPatternOptimization
from .composite import CompositeRewriter
from .rewriters import EditableGraph
from .walking import as_graph_rewriter


class EquilibriumGraphRewriter(CompositeRewriter):
    """Runs rewriters of any kind until a fixed point, with the engine of the patterns.

    Rewriters of whole graphs, walking ones included, run first; then the node rewriters and the
    patterns, all together, until none matches; then the final rewriters; again until nothing
    changes. An oscillation is detected and its cause is named.

    :param rewriters: see :class:`CompositeRewriter`
    :param max_use_ratio: stops when one rewriter was applied more than this number of times the
        number of nodes at the beginning
    :param final_rewriters: run when the others change nothing any more
    :param cleanup_rewriters: run after each change: after a rewriter of graphs, after an iteration
        of the others
    :param name: its name
    :param on_failure: see :class:`CompositeRewriter`

    ::

        EquilibriumGraphRewriter(["default", simplify], max_use_ratio=10).rewrite(builder)
    """

    def __init__(
        self,
        rewriters: Sequence[Any],
        max_use_ratio: float | None = None,
        final_rewriters: Sequence[Any] = (),
        cleanup_rewriters: Sequence[Any] = (),
        name: str = "",
        on_failure: str | OnFailure | None = None,
    ):
        super().__init__(rewriters, name, on_failure)
        self.max_use_ratio = max_use_ratio
        self.final = [as_graph_rewriter(r) for r in CompositeRewriter(final_rewriters).rewriters]
        #: rewriters of whole graphs, which search their nodes themselves
        self.follows_changes = not self.final and all(
            isinstance(r, PatternOptimization) for r in self.rewriters
        )
        self.cleanup = [
            as_graph_rewriter(r) for r in CompositeRewriter(cleanup_rewriters).rewriters
        ]

    def apply(self, graph: EditableGraph) -> None:
        """Runs the rewriters."""
        outer = graph.engine
        inner = GraphBuilderPatternOptimization(
            graph.graph,
            self.rewriters,
            verifies=outer.verifies,
            processor=outer.processor,
            on_failure=self._on_failure or outer.on_failure,
            final=self.final,
            cleanup=self.cleanup,
            max_use_ratio=self.max_use_ratio,
        )
        with graph.runner.by_engine():
            graph.runner.note(inner.run_within(outer, graph.events))
