"""The phases: what a rewrite is for. The levels: when the engine tries it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from xbuilder.errors import OptionError


class Phase(NamedTuple):
    """A phase.

    :param position: its place in a sequence
    :param what: what belongs to it
    """

    position: float
    what: str


PHASES = {
    "merge": Phase(0.0, "equal computations become one"),
    "canonicalize": Phase(1.0, "one way to write the same thing, with fewer and simpler nodes"),
    "stabilize": Phase(1.5, "the same value with fewer overflows, 0 * inf and roundings"),
    "specialize": Phase(2.0, "several operators become one that does their work"),
    "uncanonicalize": Phase(3.0, "what the target runs best, even if it is longer to write"),
}
#: phase of a pattern when nothing tells
OTHERS = "specialize"

#: level -> its number, which is the priority of its rewrites. The rewrites of a level are tried
#: when those of the levels before have nothing left to do
LEVELS = {
    "first": 0,  # fewer nodes at once: what the others look for is plainer
    "usual": 1,
    "late": 2,  # products take what is around them, weights take constants
    "later": 3,  # sums join the products, an operator takes what no better one took
    "last": 4,  # longer to write, faster to run
}


def priority_of(level: int | str) -> int:
    """The priority a level stands for; a number is one, whatever it is.

    :param level: a name of :data:`LEVELS`, or a number
    :raises OptionError: no level has this name
    """
    if not isinstance(level, str):
        return level
    if level not in LEVELS:
        raise OptionError(f"A priority is a number or one of {list(LEVELS)}, not {level!r}.")
    return LEVELS[level]


def phase_of(name: str, module: str, tags: Iterable[str]) -> str:
    """Phase of a pattern: the one among its tags; otherwise the one its package gives to it, or to
    its family, in a dictionary `PATTERN_PHASES`; otherwise `specialize`.

    :param name: name of the pattern
    :param module: module where it is defined, its family is the last word
    :param tags: its tags
    :raises OptionError: if two phases are among the tags
    """
    told = [t for t in tags if t in PHASES]
    if len(told) > 1:
        raise OptionError(f"Pattern {name!r} has one phase, not {told}.")
    if told:
        return told[0]
    package, _, family = module.rpartition(".")
    table = getattr(sys.modules.get(package), "PATTERN_PHASES", None)
    if not isinstance(table, dict):
        return OTHERS
    return str(table.get(name) or table.get(family) or OTHERS)
