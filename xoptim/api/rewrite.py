"""A rewrite in one piece: conditions first, then what is written instead.

::

    @rewrite("default", root="Clip", after="Clip", min_opset=11, sole_use=True)
    def clip_clip(g, outer):
        '''Clip(Clip(x, a), b) -> ...'''
        inner = g.before(outer, "Clip")
        g.require(len(inner.input) == 2, "there is an upper bound")
        return g.op.Clip(inner.input[0], ...)

The author checks conditions, says why not, and returns the right-hand side. The engine deduces
which nodes go (those that were looked at and that nothing reads any more), which stay, the place
of the new nodes, their names, their metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias

from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from .context import Answer, RewriteContext
from .patterns import MatchResult
from .registry import register_pattern
from .root_rewrite import RootRewrite

#: checks the conditions around a root, returns the right-hand side
RewriteFunction: TypeAlias = "Callable[[RewriteContext, NodeProto], Answer | None]"


class Rewrite(RootRewrite):
    """A pattern with one analysis: :meth:`rewrite` checks and says what is written instead.

    A subclass gives `roots` (see :class:`PatternOptimization`), and :meth:`rewrite`. With
    `sole_use = True`, every node between what the right-hand side reads and what it replaces must
    have no other use: the rewrite is refused otherwise. Without it, such a node stays.

    ::

        @register_pattern("default", roots=("Neg",), after=("Neg",))
        class DoubleNegPattern(Rewrite):
            def rewrite(self, g, node):
                return g.before(node, "Neg").input[0]
    """

    sole_use: ClassVar[bool] = False

    def rewrite(self, g: RewriteContext, node: NodeProto) -> Answer | None:
        """Checks the conditions and returns what replaces the results of the root.

        :param g: queries, refusals, new operators
        :param node: the root
        :return: a name, `g.op.Operator(...)`, a list with one of them (or None) for each result of
            the root, or a dictionary of what replaces each result, those of other nodes that were
            looked at included; `g.no(reason)` refuses, None refuses without a reason
        """
        raise NotImplementedError(f"{type(self).__name__} must define method rewrite.")

    def _analysis(self) -> RewriteFunction:
        return self.rewrite

    def _concluded(
        self, context: RewriteContext, record: NodeRecord, answer: Answer | None
    ) -> MatchResult | str:
        if answer is None:
            return "it gives no reason"
        return context.conclude(self, record, answer, self.sole_use)


def rewrite(
    *tags: str,
    root: str | Iterable[str],
    after: str | Iterable[str] = (),
    reads: str | Iterable[str] = (),
    read_by: str | Iterable[str] = (),
    prepares: str | Iterable[str] = (),
    before: str | Iterable[str] = (),
    behind: str | Iterable[str] = (),
    min_opset: int = 1,
    priority: int | str = "usual",
    precision: str = "exact",
    sole_use: bool = False,
    name: str = "",
) -> Callable[[RewriteFunction], type[Rewrite]]:
    """Decorator: a function becomes a pattern.

    The function takes `g` (:class:`RewriteContext`) and the root, checks the conditions and returns
    the right-hand side, see :meth:`Rewrite.rewrite`. The pattern is a class named after the
    function: `clip_clip` gives `ClipClipPattern`, `"ClipClip"` in a selection.

    :param tags: sets it belongs to; without any, the pattern is not registered, it is given as it
        is in a list of patterns
    :param root: operator type(s) it starts from
    :param after: operator type(s) one of which gives the first input of the root: other roots are
        refused without a call
    :param reads: operator type(s) one of which gives any input of the root, likewise
    :param read_by: operator type(s) one of which reads a result of the root, likewise
    :param prepares: function(s) it makes for other rewrites, see :meth:`RewriteContext.outline`
    :param before: name(s) of rewrites of the same priority that leave it the nodes both may take
    :param behind: name(s) of those it leaves them to
    :param min_opset: lowest main opset
    :param priority: a level, see :data:`.LEVELS`, or a number: lower ones run first
    :param precision: `exact`, `rounding` or `approximate`
    :param sole_use: see :class:`Rewrite`
    :param name: name of the pattern when the one of the function does not spell it

    ::

        @rewrite("default", root="Not", after="Not")
        def not_not(g, outer):
            '''Not(Not(x)) -> x'''
            return g.before(outer, "Not").input[0]
    """
    names = {"roots": root, "after": after, "reads": reads, "read_by": read_by}
    names.update(prepares=prepares, before=before, behind=behind)
    declared: dict[str, Any] = {attribute: _names(value) for attribute, value in names.items()}
    declared.update(min_opset=min_opset, priority=priority, precision=precision)

    def decorate(function: RewriteFunction) -> type[Rewrite]:
        short = name or "".join(p.title() for p in function.__name__.split("_"))
        members = {"__doc__": function.__doc__, "__module__": function.__module__, **declared}
        members.update(rewrite=staticmethod(function), sole_use=sole_use)
        cls: type[Rewrite] = type(f"{short}Pattern", (Rewrite,), members)
        return register_pattern(*tags, **declared)(cls) if tags else cls

    return decorate


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
