"""`PatternOptimization`, the base class of patterns, and `MatchResult`, a match to apply."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, NamedTuple

from onnx import NodeProto

from xbuilder.errors import UnknownAttributeError
from xbuilder.nodes.record import Key, NodeRecord
from xbuilder.protos.pretty import pretty_node
from xbuilder.store.graph_store import GraphStore

from .levels import priority_of
from .operator_names import check_declared_operators, is_tested
from .queries import GraphQueries
from .rewriters import Member, short_name
from .roots import Sweep

Reason = tuple["PatternOptimization", "NodeProto | None", "int | None", str]


class MatchResult:
    """A match: the nodes a pattern found, and how to rewrite them.

    :param pattern: the pattern, or the rewriter of graphs that made it
    :param nodes: nodes to remove, None for an optional one that is missing
    :param apply: called with the optimizer and the nodes, returns the new ones
    :param insert_at: the new nodes take the place of this one, the best place by default
    :param comment: shown in reports
    :param stays: a node among them that is kept for its other readers: no other match of the same
        iteration claims it
    :param records: records of the nodes in the store, when the engine made the match itself

    Invariant: nothing changes before the engine calls `apply`.
    """

    __slots__ = ("apply", "comment", "insert_at", "nodes", "pattern", "records", "stays")

    def __init__(
        self,
        pattern: Member,
        nodes: Sequence[NodeProto | None],
        apply: Callable[..., list[NodeProto]],
        insert_at: NodeProto | None = None,
        comment: str | None = None,
        stays: NodeProto | None = None,
        records: list[NodeRecord] | None = None,
    ):
        self.pattern = pattern
        self.nodes = list(nodes)
        self.apply = apply
        self.insert_at = insert_at
        self.comment = comment
        self.stays = stays
        self.records = records

    def to_string(self, short: bool = True) -> str:
        """The match as text: one line, or one line per node."""
        types = ", ".join("None" if n is None else n.op_type for n in self.nodes)
        head = f"MatchResult: {self.pattern.name} replaces [{types}]"
        if self.comment:
            head = f"{head} ({self.comment})"
        if short:
            return head
        rows = [f"  {pretty_node(n)}" for n in self.nodes if n is not None]
        return "\n".join([head, *rows])

    def debug_string(self, g: GraphQueries | None = None) -> str:
        """The nodes of the match, with the types and shapes of their results when *g* is given."""
        text = self.to_string(short=False)
        if g is None:
            return text
        rows = []
        for node in self.nodes:
            for name in () if node is None else (*node.input, *node.output):
                if name:
                    facts = g.facts[name]
                    rows.append(f"    {name}: type={facts.type} shape={facts.shape}")
        return "\n".join([text, *dict.fromkeys(rows)])

    def __repr__(self) -> str:
        return self.to_string()


class Attempt(NamedTuple):
    """One attempt of a pattern on one root.

    :param match: the match, None if it declines
    :param visited: the nodes it visited, its root first
    :param reason: the first condition that failed, empty if it matches

    Example::

        >>> attempt = Attempt(None, [], "the permutations are not known")
        >>> attempt.match is None, attempt.reason
        (True, 'the permutations are not known')
    """

    match: MatchResult | None
    visited: list[NodeRecord]
    reason: str


def matches_nothing(record: NodeRecord) -> None:
    """Refuses every root: the engine does not call a matcher that is this function.

    :param record: a root

    >>> from xbuilder.nodes.record import NodeRecord
    >>> import onnx.helper as oh
    >>> matches_nothing(NodeRecord(oh.make_node("Neg", ["x"], ["y"]), 0, 0)) is None
    True
    """


class PatternOptimization(Member):
    """A pattern. A subclass defines `roots`, `match` and `apply`.

    :param verbose: verbosity
    :param priority: lower ones run first, a higher one is tried when nothing lower matches; a
        number, or a level of :data:`.LEVELS`: `"first"` is 0, `"usual"` 1
    :param min_opset: lowest main opset the rewrite is valid for
    :param even_slower: applies it also where it was measured slower, see :func:`.require_fast`

    Class attributes: `roots` lists the operator types `match` is called on (`"Transpose"`,
    `"com.microsoft::FusedMatMul"`, `"*"` for any); `after` lists the operator types one of which
    must give the first input of the root, `reads` those one of which must give any of its inputs,
    `beyond` those one of which must give an input of such a node, `read_by` those one of which must
    read one of its results, if they are not empty: the other roots are refused at once, `match` is
    not called, nor for those whose first result is known to have another rank than `rank`, if it
    is not 0; `reads_of` narrows `reads`, root by root; `prepares` lists the functions the rewrite
    makes for others, which do not run without these; `before` and `behind` name the patterns of the
    same priority it has to run before, or after; `priority`, `min_opset`, `precision` (`exact`,
    `rounding` or `approximate`), `phase` and `tags` are set by `register_pattern`.
    :func:`.run_order` tells the order of two patterns.

    A pattern holds no state about a graph: bindings of a match live in the MatchResult. Two
    instances of one class are equal.

    ::

        class DoubleNeg(PatternOptimization):
            roots = ("Neg",)

            def match(self, g, node, matched):
                before = g.node_before(node.input[0])
                if before is None or before.op_type != "Neg":
                    return self.none(node, "no Neg before")
                if g.is_used_more_than_once(node.input[0]):
                    return self.none(node, "the inner result is used elsewhere")
                return MatchResult(self, [before, node], self.apply)

            def apply(self, g, first, second):
                return [g.make_node("Identity", [first.input[0]], second.output[:])]
    """

    roots: ClassVar[tuple[str, ...]] = ("*",)
    after: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    reads_of: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    rank: int = 0
    beyond: ClassVar[tuple[str, ...]] = ()
    read_by: ClassVar[tuple[str, ...]] = ()
    prepares: ClassVar[tuple[str, ...]] = ()
    #: operators a graph must have: all those of one of these sets, if there are any
    needs: ClassVar[tuple[frozenset[Key], ...]] = ()
    #: element types: a graph whose results have no other one is not looked at, if there are any
    usual: ClassVar[frozenset[int]] = frozenset()
    #: the engine passes nodes to it, which it must not modify
    receives_nodes: ClassVar[bool] = True
    #: `roots` and the operators around are computed on first access, and need no check
    has_lazy_declarations: ClassVar[bool] = False
    #: called with each rejection; None costs nothing
    listener: Callable[[Reason], None] | None = None
    even_slower: bool = False

    def __init__(
        self,
        verbose: int = 0,
        priority: int | str | None = None,
        min_opset: int | None = None,
        even_slower: bool = False,
    ):
        self.verbose = verbose
        if even_slower:
            self.even_slower = True
        if priority is not None:
            self.priority = priority_of(priority)
        if min_opset is not None:
            self.min_opset = min_opset

    def __init_subclass__(cls, **options: Any) -> None:
        """Checks the operators that the class declares, unless a test does.

        :raises OptionError: one does not exist
        """
        super().__init_subclass__(**options)
        if not is_tested(cls.__module__):
            check_declared_operators(f"Pattern {short_name(cls)!r}", vars(cls))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'even_slower=True' if self.even_slower else ''})"

    def may_match(self, keys: Set[Key]) -> bool:
        """Whether a graph with these operators may hold a match. The engine asks it first: a
        pattern that is costly to prepare waits for such a graph.

        :param keys: domains and types of the nodes
        """
        return not self.needs or any(needed <= keys for needed in self.needs)

    @staticmethod
    def candidate_roots(store: GraphStore, records: list[NodeRecord]) -> list[NodeRecord]:
        """Filters the roots before :meth:`match` is called: for patterns that start from any node.

        :param store: the graph
        :param records: its nodes of the types of `roots`
        """
        return records

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Matches the pattern at a node; must not change anything.

        :param g: the optimizer, which answers queries about the graph
        :param node: a node whose type is one of the roots
        :param matched: matches found before in this iteration
        :return: a match, or None (use :meth:`none` to say why)
        """
        raise NotImplementedError(f"{type(self).__name__} must define method match.")

    def matcher(
        self, g: GraphQueries, matched: list[MatchResult]
    ) -> Callable[[NodeRecord], MatchResult | None]:
        """The function the engine calls on the record of each root: by default, :meth:`match`;
        :func:`matches_nothing` if it refuses all of them, which is not called.

        :param matched: matches found before in this iteration
        """
        store, match = g.store, self.match
        return lambda r: match(g, store.proto(r) if r.stale else r._proto, matched)

    def apply(self, g: GraphQueries, *nodes: Any) -> list[NodeProto]:
        """Builds the new nodes, in topological order.

        :param nodes: the nodes of the match
        :return: new nodes, including those of the match that are still live
        """
        raise NotImplementedError(f"{type(self).__name__} must define method apply.")

    def none(
        self,
        node: NodeProto | None = None,
        lineno: int | str | None = None,
        msg: str | Callable[[], str] | None = None,
    ) -> MatchResult | None:
        """Returns None to refuse a match, with a reason. Costs nothing without a listener.

        :param node: the node that was visited
        :param lineno: line of the code, or the reason itself
        :param msg: the reason, or a function returning it
        """
        if self.listener is None:
            return None
        if isinstance(lineno, str):
            lineno, msg = None, lineno
        if lineno is None:
            frame = inspect.currentframe()
            lineno = frame.f_back.f_lineno if frame is not None and frame.f_back else None
        text = msg() if callable(msg) else (msg or "")
        self.listener((self, node, lineno, text))
        return None

    def attempt(self, g: GraphQueries, node: NodeProto) -> Attempt:
        """Tries to match one root, and says how far it went.

        :param node: a node whose operator is one of the roots
        """
        reasons: list[Reason] = []
        previous, self.listener = self.listener, reasons.append
        try:
            match, visited = self._trace(g, node)
        except UnknownAttributeError as e:
            return Attempt(None, [g.record(node)], str(e))
        finally:
            self.listener = previous
        reason = ""
        if match is None:
            reason = f"{self.name} does not match and gives no reason"
        if match is None and reasons:
            reason = f"{reasons[-1][3]} ({self.place(reasons[-1][2])})"
        return Attempt(match, visited, reason)

    def _trace(
        self, g: GraphQueries, node: NodeProto
    ) -> tuple[MatchResult | None, list[NodeRecord]]:
        """The match of a root, and the nodes that were visited."""
        return self.match(g, node, []), [g.record(node)]

    def place(self, lineno: int | None) -> str:
        """A line of the file that defines the pattern, as ``file.py:12``; empty without line."""
        module = sys.modules.get(type(self).__module__)
        file = getattr(module, "__file__", None)
        if lineno is None:
            return ""
        return f"{os.path.basename(file)}:{lineno}" if file else f"line {lineno}"

    def enumerate_matches(
        self, g: GraphQueries, matched: list[MatchResult] | None = None
    ) -> Iterator[MatchResult]:
        """Iterates over the matches of the whole graph, in graph order; they may overlap."""
        matched = [] if matched is None else matched
        for record in list(Sweep(g.store).of(self.roots)):
            result = self.match(g, g.store.proto(record), matched)
            if result is not None:
                yield result
