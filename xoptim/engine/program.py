"""What a selection runs: its patterns in their order, what they look for, read once."""

from __future__ import annotations

from operator import attrgetter, is_
from typing import Any

from ..api.members import Member
from ..api.patterns import PatternOptimization
from ..api.selection import DECLARED, Selection, get_pattern_list
from .graph_members import GraphMember
from .lookouts import Lookout, Lookouts
from .preparation import useful

_numbers = attrgetter("priority", "min_opset")


def _settings(member: Member) -> tuple[Any, ...]:
    """What a user may change on an instance between two runs."""
    own = member.__dict__
    if DECLARED.isdisjoint(own):
        return _numbers(member)  # most of them
    return *_numbers(member), *(own.get(name) for name in sorted(DECLARED))


class Program:
    """Patterns and rewriters of graphs, in the order of their priority. It belongs to a selection:
    the bodies of a model, and the models of one set of options, share it.

    :param selection: what runs
    """

    def __init__(self, selection: Selection):
        self._selected = tuple(selection)
        self._read = tuple(map(_settings, selection))
        members = sorted(selection, key=lambda m: m.priority)
        self.patterns = tuple(m for m in members if isinstance(m, PatternOptimization))
        self.members = tuple(m for m in members if isinstance(m, GraphMember))
        self._lookouts: dict[tuple[int, bool], Lookouts] = {}

    def is_still(self, selection: Selection) -> bool:
        """Tells if a selection holds what it held, as it was."""
        same = len(selection) == len(self._selected) and all(map(is_, selection, self._selected))
        return same and self._read == tuple(map(_settings, selection))

    def lookouts(self, opset: int, prepares: bool) -> Lookouts:
        """The patterns that may run.

        :param opset: main opset of the graph
        :param prepares: what only prepares the graph for patterns that are not there runs too
        """
        key = opset, prepares
        found = self._lookouts.get(key)
        if found is None:
            allowed = [p for p in self.patterns if p.min_opset <= opset]
            rows = allowed if prepares else useful(allowed)
            found = self._lookouts[key] = Lookouts([Lookout(p) for p in rows])
        return found


def program_of(patterns: Any) -> tuple[Program, Selection]:
    """What patterns run, and the selection that remembers it.

    :param patterns: a selection, see :func:`get_pattern_list`
    """
    known = patterns.program if isinstance(patterns, Selection) else None
    if isinstance(known, Program) and known.is_still(patterns):
        return known, patterns
    selection = get_pattern_list(patterns)
    program = selection.program = Program(selection)
    if isinstance(patterns, Selection):
        patterns.program = program
    return program, selection
