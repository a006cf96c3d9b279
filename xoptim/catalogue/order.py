"""The order of rewrites: which of two that want the same node looks at it first."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names

from ..authoring.rewriters import Member, short_name
from .cards import PatternCard
from .phases import OTHERS, PHASES

#: a rewrite, its class, or the card of a class
RewriteLike: TypeAlias = "Member | type[Member] | PatternCard"
T = TypeVar("T", bound="RewriteLike")


def run_order(rewrites: Sequence[RewriteLike]) -> list[int]:
    """Places of rewrites in the order they run. One key decides:

    1. the level, see :data:`.LEVELS`: the engine tries a level when the ones before have nothing
       left to do;
    2. the position of the phase;
    3. those of this project, those somebody else registered, by name; then those that are not
       registered, in the order they are given;
    4. within a level, `before` and `behind` of two rewrites prevail over 2 and 3.

    Nothing depends on files, imports, or the order of the words of a selection. Phases do not come
    first: a graph rewritten phase after phase ends with 204 nodes instead of 166 (text detection of
    PP-OCRv4), what a fusion leaves is simplified before the next fusion looks. Cost: O(n log n).

    :param rewrites: patterns, rewriters of graphs, their classes, or cards
    :raises OptionError: `before` and `behind` of some make a circle, or contradict the levels
    """
    free_order = sorted(range(len(rewrites)), key=lambda i: _key(rewrites[i]))
    edges = _edges(rewrites)
    if not edges:
        return free_order
    place = {i: k for k, i in enumerate(free_order)}
    behind: dict[int, list[int]] = {}
    missing = dict.fromkeys(free_order, 0)
    for first, second in edges:
        behind.setdefault(first, []).append(second)
        missing[second] += 1
    ready = [place[i] for i in free_order if not missing[i]]  # sorted, a heap
    places: list[int] = []
    while ready:
        i = free_order[heapq.heappop(ready)]
        places.append(i)
        for other in behind.get(i, ()):
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, place[other])
    if len(places) < len(free_order):
        names = sorted(_name_of(rewrites[i]) for i in free_order if missing[i])
        raise OptionError(f"'before' and 'behind' of patterns {', '.join(names)} make a circle.")
    return places


def in_order(rewrites: Iterable[T]) -> list[T]:
    """Rewrites in the order they run, see :func:`run_order`."""
    rows = list(rewrites)
    return [rows[i] for i in run_order(rows)]


def check_names(rewrites: Iterable[Any], registered: Collection[str]) -> None:
    """Checks the names in `before` and `behind`.

    :param rewrites: what is selected
    :param registered: what may be selected
    :raises OptionError: a name is neither selected nor registered
    """
    rows = list(rewrites)
    names_in_use = {*registered, *(name for r in rows for name in _names_of(r))}
    for rewrite in rows:
        for attribute in ("before", "behind"):
            names = getattr(rewrite, attribute, ())
            if isinstance(names, str):
                raise OptionError(
                    f"Attribute {attribute} of pattern {_name_of(rewrite)} must be a tuple of "
                    f"names, not {names!r}."
                )
            for name in sorted(set(names) - names_in_use):
                close = closest_names(name, registered)
                hint = f" Did you mean {' or '.join(close)}?" if close else ""
                raise OptionError(
                    f"Unknown pattern {name!r} in {attribute}= of {_name_of(rewrite)}.{hint}"
                )


def _class_of(rewrite: Any) -> Any:
    return rewrite if isinstance(rewrite, (type, PatternCard)) else type(rewrite)


def _name_of(rewrite: Any) -> str:
    return short_name(_class_of(rewrite))


def _names_of(rewrite: Any) -> tuple[str, ...]:
    return _name_of(rewrite), *rewrite.aliases


def _key(rewrite: RewriteLike) -> tuple[int, float, int, str]:
    """Level, phase, whose it is, name: what is equal keeps its order."""
    position = PHASES.get(rewrite.phase, PHASES[OTHERS]).position
    if not rewrite.phase:
        return rewrite.priority, position, 2, ""
    is_ours = rewrite.__module__.startswith("xoptim.")
    return rewrite.priority, position, not is_ours, _name_of(rewrite)


def _edges(rewrites: Sequence[RewriteLike]) -> list[tuple[int, int]]:
    """Pairs of places, the first one runs before the second one."""
    declaring = [i for i, r in enumerate(rewrites) if r.before or r.behind]
    if not declaring:
        return []
    places: dict[str, list[int]] = {}
    for i, rewrite in enumerate(rewrites):
        for name in _names_of(rewrite):
            places.setdefault(name, []).append(i)
    found = []
    for i in declaring:
        found += [(i, j) for name in rewrites[i].before for j in places.get(name, ())]
        found += [(j, i) for name in rewrites[i].behind for j in places.get(name, ())]
    return [pair for pair in found if _is_open(*(rewrites[i] for i in pair))]


def _is_open(first: Any, second: Any) -> bool:
    """Whether levels leave the order of two rewrites open. The level somebody gives to an instance
    prevails.

    :raises OptionError: the levels of their classes say the contrary
    """
    if _class_of(first).priority > _class_of(second).priority:
        names = _name_of(first), _name_of(second)
        raise OptionError(
            f"Pattern {names[0]} cannot come before {names[1]}, which has a lower priority."
        )
    return bool(first.priority == second.priority)
