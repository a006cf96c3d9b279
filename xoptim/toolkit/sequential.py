"""Runs rewriters one after the other."""

from __future__ import annotations

from typing import Any

from ..engine.failures import OnFailure
from .composite import CompositeRewriter
from .rewriters import EditableGraph
from .walking import as_graph_rewriter


class SequentialGraphRewriter(CompositeRewriter):
    """Runs rewriters once each, in the order they are given.

    A pattern or a node rewriter walks through the graph once, from the inputs to the outputs. One
    that fails does not keep the next ones from running, unless the failure is raised.

    :param rewriters: see :class:`CompositeRewriter`
    :param name: its name
    :param on_failure: see :class:`CompositeRewriter`

    ::

        SequentialGraphRewriter(MergeOptimizer(), simplify).rewrite(builder)
    """

    def __init__(self, *rewriters: Any, name: str = "", on_failure: str | OnFailure | None = None):
        super().__init__(rewriters, name, on_failure)
        self._steps = [as_graph_rewriter(rewriter) for rewriter in self.rewriters]

    def apply(self, graph: EditableGraph) -> None:
        """Runs the rewriters."""
        with self.failing(graph.engine):
            for step in self._steps:
                graph.runner.run(step)
