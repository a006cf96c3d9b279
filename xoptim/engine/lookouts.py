"""Patterns while they run: which of them have something to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, TypeVar

from xbuilder.nodes.record import Key
from xbuilder.store.graph_store import GraphStore

from ..authoring.patterns import PatternOptimization
from ..authoring.roots import Link, Roots, links_of, root_keys

T = TypeVar("T")

_listener = attrgetter("listener")


class _Where(NamedTuple):
    """Where patterns that declare the same look.

    `keys` of the roots; `any_root` if one of these is `*` or the beginning of a name; `needs`, sets
    of operators of the main domain, the graph has one of each; `links`, a root has one of them, if
    there are some.
    """

    keys: frozenset[Key]
    any_root: bool
    needs: tuple[frozenset[str], ...]
    links: frozenset[Link]


@lru_cache(maxsize=4096)
def _where(
    roots: tuple[str, ...],
    after: tuple[str, ...] = (),
    reads: tuple[str, ...] = (),
    read_by: tuple[str, ...] = (),
) -> _Where:
    keys, starts = root_keys(roots)
    needs = tuple(frozenset(n) for n in (after, reads, read_by) if n)
    links = links_of(roots, () if starts else after or reads)
    return _Where(frozenset(keys), bool(starts), needs, links)


class Lookout:
    """Where a pattern looks, read once: most patterns have nothing to look at most of the time, and
    asking a class each time costs more than the answer. It knows nothing of the instance.

    :param rank: place of the pattern among those that run
    :param pattern: the pattern
    """

    __slots__ = (
        "_asks",
        "_needs",
        "_roots",
        "any_root",
        "keys",
        "links",
        "priority",
        "rank",
    )

    def __init__(self, rank: int, pattern: PatternOptimization):
        self.rank = rank
        self.priority = pattern.priority
        self._asks = type(pattern).may_match is not PatternOptimization.may_match
        self._roots = tuple(pattern.roots)
        declared = () if self._asks else (pattern.after, pattern.reads, pattern.read_by)
        where = _where(self._roots, *map(tuple, declared))
        self.keys, self.any_root, self._needs, self.links = where

    def may_match(self, pattern: PatternOptimization, keys: Set[Key], types: Set[str]) -> bool:
        """Tells if a graph that has some of its roots has the other operators it needs.

        :param pattern: the pattern
        :param keys: domains and types of its nodes
        :param types: those of the main domain
        """
        if pattern.listener is not None:  # somebody wants to know every reason
            return True
        for needed in self._needs:
            if needed.isdisjoint(types):
                return False
        return not self._asks or pattern.may_match(keys)

    def has_roots(self, roots: Roots) -> bool:
        """Tells if some nodes are roots of the pattern. Cost: O(1)."""
        if self.any_root:
            return bool(roots.of(self._roots))
        return not self.keys.isdisjoint(roots.keys())


@dataclass(frozen=True, slots=True)
class Level:
    """Patterns that are tried together.

    :param priority: the highest priority
    :param active: ranks of all of them
    :param reached: of those of this priority
    """

    priority: int
    active: frozenset[int]
    reached: frozenset[int]


class Layout:
    """Where patterns look, in their order: the selections whose patterns declare the same share it.

    :param patterns: the patterns
    """

    def __init__(self, patterns: Iterable[PatternOptimization]):
        self.lookouts = [Lookout(rank, pattern) for rank, pattern in enumerate(patterns)]
        self.ranks = frozenset(range(len(self.lookouts)))
        self.levels = tuple(_levels(self.lookouts))
        self._anywhere = [p for p in self.lookouts if p.any_root]
        self._by_key = _by(self.lookouts, lambda p: p.keys)
        self._without_link = _by((p for p in self.lookouts if not p.links), lambda p: p.keys)
        self._by_link = _by(self.lookouts, lambda p: p.links)

    def starting_from(self, roots: Roots, is_heard: bool = False) -> set[int]:
        """Ranks of the patterns some nodes may be the roots of. Cost: O(types of the nodes and of
        those they read), but for what this finds of the nodes, once for all patterns.

        :param roots: the nodes
        :param is_heard: those whose roots do not read what the pattern wants before them count too:
            somebody wants to know every reason
        """
        if is_heard:
            found = _union(self._by_key, roots.keys())
        else:
            found = _union(self._without_link, roots.keys())
            found |= _union(self._by_link, roots.links.known)
        found.update(p.rank for p in self._anywhere if p.has_roots(roots))
        return found


def _by(
    lookouts: Iterable[Lookout], keys_of: Callable[[Lookout], Iterable[T]]
) -> dict[T, frozenset[int]]:
    """Ranks of patterns by what they declare."""
    rows: dict[T, set[int]] = {}
    for lookout in lookouts:
        for key in keys_of(lookout):
            rows.setdefault(key, set()).add(lookout.rank)
    return {key: frozenset(ranks) for key, ranks in rows.items()}


def _union(ranks: Mapping[T, frozenset[int]], keys: Iterable[T]) -> set[int]:
    return set().union(*filter(None, map(ranks.get, keys)))


class Answers:
    """Which patterns may match a graph that has some operators, each is asked once.

    :param patterns: the patterns
    :param lookouts: where they look
    :param keys: domains and types of the nodes of the graph
    """

    def __init__(
        self,
        patterns: Sequence[PatternOptimization],
        lookouts: Sequence[Lookout],
        keys: frozenset[Key],
    ):
        self._patterns, self._lookouts, self._keys = patterns, lookouts, keys
        self._types = {op_type for domain, op_type in keys if not domain}
        self._asked: set[int] = set()
        self._possible: set[int] = set()

    def possible(self, ranks: Set[int]) -> Set[int]:
        """Those of some patterns that have in the graph what they need besides their roots."""
        for rank in ranks - self._asked:
            if self._lookouts[rank].may_match(self._patterns[rank], self._keys, self._types):
                self._possible.add(rank)
        self._asked |= ranks
        return ranks & self._possible


class Lookouts:
    """Patterns in their order, and where they look.

    :param patterns: the patterns
    :param layout: where they look
    """

    def __init__(self, patterns: Sequence[PatternOptimization], layout: Layout | None = None):
        self.patterns = patterns
        self._layout = Layout(patterns) if layout is None else layout
        self.ranks, self.levels = self._layout.ranks, self._layout.levels
        self.starting_from = self._layout.starting_from
        # graphs have few sets of operators in their lives
        self._answers: dict[frozenset[Key], Answers] = {}

    def answers(self, store: GraphStore, is_heard: bool) -> Answers:
        """Which patterns may match a graph as it is now.

        :param store: the graph
        :param is_heard: what :meth:`is_listened_to` tells
        """
        keys = frozenset(store.bucket_keys())
        found = self._answers.get(keys)
        if found is None or is_heard:
            found = Answers(self.patterns, self._layout.lookouts, keys)
        if not is_heard:
            self._answers[keys] = found
        return found

    def is_listened_to(self) -> bool:
        """Tells if somebody wants to know the reasons of a pattern."""
        return any(map(_listener, self.patterns))


def _levels(patterns: Iterable[Lookout]) -> Iterator[Level]:
    rows: dict[int, list[int]] = {}
    for lookout in patterns:
        rows.setdefault(lookout.priority, []).append(lookout.rank)
    active: frozenset[int] = frozenset()
    for priority in sorted(rows) or [0]:
        reached = frozenset(rows.get(priority, ()))
        active |= reached
        yield Level(priority, active, reached)
