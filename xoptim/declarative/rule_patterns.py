"""Rules at run time: a pattern that tries its equations at each root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias

from onnx import NodeProto

from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord

from ..authoring.conclusion import conclude, conclude_whole
from ..authoring.context import RewriteContext, context_of
from ..authoring.deduction import Refusal
from ..authoring.patterns import MatchResult
from ..authoring.queries import GraphQueries
from .compiled import (
    AFTER_SEARCH,
    CompiledGraph,
    Reasons,
    SearchedPattern,
    best_of,
    matchers_of,
    quiet,
    said,
)
from .matcher_writer import Search
from .template import TemplateWriter

#: conditions of a rule, a function of `g` and of names of the equation
Condition: TypeAlias = Callable[..., Any]


class RuleSide(NamedTuple):
    """One graph to match and its replacement.

    :param text: the equation it comes from
    :param left: the graph
    :param right: the right-hand side, None if the function of the rule makes it
    :param whole: number of nodes of the graph, if all of them are removed; 0 if it depends
    """

    text: str
    left: CompiledGraph
    right: TemplateWriter | None
    whole: int = 0


#: for each group of graphs that may match: types one of which must produce the first input (empty
#: for any), the compiled search, the side of each graph
Searches: TypeAlias = list[tuple[tuple[str, ...], Search, list[RuleSide]]]


class RulePattern(SearchedPattern):
    """A rewrite made of equations; :func:`.rules.rule` makes subclasses.

    A match is refused if an inner result is used elsewhere and `sole_use` is true; otherwise the
    nodes it needs are kept.
    """

    equations: ClassVar[tuple[str, ...]] = ()
    sole_use: ClassVar[bool] = True
    sides: ClassVar[tuple[RuleSide, ...]] = ()
    condition: ClassVar[Condition | None] = None
    arguments: ClassVar[tuple[str, ...]] = ()
    line: ClassVar[int] = 0
    has_lazy_declarations = True
    receives_nodes = False  # the search reads records, a condition receives names and values

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Tries the equations in their order."""
        return _RuleSearch(self, g).look(g.record(node))

    def matcher(
        self, g: GraphQueries, matched: list[MatchResult]
    ) -> Callable[[NodeRecord], MatchResult | None]:
        """Same as :meth:`match`, on records; calls :meth:`match` if a subclass overrides it."""
        if type(self).match is not RulePattern.match:
            return super().matcher(g, matched)
        context = context_of(g, self.even_slower)
        search: _RuleSearch | None = context.looks.get(id(self))
        if search is None or search.listener is not self.listener:
            search = context.looks[id(self)] = _RuleSearch(self, g)
        search.start()
        return search.look


class _RuleSearch:
    """Searches for the equations of a rule at its roots; reads the rule once for all roots.

    :param pattern: the rule
    """

    __slots__ = (
        "_arguments",
        "_by_root",
        "_condition",
        "_context",
        "_keys",
        "_pattern",
        "_sole_use",
        "listener",
        "look",
    )

    def __init__(self, pattern: RulePattern, g: GraphQueries):
        self._pattern = pattern
        self._context = context_of(g, pattern.even_slower)
        self._condition = pattern.condition
        self._arguments = pattern.arguments
        self._sole_use = pattern.sole_use
        self._by_root: dict[str, Searches] = {}
        self._keys = self._context.store.bucket_keys()
        #: the subscriber to the reasons of the refusals
        self.listener = pattern.listener
        #: called on each root
        self.look = self._found if pattern.listener is None else self._reported

    def start(self) -> None:
        """Takes the operators that the graph has now: an equation that needs another is left."""
        keys = self._context.store.bucket_keys()
        if keys is not self._keys and keys != self._keys:
            self._by_root.clear()
        self._keys = keys

    def _found(self, record: NodeRecord) -> MatchResult | None:
        root = _root_of(record) if record.domain else record.op_type
        rows = self._by_root.get(root)
        if rows is None:
            rows = self._by_root[root] = self._searches(root)
        context = self._context
        for first, search, sides in rows:
            if first and not _comes_after(context, record, first):
                continue
            for records, bound, place in search(record):
                context.visited = records
                try:
                    found = self._concluded(record, bound, sides[place])
                except Refusal:
                    continue
                if not isinstance(found, str):
                    return found
        return None

    def _searches(self, root: str) -> Searches:
        """The searches for the equations with an operator as root, if all their operators are in
        the graph. Graphs of one equation with a common prefix share a search."""
        context = self._context
        keys = self._keys
        sides = [s for s in self._pattern.sides if s.left.root == root and s.left.keys <= keys]
        alone = len(sides) == 1  # its search tests the first input as early
        groups: dict[tuple[str, tuple[str, ...]], list[RuleSide]] = {}
        for side in sides:
            groups.setdefault((side.text, side.left.first), []).append(side)
        return [
            (() if alone else first, make(context, quiet), rows)
            for (_, first), rows in groups.items()
            for make in matchers_of(tuple(side.left for side in rows), context.main_opset)
        ]

    def _reported(self, record: NodeRecord) -> MatchResult | None:
        """Same as :meth:`_found`, and reports the best reason of all when nothing matches."""
        context, pattern = self._context, self._pattern
        reasons: dict[str, Reasons] = {}
        for side in pattern.sides:
            if side.left.root != _root_of(record):
                continue
            best = reasons.setdefault(side.text, Reasons())
            for records, bound in side.left.matches(context, record, best):
                context.visited = records
                try:
                    found = self._concluded(record, bound, side)
                except Refusal as refusal:
                    found = refusal.reason
                if not isinstance(found, str):
                    return found
                best.say(AFTER_SEARCH, context.visited, "{}", found)
        context.visited = max([[record], *(r.nodes for r in said(reasons.values()))], key=len)
        node = context.store.proto(record)
        return pattern.none(node, pattern.line, lambda: best_of(reasons.values()))

    def _concluded(
        self, record: NodeRecord, bound: dict[str, Any], side: RuleSide
    ) -> MatchResult | str:
        """Checks the conditions and makes the match, or returns the reason of the refusal."""
        context, given = self._context, None
        if self._condition is not None:
            given = self._condition(context, *map(bound.get, self._arguments))
            if isinstance(given, Refusal):
                return given.reason
        if side.right is None:
            if given is None:
                raise Refusal("it gives no reason")
            return conclude(context, self._pattern, record, given, self._sole_use)
        if given is not None:
            bound.update(given)
        try:
            values = side.right.template(context, bound)
        except KeyError:
            missing = [n for n in side.right.names if n not in bound]
            if not missing:
                raise
            raise PatternError(
                f"Rule {self._pattern.name} does not know {missing}: its function must return "
                "them, {name: value}."
            ) from None
        # the condition may have looked at other nodes, or given names the right-hand side reads
        if side.whole == len(context.visited) and given is None:
            return conclude_whole(context, self._pattern, record, values[0])
        answer = {bound[name]: value for name, value in zip(side.left.results, values, strict=True)}
        return conclude(context, self._pattern, record, answer, self._sole_use)


def _comes_after(context: RewriteContext, record: NodeRecord, types: tuple[str, ...]) -> bool:
    """Whether the first input of a node is produced by an operator of these types."""
    before = context.store.producers.get(record.inputs[0])
    return before is not None and before.op_type in types


def _root_of(record: NodeRecord) -> str:
    return f"{record.domain}::{record.op_type}" if record.domain else record.op_type
