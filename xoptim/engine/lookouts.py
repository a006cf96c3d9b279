"""Patterns while they run: which of them have something to look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from xbuilder.nodes.record import Key
from xbuilder.store.graph_store import GraphStore

from ..api.patterns import PatternOptimization
from ..api.roots import Roots, root_keys

_listener = attrgetter("listener")


class _Where(NamedTuple):
    """Where patterns that declare the same look.

    `keys` of the roots; `any_root` if one of these is `*` or the beginning of a name; `needs`, sets
    of operators of the main domain, the graph has one of each.
    """

    keys: frozenset[Key]
    any_root: bool
    needs: tuple[frozenset[str], ...]


@lru_cache(maxsize=4096)
def _where(roots: tuple[str, ...], *needs: tuple[str, ...]) -> _Where:
    keys, starts = root_keys(roots)
    return _Where(frozenset(keys), bool(starts), tuple(frozenset(n) for n in needs if n))


class Lookout:
    """Where a pattern looks, read once: most patterns have nothing to look at most of the time, and
    asking a class each time costs more than the answer. It knows nothing of the instance.

    :param rank: place of the pattern among those that run
    :param pattern: the pattern
    """

    __slots__ = ("_asks", "_needs", "_roots", "any_root", "keys", "priority", "rank")

    def __init__(self, rank: int, pattern: PatternOptimization):
        self.rank = rank
        self.priority = pattern.priority
        self._asks = type(pattern).may_match is not PatternOptimization.may_match
        self._roots = tuple(pattern.roots)
        declared = () if self._asks else (pattern.after, pattern.reads, pattern.read_by)
        self.keys, self.any_root, self._needs = _where(self._roots, *map(tuple, declared))

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
        self._lookouts = [Lookout(rank, pattern) for rank, pattern in enumerate(patterns)]
        self.ranks = frozenset(range(len(self._lookouts)))
        self.levels = tuple(_levels(self._lookouts))
        self._starting_from: dict[Key, list[Lookout]] = {}
        for lookout in self._lookouts:
            for key in lookout.keys:
                self._starting_from.setdefault(key, []).append(lookout)
        self._anywhere = [p for p in self._lookouts if p.any_root]

    def starting_from(self, keys: Iterable[Key]) -> list[Lookout]:
        """The patterns some nodes may be the roots of.

        :param keys: domains and types of the nodes
        """
        starting = [self._starting_from[key] for key in keys if key in self._starting_from]
        ranks = {p.rank for p in chain(self._anywhere, *starting)}
        return [self._lookouts[rank] for rank in sorted(ranks)]


class Lookouts:
    """Patterns in their order. Those a graph has nothing for are left out, which is asked once for
    each set of operators: graphs have few of them in their lives.

    :param patterns: the patterns
    :param layout: where they look
    """

    def __init__(self, patterns: Sequence[PatternOptimization], layout: Layout | None = None):
        self.patterns = patterns
        self._layout = Layout(patterns) if layout is None else layout
        self.ranks, self.levels = self._layout.ranks, self._layout.levels
        self._possible: dict[tuple[frozenset[Key], int], list[Lookout]] = {}

    def possible(self, store: GraphStore, priority: int) -> Sequence[Lookout]:
        """Those that may match a graph as it is now.

        :param store: the graph
        :param priority: the highest priority that is tried
        """
        keys = frozenset(store.bucket_keys())
        if self.is_listened_to():
            return self._find(keys, priority)
        state = keys, priority
        found = self._possible.get(state)
        if found is None:
            found = self._possible[state] = self._find(keys, priority)
        return found

    def is_listened_to(self) -> bool:
        """Tells if somebody wants to know the reasons of a pattern."""
        return any(map(_listener, self.patterns))

    def _find(self, keys: Set[Key], priority: int) -> list[Lookout]:
        types = {op_type for domain, op_type in keys if not domain}
        rows = self._layout.starting_from(keys)
        of = self.patterns
        return [p for p in rows if p.priority <= priority and p.may_match(of[p.rank], keys, types)]


def _levels(patterns: Iterable[Lookout]) -> Iterator[Level]:
    rows: dict[int, list[int]] = {}
    for lookout in patterns:
        rows.setdefault(lookout.priority, []).append(lookout.rank)
    active: frozenset[int] = frozenset()
    for priority in sorted(rows) or [0]:
        reached = frozenset(rows.get(priority, ()))
        active |= reached
        yield Level(priority, active, reached)
