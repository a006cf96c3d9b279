"""A pattern made of one function called on each root: base of `Rewrite` and of node rewriters."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from .context import RewriteContext, context_of
from .deduction import Refusal
from .patterns import MatchResult, PatternOptimization
from .queries import GraphQueries


class RootRewrite(PatternOptimization):
    """A pattern that calls one function on each root. A subclass provides it, and turns its answers
    into matches. Nothing is written before the match is applied."""

    def _analysis(self) -> Callable[[RewriteContext, NodeProto], Any]:
        """The function called on a root, which checks conditions and returns the right-hand
        side."""
        raise NotImplementedError(f"{type(self).__name__} must define method _analysis.")

    def _concluded(
        self, context: RewriteContext, record: NodeRecord, answer: Any
    ) -> MatchResult | str:
        """Turns an answer that is not a refusal into a match, or returns the reason why there is
        none."""
        raise NotImplementedError(f"{type(self).__name__} must define method _concluded.")

    def _first_line(self) -> int:
        """First line of the analysis."""
        return self._analysis().__code__.co_firstlineno

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Runs the analysis on one root."""
        return _Analysis(self, g).look(g.record(node))

    def _trace(
        self, g: GraphQueries, node: NodeProto
    ) -> tuple[MatchResult | None, list[NodeRecord]]:
        """Same, with the nodes the analysis visited."""
        if type(self).match is not RootRewrite.match:
            return super()._trace(g, node)
        analysis = _Analysis(self, g)
        return analysis.look(g.record(node)), analysis.visited

    def matcher(
        self, g: GraphQueries, matched: list[MatchResult]
    ) -> Callable[[NodeRecord], MatchResult | None]:
        """Same as :meth:`match`, on records; calls :meth:`match` if a subclass overrides it."""
        if type(self).match is not RootRewrite.match:
            return super().matcher(g, matched)
        context = context_of(g, self.even_slower)
        analysis: _Analysis | None = context.looks.get(id(self))
        if analysis is None or analysis.listener is not self.listener:
            analysis = context.looks[id(self)] = _Analysis(self, g)
        return analysis.look


class _Analysis:
    """The analysis of a pattern bound to a graph, to call on many roots."""

    __slots__ = ("_analysis", "_context", "_pattern", "listener")

    def __init__(self, pattern: RootRewrite, g: GraphQueries):
        self._pattern = pattern
        self._context = context_of(g, pattern.even_slower)
        self._analysis = pattern._analysis()
        #: the subscriber to the reasons of the refusals
        self.listener = pattern.listener

    @property
    def visited(self) -> list[NodeRecord]:
        """The nodes the last look visited."""
        return self._context.visited

    def look(self, record: NodeRecord) -> MatchResult | None:
        """Runs the analysis on a root."""
        context = self._context
        node = context.store.proto(record) if record.stale else record._proto
        context.visited = [record]
        try:
            answer = self._analysis(context, node)
        except Refusal as refusal:
            if self.listener is None:
                return None
            return self._pattern.none(node, _line(refusal.__traceback__), refusal.reason)
        if isinstance(answer, Refusal):
            return None if self.listener is None else self._refused(node, answer.reason)
        found = self._pattern._concluded(context, record, answer)
        return self._refused(node, found) if isinstance(found, str) else found

    def _refused(self, node: NodeProto, reason: str) -> MatchResult | None:
        """Reports why a root is refused to the listener, and returns None."""
        return self._pattern.none(node, self._pattern._first_line(), reason)


def _line(traceback: TracebackType | None) -> int | None:
    """Line of the analysis that refused: the first frame below this module."""
    below = None if traceback is None else traceback.tb_next
    while below is not None and below.tb_frame.f_globals.get("__name__") == __name__:
        below = below.tb_next
    return None if below is None else below.tb_lineno
