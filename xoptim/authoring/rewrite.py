"""A rewrite as one function: it checks conditions, then returns the right-hand side.

::

    @rewrite("default", root="Clip", after="Clip", min_opset=11, sole_use=True)
    def clip_clip(g, outer):
        '''Clip(Clip(x, a), b) -> ...'''
        inner = g.before(outer, "Clip")
        g.require(len(inner.input) == 2, "there is an upper bound")
        return g.op.Clip(inner.input[0], ...)

The author checks conditions, gives a reason for each refusal, and returns the right-hand side. The
engine deduces which nodes are removed (those that were visited and are dead), which are kept, the
place of the new nodes, their names, their metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from .conclusion import conclude
from .context import RewriteContext, RewriteResult
from .patterns import MatchResult
from .root_rewrite import RootRewrite

#: a function that checks the conditions around a root and returns the right-hand side
RewriteFunction: TypeAlias = "Callable[[RewriteContext, NodeProto], RewriteResult | None]"


class Rewrite(RootRewrite):
    """A pattern with one method, :meth:`rewrite`, which checks the conditions and returns the
    right-hand side.

    A subclass defines `roots` (see :class:`PatternOptimization`) and :meth:`rewrite`. With
    `sole_use = True`, the rewrite is refused if a node between the results the right-hand side
    reads and those it replaces has another use. Without it, such a node is kept.

    ::

        @register_pattern("default", roots=("Neg",), after=("Neg",))
        class DoubleNegPattern(Rewrite):
            def rewrite(self, g, node):
                return g.before(node, "Neg").input[0]
    """

    sole_use: ClassVar[bool] = False

    def rewrite(self, g: RewriteContext, node: NodeProto) -> RewriteResult | None:
        """Checks the conditions and returns the replacement of each result of the root.

        :param g: queries, refusals, new operators
        :param node: the root
        :return: a name, `g.op.Operator(...)`, a list with one of them (or None) for each result of
            the root, or a dictionary of the replacement of each result, including those of other
            visited nodes; `g.no(reason)` refuses, None refuses without a reason
        """
        raise NotImplementedError(f"{type(self).__name__} must define method rewrite.")

    def _analysis(self) -> RewriteFunction:
        return self.rewrite

    def _concluded(
        self, context: RewriteContext, record: NodeRecord, answer: RewriteResult | None
    ) -> MatchResult | str:
        if answer is None:
            return "it gives no reason"
        return conclude(context, self, record, answer, self.sole_use)
