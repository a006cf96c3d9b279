"""Patterns while they run: which of them have something to look at."""

from __future__ import annotations

from ..api.patterns import PatternOptimization
from ..api.roots import Roots, root_keys


class Lookout:
    """A pattern and where it looks, read once: most patterns have nothing to look at most of the
    time, and asking a class each time costs more than the answer.

    :param pattern: the pattern
    """

    __slots__ = ("_any_root", "_asks", "_keys", "_needs", "pattern", "priority")

    def __init__(self, pattern: PatternOptimization):
        self.pattern = pattern
        self.priority = pattern.priority
        keys, starts = root_keys(tuple(pattern.roots))
        self._keys = frozenset(keys)
        self._any_root = bool(starts)  # "*", or the beginning of a name
        self._asks = type(pattern).may_match is not PatternOptimization.may_match
        declared = () if self._asks else (pattern.after, pattern.reads, pattern.read_by)
        self._needs = tuple(frozenset(types) for types in declared if types)

    def sees_something(self, roots: Roots) -> bool:
        """Tells if a graph has nodes the pattern may match. Cost: O(1).

        :param roots: the nodes to look at
        """
        if not self._any_root and self._keys.isdisjoint(roots.keys()):
            return False
        if self.pattern.listener is None:  # somebody wants to know every reason otherwise
            for types in self._needs:
                if types.isdisjoint(roots.types):
                    return False
            if self._asks and not self.pattern.may_match(roots.store.bucket_keys()):
                return False
        return not self._any_root or bool(roots.of(self.pattern.roots))
