"""Dispatch of patterns: which ones a graph may match, by the operators it has."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cached_property
from operator import attrgetter
from typing import Any

from xbuilder.facts.facts import FactTable
from xbuilder.nodes.record import Key, NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.support.deferred_list import DeferredList, known, made, peek

from ..authoring.patterns import PatternOptimization
from ..authoring.rewriters import Member
from ..authoring.roots import Roots, Sweep, in_main_domain, root_keys
from ..catalogue.cards import PatternCard
from ..catalogue.order import run_order
from ..catalogue.registry import is_shipped
from ..catalogue.selection import DECLARED, as_selection, check_declarations
from .intermediate_functions import useful

#: number of dispatches kept in the cache
_KEPT = 64
# the declarations of a rewrite, read by one call for each: every optimization reads all of them
_place_of = attrgetter("priority", "min_opset", "before", "behind")
_own_of = attrgetter(
    "__module__", "name", "priority", "min_opset", "before", "behind", "roots", "prepares", "usual"
)
_around_of = attrgetter("after", "reads", "beyond", "read_by")


class Dispatch:
    """The order of the rewrites of a selection, and an index of the patterns that may run, by the
    operators of their roots.

    A pattern is tried on some nodes if one of them is a root, if a root reads what the pattern
    wants before it, and if the graph has the other operators it needs. The rank of a pattern is its
    place among those that run. It knows nothing of the instances: the selections that declare the
    same share it, see :func:`dispatch_of`.

    :param selection: patterns and rewriters of whole graphs, and the cards of patterns
    :param opset: main opset of the graph
    :param prepares: patterns that only prepare the graph for others run without these too
    """

    def __init__(self, selection: Sequence[Member | PatternCard], opset: int, prepares: bool):
        self.opset, self.prepares = opset, prepares
        order = run_order(selection)
        rewrites = [selection[i] for i in order]
        is_pattern = [isinstance(r, (PatternOptimization, PatternCard)) for r in rewrites]
        patterns: list[Any] = [r for r, yes in zip(rewrites, is_pattern, strict=True) if yes]
        #: places of the patterns in the selection, in the order they run, and of the others
        self.patterns = [i for i, yes in zip(order, is_pattern, strict=True) if yes]
        self.others = [i for i, yes in zip(order, is_pattern, strict=True) if not yes]
        #: classes of the patterns that may change a node they are given: no test of this project
        #: calls them
        self.watched = {type(p) for p in patterns if p.receives_nodes and not is_shipped(p)}
        allowed = [p for p in patterns if p.min_opset <= opset]
        kept = {id(p) for p in (allowed if prepares else useful(allowed))}
        #: places among the patterns of those that run, by rank
        self.running = [i for i, p in enumerate(patterns) if id(p) in kept]
        #: priority, first rank, rank after the last one, lowest priority first
        self.levels: list[tuple[int, int, int]] = []
        # patterns whose roots may read anything, by operator: one bit for each rank
        self._by_key: dict[Key, int] = {}
        # the others, by operator: all of them, and those of each operator it has to read
        self._by_reading: dict[Key, tuple[int, dict[str, int]]] = {}
        # rank and roots of the patterns with a root that is `*` or the beginning of a name
        self._any_key: list[tuple[int, tuple[str, ...]]] = []
        # by rank: sets of operators of the main domain, the graph has one of each
        self._needs: list[list[set[str]]] = []
        # by rank: sets of operators, the graph has all those of one of them
        self._alternatives: list[tuple[frozenset[Key], ...]] = []
        # by rank: element types, the graph has another one; none if its types do not matter
        self._usual: list[frozenset[int]] = []
        # by rank: whether the pattern has a method that says if it may match
        self._asks: list[bool] = []
        # by rank: whether the pattern needs something of the graph beside its roots
        self._is_conditional: list[bool] = []
        for rank, i in enumerate(self.running):
            self._add(rank, patterns[i])

    def _add(self, rank: int, pattern: PatternOptimization | PatternCard) -> None:
        if not self.levels or self.levels[-1][0] != pattern.priority:
            self.levels.append((pattern.priority, rank, rank))
        priority, first, _ = self.levels[-1]
        self.levels[-1] = priority, first, rank + 1
        asks = _asks(pattern)
        self._asks.append(asks)
        self._usual.append(pattern.usual)
        self._alternatives.append(() if asks else pattern.needs)
        # reading what a rule declares compiles it
        asks = asks or pattern.has_lazy_declarations
        declared = [] if asks else _around_of(pattern)
        self._needs.append([set(types) for types in declared if types and in_main_domain(types)])
        needed = self._asks, self._usual, self._alternatives, self._needs
        self._is_conditional.append(any(rows[rank] for rows in needed))
        roots = tuple(pattern.roots)
        keys, starts = root_keys(roots)
        if starts:
            self._any_key.append((rank, roots))
            return
        around = () if asks else pattern.after or pattern.reads
        for key in keys:
            narrow = pattern.reads_of and around and not key[0]
            before = pattern.reads_of.get(key[1], around) if narrow else around
            if not before or not in_main_domain(before):
                self._by_key[key] = self._by_key.get(key, 0) | 1 << rank
                continue
            every, by_type = self._by_reading.get(key, (0, {}))
            self._by_reading[key] = every | 1 << rank, by_type
            for op_type in before:
                by_type[op_type] = by_type.get(op_type, 0) | 1 << rank

    def is_for(self, opset: int, prepares: bool) -> bool:
        """Whether it was made for this main opset, and this choice of patterns."""
        return self.opset == opset and self.prepares == prepares

    def starting_from(self, roots: Roots, every_reason: bool, wanted: int = -1) -> int:
        """The patterns that some nodes may be the roots of. Cost: O(kinds of nodes), but for the
        index of the nodes, made once for all patterns.

        :param roots: the nodes
        :param every_reason: those whose roots do not read what the pattern wants before them count
            too, because a subscriber wants the reason of each refusal
        :param wanted: the patterns to look at, one bit for each rank; all of them by default
        :return: one bit for each rank, see :func:`ranks_in`
        """
        found = 0
        present, types = roots.keys(), roots.store.main_types()
        for key in present:
            if key in self._by_key:
                found |= self._by_key[key]
            if key not in self._by_reading:
                continue
            every, by_type = self._by_reading[key]
            if every_reason:
                found |= every
            elif every & wanted and not types.isdisjoint(by_type):
                for op_type in by_type.keys() & roots.kinds(key).keys():
                    found |= by_type[op_type]
        for rank, names in self._any_key:
            if roots.of(names):
                found |= 1 << rank
        return found & wanted

    def possible(
        self,
        ranks: int,
        patterns: Sequence[PatternOptimization],
        store: GraphStore,
        facts: FactTable | None = None,
        every_reason: bool = True,
    ) -> list[int]:
        """The ranks, among some whose roots are in a graph, of the patterns for which the graph has
        the other operators they need, in order.

        :param ranks: the ranks, one bit each
        :param patterns: the patterns by rank
        :param store: the graph
        :param facts: its facts, of any type without them
        :param every_reason: a subscriber may listen to some patterns, which are all kept
        """
        keys = frozenset(store.bucket_keys())
        types = store.main_types()
        kinds = None if facts is None else facts.all_types()
        is_conditional = self._is_conditional
        may_match = self.may_match if every_reason else self._may_match
        return [
            rank
            for rank in ranks_in(ranks)
            if not is_conditional[rank] or may_match(rank, patterns, keys, types, kinds)
        ]

    def may_match(
        self,
        rank: int,
        patterns: Sequence[PatternOptimization],
        keys: Set[Key],
        types: Set[str],
        kinds: Set[int] | None = None,
    ) -> bool:
        """Whether a graph that has roots of a pattern has the other operators it needs.

        :param rank: the rank of the pattern
        :param patterns: the patterns by rank
        :param keys: domains and types of the nodes
        :param types: those of the main domain
        :param kinds: the element types of the results, None for any
        """
        if self._may_match(rank, patterns, keys, types, kinds):
            return True
        pattern = peek(patterns, rank)
        # or the reasons are wanted
        return pattern is not None and pattern.listener is not None

    def _may_match(
        self,
        rank: int,
        patterns: Sequence[PatternOptimization],
        keys: Set[Key],
        types: Set[str],
        kinds: Set[int] | None,
    ) -> bool:
        usual = self._usual[rank]
        if usual and kinds is not None and kinds <= usual:
            return False
        for needed in self._needs[rank]:
            if needed.isdisjoint(types):
                return False
        if self._asks[rank]:
            return patterns[rank].may_match(keys)
        found = self._alternatives[rank]
        for alternative in found:
            if alternative <= keys:
                return True
        return not found


def has_listeners(patterns: Sequence[PatternOptimization]) -> bool:
    """Whether a subscriber wants the reasons of the refusals of some patterns."""
    return any(p.listener is not None for p in made(patterns))


def candidate_roots(
    roots: Roots, pattern: PatternOptimization, facts: FactTable | None = None
) -> list[NodeRecord]:
    """Roots a pattern does not refuse at once; all of them when a subscriber wants the reasons
    of the refusals.

    :param roots: the nodes
    :param pattern: the pattern
    :param facts: those of the graph, of any rank without them
    """
    if pattern.listener is not None:
        return roots.of(pattern.roots)
    wanted = pattern.read_by
    if wanted and not roots.has_one_of(wanted):
        return []
    if pattern.after:
        rows = roots.after(pattern.roots, pattern.after)
    elif pattern.reads_of:
        rows = roots.reading_each(pattern.reads_of)
    elif pattern.reads:
        rows = roots.reading(pattern.roots, pattern.reads)
    else:
        rows = pattern.candidate_roots(roots.store, roots.of(pattern.roots))
    if pattern.beyond:
        rows = roots.beyond(rows, pattern.after or pattern.reads, pattern.beyond)
    if pattern.read_by:
        rows = roots.read_by(rows, pattern.read_by)
    if pattern.rank and facts is not None:
        wanted_rank, known = pattern.rank, [facts[r.outputs[0]] for r in rows]
        rows = [
            r
            for r, f in zip(rows, known, strict=True)
            if (f.rank if f.shape is None else len(f.shape)) in (wanted_rank, None)
        ]
    return rows


def ranks_in(bits: int) -> list[int]:
    """The ranks of the bits that are set, in ascending order.

    >>> ranks_in(0b1101)
    [0, 2, 3]
    """
    ranks = []
    while bits:
        lowest = bits & -bits
        ranks.append(lowest.bit_length() - 1)
        bits ^= lowest
    return ranks


_DISPATCHES: dict[object, Dispatch] = {}


def _asks(pattern: PatternOptimization | PatternCard) -> bool:
    """Whether a pattern has a method that says if it may match."""
    if isinstance(pattern, PatternCard):
        return pattern.asks
    return type(pattern).may_match is not PatternOptimization.may_match


def dispatch_of(selection: Sequence[Member], opset: int, prepares: bool = False) -> Dispatch:
    """The dispatch of a selection, made once for all those that declare the same. A user may change
    what an instance declares between two runs, so all of it is read each time, unless nobody has
    any of the instances yet.

    :param selection: see :class:`Dispatch`
    :param opset: see :class:`Dispatch`
    :param prepares: see :class:`Dispatch`
    """
    unread = selection.deferred() if isinstance(selection, DeferredList) else None
    dispatch = None if unread is None else _DISPATCHES.get((opset, prepares, *unread))
    if dispatch is None:
        dispatch = _dispatch_as_declared(known(selection), opset, prepares)
        if unread is not None:
            _keep((opset, prepares, *unread), dispatch)
    return dispatch


def _dispatch_as_declared(declared: Sequence[Any], opset: int, prepares: bool) -> Dispatch:
    key = opset, prepares, *[_declarations(member) for member in declared]
    try:
        dispatch = _DISPATCHES.get(key)
    except TypeError:  # a list stands for a tuple somewhere
        check_declarations(declared)
        return Dispatch(declared, opset, prepares)
    if dispatch is None:
        check_declarations(declared)
        dispatch = Dispatch(declared, opset, prepares)
        _keep(key, dispatch)
    return dispatch


def _keep(key: tuple[Any, ...], dispatch: Dispatch) -> None:
    if len(_DISPATCHES) >= _KEPT:
        _DISPATCHES.clear()
    _DISPATCHES[key] = dispatch


class Plan:
    """A selection ready to run on the graphs of a model: its dispatch, its patterns, and the
    others, in their order. It is true as long as neither the list nor what its instances declare
    changes.

    :param patterns: see :func:`.get_pattern_list`
    :param opset: main opset of the graph
    """

    def __init__(self, patterns: Any, opset: int):
        self._made_of = patterns
        self.selection = as_selection(patterns)
        self.dispatch = dispatch_of(self.selection, opset)
        self.patterns: DeferredList[Any] = self.selection.part(self.dispatch.patterns)
        self.others = [self.selection[i] for i in self.dispatch.others]
        #: the patterns that run, by rank
        self.running: DeferredList[Any] = self.patterns.part(self.dispatch.running)

    @cached_property
    def is_listened(self) -> bool:
        """Whether a subscriber wanted the reasons of some refusals when it was first asked."""
        return has_listeners(self.running)

    def may_rewrite(self, store: GraphStore, facts: FactTable | None = None) -> bool:
        """Whether a rewrite may apply to a graph. Cost: O(edges).

        :param store: the graph
        :param facts: its facts, of any type without them
        """
        if self.others or self.is_listened:
            return True
        roots, patterns = Sweep(store), self.running
        ranks = self.dispatch.starting_from(roots, every_reason=False)
        possible = self.dispatch.possible(ranks, patterns, store, facts) if ranks else ()
        return any(candidate_roots(roots, patterns[rank]) for rank in possible)

    def is_for(self, patterns: Any, opset: int) -> bool:
        """Whether it was made of these patterns, for this main opset."""
        return self._made_of is patterns and self.dispatch.is_for(opset, False)


def _declarations(member: Member | PatternCard) -> tuple[Any, ...]:
    """The declarations of a class and of its instance. The operators next to the roots of a rule
    are left out, because reading them compiles the rule. A card declares the same as its class."""
    if not isinstance(member, (PatternOptimization, PatternCard)):
        return type(member), _place_of(member)
    which = None if is_shipped(member) else type(member)
    is_lazy = member.has_lazy_declarations and (
        isinstance(member, PatternCard) or DECLARED.isdisjoint(member.__dict__)
    )
    return which, _own_of(member), () if is_lazy else _around_of(member)
