"""The policies for a rewrite that fails: raise, warn or ignore."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xbuilder.errors import OptionError, PatternError
from xbuilder.support.close_names import closest_names
from xbuilder.support.user_warnings import warn_user

from ..authoring.rewriters import Member

#: receives the error and the rewrite that failed; if it returns, the run goes on without it
OnFailure: TypeAlias = Callable[[PatternError, Member], None]


def raise_failure(error: PatternError, rewrite: Member) -> None:
    """Stops the optimization."""
    raise error


def warn_failure(error: PatternError, rewrite: Member) -> None:
    """Disables the rewrite and warns the user."""
    warn_user(f"{rewrite.name} failed: {error}")


def ignore_failure(error: PatternError, rewrite: Member) -> None:
    """Disables the rewrite."""


FAILURES: dict[str, OnFailure] = {
    "raise": raise_failure,
    "warn": warn_failure,
    "ignore": ignore_failure,
}


def failure_callback(what: str | OnFailure) -> OnFailure:
    """The callback for rewrites that fail.

    :param what: `raise`, `warn`, `ignore`, or a function of the error and of the rewrite
    :raises OptionError: the name is not one of these
    """
    if callable(what):
        return what
    if what not in FAILURES:
        close = closest_names(what, FAILURES)
        hint = f"did you mean {close[0]}?" if close else f"known: {sorted(FAILURES)}."
        raise OptionError(f"Unknown reaction to a failure {what!r}, {hint}")
    return FAILURES[what]
