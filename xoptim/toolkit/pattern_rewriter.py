"""A pattern given by two nested tuples: the one to match and its replacement."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeAlias, cast

from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from ..authoring.context import RewriteContext, context_of
from ..authoring.patterns import MatchResult, Reason
from ..authoring.queries import GraphQueries
from ..authoring.right_side import RightSide
from ..declarative.rule_patterns import RulePattern
from ..declarative.rules import make_rule
from .rewriters import NodeRewriter, Transformed
from .substitution import is_same_kind
from .trees import Constraint, TreeReader

#: the nodes where a pattern may end, from a tracked node
GetNodes: TypeAlias = Callable[[RewriteContext, NodeProto], Iterable[NodeProto]]
#: compares the values of a result before and after
ValuesEqual: TypeAlias = Callable[[Any, Any], bool]


class PatternNodeRewriter(NodeRewriter):
    """Replaces the expression one tree describes by the expression another tree describes.

    A tree is a nested tuple: the operator, `"Mul"` or `"domain::Operator"`, its operands, a
    dictionary of its attributes. An operand is a tree, the name of a variable, a number, which is a
    constant filled with it, or None for a missing input. The same variable is the same result. Both
    orders of the operands of a commutative operator are tried. `{"pattern": tree, "constraint":
    function}` is a tree whose result satisfies a condition, see
    :class:`xoptim.toolkit.trees.TreeReader`; `Var("a")` in a dictionary of attributes gives a name
    to a value. A list of trees stands for several results. It is compiled as any equation.

    A result may only replace another one that is proven to have the same type and shape.

    :param in_pattern: the tree to match, a list of trees for several results
    :param out_pattern: the replacement; or a function of the graph and of the names of
        *in_pattern* it asks for, which returns it as :meth:`NodeRewriter.transform` does
    :param allow_multiple_clients: an inner result may be used elsewhere, the nodes it needs are
        kept
    :param name: its name
    :param tracks: operators of the nodes given to *get_nodes*
    :param get_nodes: returns the nodes where the pattern may end, from a tracked node: for a
        pattern that ends with a common operator and has a rare one inside
    :param values_eq_approx: compares the values of a result before and after when the rewrite is
        checked, see :func:`xoptim.testing.check_pattern`
    :param min_opset: lowest main opset

    ::

        PatternNodeRewriter(("Div", ("Mul", "x", "y"), "y"), "x")
    """

    def __init__(
        self,
        in_pattern: Any,
        out_pattern: Any,
        allow_multiple_clients: bool = False,
        name: str = "",
        tracks: Sequence[str] = (),
        get_nodes: GetNodes | None = None,
        values_eq_approx: ValuesEqual | None = None,
        min_opset: int = 1,
    ):
        super().__init__(min_opset=min_opset)
        reader = TreeReader("_left")
        text = reader.side(in_pattern)
        condition: Callable[..., Any] | None = None
        if callable(out_pattern):
            condition = _condition(reader.constraints, out_pattern)
        else:
            text = f"{text} -> {TreeReader('_right').side(out_pattern)}"
            if reader.constraints:
                condition = _condition(reader.constraints)
        self.text = text
        self.name = name or text
        self._rule = self._made(condition, not allow_multiple_clients)
        self._tracks = tuple(tracks)
        self._get_nodes = get_nodes
        self.values_eq_approx = values_eq_approx

    def _made(self, condition: Callable[..., Any] | None, sole_use: bool) -> RulePattern:
        cls = make_rule("Tuples", [self.text], [], {}, sole_use, condition=condition)
        return cls(min_opset=self.min_opset)

    def tracks(self) -> tuple[str, ...]:
        """The operator the pattern ends with, or those `get_nodes` starts from."""
        return self._tracks if self._get_nodes is not None and self._tracks else self._rule.roots

    #: cheap filters of most roots, see :class:`PatternOptimization`
    after: ClassVar[tuple[str, ...]] = cast(
        Any, property(lambda self: self._rule.after if self._get_nodes is None else ())
    )
    reads: ClassVar[tuple[str, ...]] = cast(
        Any, property(lambda self: self._rule.reads if self._get_nodes is None else ())
    )

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Looks for the pattern at a node."""
        return self.matcher(g, matched)(g.record(node))

    def matcher(
        self, g: GraphQueries, matched: list[MatchResult]
    ) -> Callable[[NodeRecord], MatchResult | None]:
        """Same as :meth:`match`, on records."""
        self._rule.listener = None if self.listener is None else self._reported
        look = self._rule.matcher(g, matched)
        return partial(self._looked, context_of(g), look)

    def _reported(self, reason: Reason) -> None:
        _, node, line, text = reason
        if self.listener is not None:
            self.listener((self, node, line, text))

    def _looked(
        self,
        context: RewriteContext,
        look: Callable[[NodeRecord], MatchResult | None],
        record: NodeRecord,
    ) -> MatchResult | None:
        for end in self._ends(context, record):
            match = look(end)
            if match is None:
                continue
            match.pattern = self
            wrong = _changes_kind(context, match)
            if not wrong:
                return match
            self.none(context.store.proto(end), 0, wrong)
        return None

    def _ends(self, context: RewriteContext, record: NodeRecord) -> Iterable[NodeRecord]:
        if self._get_nodes is None:
            return (record,)
        nodes = self._get_nodes(context, context.store.proto(record))
        return [context.record(node) for node in nodes]

    def transform(self, graph: RewriteContext, node: NodeProto) -> Transformed:
        """The replacements of the results of the pattern that ends at a node."""
        found = self.match(graph, node, [])
        if found is None or not isinstance(found.apply, RightSide):
            return False
        return {**found.apply.replacements}


def _changes_kind(context: RewriteContext, match: MatchResult) -> str:
    """The result that would be replaced by one of another type or shape, in a sentence."""
    replacements = match.apply.replacements if isinstance(match.apply, RightSide) else {}
    for result, value in replacements.items():
        if isinstance(value, str) and not is_same_kind(context, result, value):
            return f"{value!r} is not proven to have the type and the shape of {result!r}"
    return ""


def _condition(
    constraints: Sequence[tuple[str, Constraint]], out: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The function of a rule: checks the constraints, then calls the right-hand side.

    :param constraints: names, and conditions on their values
    :param out: returns the right-hand side if the rule has none
    """
    asked = [] if out is None else list(inspect.signature(out).parameters)[1:]
    names = list(dict.fromkeys([*(name for name, _ in constraints), *asked]))

    def condition(g: RewriteContext, *values: Any) -> Any:
        bound = dict(zip(names, values, strict=True))
        for name, holds in constraints:
            g.require(holds(g, bound[name]), f"the constraint on {name} does not hold")
        return None if out is None else out(g, *[bound[name] for name in asked])

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("g", *names)]
    vars(condition).update(__signature__=inspect.Signature(parameters))
    return condition
