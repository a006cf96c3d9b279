"""The schedule: the roots that each pattern visits in the next iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set

from xbuilder.facts.facts import FactTable
from xbuilder.nodes.record import Key, NodeRecord
from xbuilder.store.graph_store import GraphStore

from ..authoring.patterns import PatternOptimization
from ..authoring.roots import Candidates, Roots, Sweep
from .dispatch import Dispatch, ranks_in
from .worklist import Worklist

#: a sweep of the whole graph is cheaper than its neighbourhoods when one node in so many changed
SWEEP_SHARE = 8


class Schedule:
    """Patterns look at the whole graph once, then near the last changes. Those of a higher priority
    wait until the others find nothing there. The whole graph again, once for all of them, confirms
    the fixed point.

    :param store: the graph
    :param dispatch: which patterns may match
    :param patterns: the patterns that run, by rank
    :param near: the nodes to look at first, when nothing else changed since a fixed point
    :param every_reason: a subscriber wants the reasons of the refusals: patterns are listened to
        from the beginning, or not at all
    :param facts: those of the graph, of any type without them
    """

    def __init__(
        self,
        store: GraphStore,
        dispatch: Dispatch,
        patterns: Sequence[PatternOptimization],
        near: Iterable[NodeRecord] | None = None,
        every_reason: bool = False,
        facts: FactTable | None = None,
    ):
        self._store, self._facts = store, facts
        self._dispatch = dispatch
        self._patterns = patterns
        self._levels = dispatch.levels or [(0, 0, 0)]
        self._whole: Sweep | None = None
        self._every_reason = every_reason
        self._only_near = self._from_fixed_point = near is not None
        #: patterns only looked near what something else changed since the last fixed point
        self._is_partial = False
        #: patterns look everywhere, and nothing changed since the rest had nothing left to do
        self.is_confirmed = False
        every = (1 << len(patterns)) - 1
        # those that looked everywhere since the last change: one bit for each rank
        self._settled = every if self._from_fixed_point else 0
        #: those that look everywhere
        self.sweep = 0 if self._from_fixed_point else every
        #: where the others look
        self.near = Candidates(store, near or ())
        self._level = len(self._levels) - 1 if self._from_fixed_point else 0
        # operators and types of the graph, the patterns asked since, those that need nothing else
        self._state: tuple[Set[Key], Set[int] | None] | None = None
        self._asked = self._answers = 0

    @property
    def priority(self) -> int:
        """The highest priority that is tried."""
        return self._levels[self._level][0]

    @property
    def _active(self) -> int:
        """The patterns of this priority and of the lower ones."""
        return (1 << self._levels[self._level][2]) - 1

    def looking(self) -> list[tuple[PatternOptimization, Roots]]:
        """Patterns that have something to look at, and where they look."""
        everywhere = self._starting_from(self._sweep, self._active & self.sweep)
        only_near = self._active & ~self.sweep if self.near.records else 0
        only_near = self._starting_from(lambda: self.near, only_near)
        if not everywhere and not only_near:
            return []
        patterns, near, whole = self._patterns, self.near, self._whole or self.near
        return [
            (patterns[rank], whole if everywhere >> rank & 1 else near)
            for rank in ranks_in(self._possible(everywhere | only_near))
        ]

    def _possible(self, ranks: int) -> int:
        """Those of some patterns for which the graph has the other operators and the types they
        need. Each one is asked once, until the graph has others."""
        if self._every_reason:  # a subscriber may come
            return self._ask(ranks)
        types = None if self._facts is None else frozenset(self._facts.all_types())
        state = self._store.bucket_keys(), types
        if self._state != state:
            self._state, self._asked, self._answers = state, 0, 0
        new = ranks & ~self._asked
        if new:
            self._answers |= self._ask(new)
            self._asked |= new
        return ranks & self._answers

    def _ask(self, ranks: int) -> int:
        found = self._dispatch.possible(
            ranks, self._patterns, self._store, self._facts, self._every_reason
        )
        return sum([1 << rank for rank in found])

    def _starting_from(self, roots: Callable[[], Roots], wanted: int) -> int:
        """Those of the wanted patterns that may start from some nodes, which are only indexed if a
        pattern is wanted."""
        return wanted and self._dispatch.starting_from(roots(), self._every_reason, wanted)

    def _sweep(self) -> Sweep:
        """The whole graph; what is known of it is kept as long as it is the same."""
        if self._whole is None or self._whole.generation != self._store.generation:
            self._whole = Sweep(self._store)
        return self._whole

    def found_nothing(self) -> bool:
        """Whether something is left to look at: those of the next priority see the whole graph;
        after the last one, those that did not since the last change."""
        self._settled |= self.sweep & self._active
        self.near = Candidates(self._store, [])
        if self._level + 1 < len(self._levels):
            self._level += 1
            _, first, end = self._levels[self._level]
            self.sweep = (1 << end) - (1 << first)
            return True
        self.sweep = self._active & ~self._settled
        return bool(self.sweep)

    def found(self) -> None:
        """Patterns matched: those that looked everywhere wait for what changes."""
        self.is_confirmed = False
        self._whole = None  # the index of a graph that changes next
        if not self._from_fixed_point:
            self._settled = 0
        self.sweep &= ~self._active

    def changed(self, count: int, worklist: Worklist) -> None:
        """Matches were applied.

        :param count: their number
        :param worklist: what changed
        """
        if count * SWEEP_SHARE > len(self._store):
            self.sweep |= self._active
        else:
            self.near = Candidates(self._store, worklist.neighbourhood())

    def restart(self) -> None:
        """Something else changed the graph: every pattern looks everywhere."""
        self._settled = 0
        self.sweep |= self._active
        self._from_fixed_point = self._only_near
        self._is_partial = self.is_confirmed = False

    def resume(self, changes: Worklist) -> None:
        """Something else changed the graph at a fixed point: patterns look near it, then near their
        own changes, until :meth:`confirm`.

        :param changes: what changed
        """
        if len(changes.events) * SWEEP_SHARE > len(self._store):
            self.restart()
            return
        self.is_confirmed = False
        if not self._from_fixed_point:
            self._from_fixed_point = self._is_partial = True
        self.near = Candidates(self._store, changes.neighbourhood())

    def confirm(self) -> bool:
        """Whether patterns have to look everywhere once more, which they do next."""
        if not self._is_partial:
            return False
        self.restart()
        self.is_confirmed = True
        return True

    def records(self) -> Sequence[NodeRecord]:
        """The nodes patterns start from: all of them, or those near the last changes."""
        return self._store.nodes if self.sweep & self._active else self.near.records
