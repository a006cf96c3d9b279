"""What a selection runs: its patterns in their order, what they look for, read once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import attrgetter, is_
from typing import Any

from ..authoring.patterns import PatternOptimization
from ..authoring.rewriters import Member
from ..catalogue.order import order_of
from ..catalogue.registry import is_shipped
from ..catalogue.selection import DECLARED, Selection, check_declarations, get_pattern_list
from .graph_members import GraphMember
from .intermediate_functions import useful
from .lookouts import Layout, Lookouts

#: what members declare, by kind: rewriters of graphs; patterns; those made of equations, which
#: declare something without being compiled
_DECLARED_BY_KIND = (
    attrgetter("priority", "min_opset"),
    attrgetter("priority", "min_opset", "roots", "prepares", "after", "reads", "read_by"),
    attrgetter("priority", "min_opset", "roots", "prepares"),
)
#: as many plans are remembered
_REMEMBERED = 32


def _kind_of(member: Member) -> int:
    if not isinstance(member, PatternOptimization):
        return 0
    return 2 if member.declared_late and DECLARED.isdisjoint(member.__dict__) else 1


class Settings:
    """What the classes of a selection declare, and what a user may change on an instance between
    two runs. It is read for each model and each body: no step of python for each member.

    :param members: the selection
    """

    def __init__(self, members: Sequence[Member]):
        self.kinds = tuple(map(_kind_of, members))
        self._by_kind = [
            list(compress(members, map(kind.__eq__, self.kinds)))
            for kind in range(len(_DECLARED_BY_KIND))
        ]

    def read(self) -> tuple[Any, ...]:
        """What they are now."""
        late = self._by_kind[2]
        rows = [
            tuple(map(declared, members))
            for declared, members in zip(_DECLARED_BY_KIND, self._by_kind, strict=True)
        ]
        return (*rows, all(map(DECLARED.isdisjoint, map(vars, late))))


class Plan:
    """In which order patterns and rewriters run, and where patterns look. The selections whose
    members declare the same share it, it knows nothing of the instances.

    :param selection: what runs
    """

    def __init__(self, selection: Sequence[Member]):
        order = order_of(selection)
        #: places of the patterns in the selection, of the rewriters of graphs
        self.patterns = [i for i in order if isinstance(selection[i], PatternOptimization)]
        self.members = [i for i in order if isinstance(selection[i], GraphMember)]
        self._layouts: dict[tuple[int, bool], tuple[list[int], Layout]] = {}

    def lookouts(
        self, patterns: Sequence[PatternOptimization], opset: int, prepares: bool
    ) -> Lookouts:
        """See :meth:`Program.lookouts`."""
        key = opset, prepares
        if key not in self._layouts:
            allowed = [p for p in patterns if p.min_opset <= opset]
            rows = {id(p) for p in (allowed if prepares else useful(allowed))}
            places = [i for i, p in enumerate(patterns) if id(p) in rows]
            self._layouts[key] = places, Layout(patterns[i] for i in places)
        places, layout = self._layouts[key]
        return Lookouts([patterns[i] for i in places], layout)


_PLANS: dict[object, Plan] = {}


def _plan_of(
    selection: Sequence[Member], kinds: tuple[int, ...], settings: tuple[Any, ...]
) -> Plan:
    """The plan of a selection, remembered for those that declare the same."""
    key = tuple(map(type, selection)), kinds, settings
    try:
        found = _PLANS.get(key)
    except TypeError:  # a list stands for a tuple somewhere
        return Plan(selection)
    if found is None:
        if len(_PLANS) >= _REMEMBERED:
            _PLANS.clear()
        found = _PLANS[key] = Plan(selection)
    return found


class Program:
    """Patterns and rewriters of graphs, in the order they run. It belongs to a selection:
    the bodies of a model, and the models of one set of options, share it.

    :param selection: what runs
    """

    def __init__(self, selection: Selection):
        self._selected: tuple[Any, ...] = tuple(selection)
        self._settings = Settings(selection)
        self._read = self._settings.read()
        self._plan = plan = _plan_of(self._selected, self._settings.kinds, self._read)
        of = self._selected
        self.patterns: tuple[PatternOptimization, ...] = tuple(of[i] for i in plan.patterns)
        self.members: tuple[GraphMember, ...] = tuple(of[i] for i in plan.members)
        #: the patterns that may change a node they are given: no test of this project calls them
        self.watched = {p for p in self.patterns if p.is_given_nodes and not is_shipped(p)}
        self._lookouts: dict[tuple[int, bool], Lookouts] = {}

    def is_still(self, selection: Selection) -> bool:
        """Tells if a selection holds what it held, as it was."""
        same = len(selection) == len(self._selected) and all(map(is_, selection, self._selected))
        return same and self._read == self._settings.read()

    def lookouts(self, opset: int, prepares: bool) -> Lookouts:
        """The patterns that may run.

        :param opset: main opset of the graph
        :param prepares: what only prepares the graph for patterns that are not there runs too
        """
        key = opset, prepares
        if key not in self._lookouts:
            self._lookouts[key] = self._plan.lookouts(self.patterns, opset, prepares)
        return self._lookouts[key]


def program_of(patterns: Any) -> tuple[Program, Selection]:
    """What patterns run, and the selection that remembers it.

    :param patterns: a selection, see :func:`get_pattern_list`
    """
    known = patterns.program if isinstance(patterns, Selection) else None
    if isinstance(known, Program) and known.is_still(patterns):
        return known, patterns
    if isinstance(patterns, Selection) and patterns.is_as_made():
        check_declarations(patterns)
        selection = patterns
    else:
        selection = get_pattern_list(patterns)
    program = selection.program = Program(selection)
    if isinstance(patterns, Selection):
        patterns.program = program
    return program, selection
