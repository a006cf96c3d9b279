"""The phases of rewrites: the purpose of each, and its position in a sequence of phases."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from xbuilder.errors import OptionError


class Phase(NamedTuple):
    """The purpose of a group of rewrites.

    :param position: its place in a sequence
    :param what: description of its rewrites

    Example::

        >>> PHASES["merge"]
        Phase(position=0.0, what='equal computations become one')
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
#: default phase of a pattern
OTHERS = "specialize"


def phase_of(name: str, module: str, tags: Iterable[str]) -> str:
    """Phase of a pattern: the one among its tags; otherwise the `PHASE` of the closest package
    that says one; otherwise `specialize`.

    :param name: name of the pattern
    :param module: module where it is defined
    :param tags: its tags
    :raises OptionError: if two phases are among the tags, or if a package names no phase
    """
    named = [t for t in tags if t in PHASES]
    if len(named) > 1:
        raise OptionError(f"Pattern {name!r} has one phase, not {named}.")
    if named:
        return named[0]
    package = module.rpartition(".")[0]
    while package:
        phase = getattr(sys.modules.get(package), "PHASE", None)
        if phase is not None:
            if phase not in PHASES:
                raise OptionError(f"PHASE of {package!r} is one of {list(PHASES)}, not {phase!r}.")
            return str(phase)
        package = package.rpartition(".")[0]
    return OTHERS
