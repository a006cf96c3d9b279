"""What a rewrite of one analysis and a rewriter of one node share."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from .context import RewriteContext
from .deduction import Refusal
from .patterns import MatchResult, PatternOptimization
from .queries import GraphQueries


class RootRewrite(PatternOptimization):
    """A pattern that asks one function about each root: a subclass gives it, and makes a match out
    of what it answers. Nothing is made before the match is applied."""

    def _analysis(self) -> Callable[[RewriteContext, NodeProto], Any]:
        """What is called on a root: it checks, and says what is written instead."""
        raise NotImplementedError(f"{type(self).__name__} must define method _analysis.")

    def _concluded(
        self, context: RewriteContext, record: NodeRecord, answer: Any
    ) -> MatchResult | str:
        """Makes a match out of an answer that is no refusal, or says why there is none."""
        raise NotImplementedError(f"{type(self).__name__} must define method _concluded.")

    def _first_line(self) -> int:
        """Line where the analysis begins."""
        return self._analysis().__code__.co_firstlineno

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Looks at a root, once."""
        return _Analysis(self, g).look(g.record(node))

    def matcher(
        self, g: GraphQueries, matched: list[MatchResult]
    ) -> Callable[[NodeRecord], MatchResult | None]:
        """Same as :meth:`match`; a subclass that changes it is asked through it."""
        if type(self).match is not RootRewrite.match:
            return super().matcher(g, matched)
        return _Analysis(self, g).look


class _Analysis:
    """The function of a pattern, called on its roots: what it needs is read once.

    :param pattern: the pattern
    :param g: the optimizer
    """

    __slots__ = ("_analysis", "_context", "_is_heard", "_pattern")

    def __init__(self, pattern: RootRewrite, g: GraphQueries):
        self._pattern = pattern
        self._context = RewriteContext.of(g)
        self._analysis = pattern._analysis()
        self._is_heard = pattern.listener is not None

    def look(self, record: NodeRecord) -> MatchResult | None:
        """Looks at a root."""
        context = self._context
        node = context.store.proto(record) if record.stale else record._proto
        context.looked_at = [record]
        try:
            answer = self._analysis(context, node)
        except Refusal as refusal:
            if not self._is_heard:
                return None
            return self._pattern.none(node, _line(refusal.__traceback__), refusal.reason)
        if isinstance(answer, Refusal):
            return self._refused(node, answer.reason) if self._is_heard else None
        found = self._pattern._concluded(context, record, answer)
        return self._refused(node, found) if isinstance(found, str) else found

    def _refused(self, node: NodeProto, reason: str) -> MatchResult | None:
        """Says why a root is refused, if somebody listens; there is no match."""
        return self._pattern.none(node, self._pattern._first_line(), reason)


def _line(traceback: TracebackType | None) -> int | None:
    """Line of the analysis where it refused: the first frame below this module."""
    below = None if traceback is None else traceback.tb_next
    while below is not None and below.tb_frame.f_globals.get("__name__") == __name__:
        below = below.tb_next
    return None if below is None else below.tb_lineno
