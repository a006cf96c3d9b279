"""The levels of rewrites: a level is tried when the ones before have nothing left to do."""

from __future__ import annotations

from xbuilder.errors import OptionError

#: level -> its number, the priority of its rewrites
LEVELS = {
    "first": 0,  # fewer nodes at once, and simpler graphs for the others
    "usual": 1,
    "late": 2,  # products absorb their neighbours, weights absorb constants
    "later": 3,  # sums join the products, an operator takes what no better one took
    "last": 4,  # longer to write, faster to run
}


def priority_of(level: int | str) -> int:
    """The priority a level stands for. A number is one, lower ones come first.

    :param level: a name of :data:`LEVELS`, or a number, which may be between two or beyond
    :raises OptionError: no level has this name
    """
    if not isinstance(level, str):
        return level
    if level not in LEVELS:
        raise OptionError(f"A priority is a number or one of {list(LEVELS)}, not {level!r}.")
    return LEVELS[level]
