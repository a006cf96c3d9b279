"""What becomes of a rewrite that fails: the user decides."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

from xbuilder.errors import OptionError, PatternError
from xbuilder.support.close_names import closest_names

from ..authoring.members import Member

#: is given the error and what failed; the optimization goes on without this rewrite if it returns
OnFailure: TypeAlias = Callable[[PatternError, Member], None]


def raise_failure(error: PatternError, member: Member) -> None:
    """The optimization stops."""
    raise error


def warn_failure(error: PatternError, member: Member) -> None:
    """The rewrite is left out, the user is told."""
    warnings.warn(f"{member.name} failed: {error}", stacklevel=2)


def ignore_failure(error: PatternError, member: Member) -> None:
    """The rewrite is left out."""


FAILURES: dict[str, OnFailure] = {
    "raise": raise_failure,
    "warn": warn_failure,
    "ignore": ignore_failure,
}


def failure_callback(what: str | OnFailure) -> OnFailure:
    """What is called when a rewrite fails.

    :param what: `raise`, `warn`, `ignore`, or a function of the error and of what failed
    :raises OptionError: the name is not one of these
    """
    if callable(what):
        return what
    if what not in FAILURES:
        close = closest_names(what, FAILURES)
        hint = f"did you mean {close[0]}?" if close else f"known: {sorted(FAILURES)}."
        raise OptionError(f"Unknown reaction to a failure {what!r}, {hint}")
    return FAILURES[what]
