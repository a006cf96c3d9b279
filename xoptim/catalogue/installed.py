"""Loads the patterns of other distributions, through entry points of group `xoptim.patterns`.

The standard library reads the metadata of every distribution: 15 to 30 ms for a hundred of them,
once, when patterns are selected first. ``xoptim --version`` does not do it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from xbuilder.support.user_warnings import warn_user

from ..authoring.rewriters import is_member
from .database import RewriteDatabase
from .order import check_names, run_order

#: group of the entry points
GROUP = "xoptim.patterns"


def load_installed(database: RewriteDatabase) -> None:
    """Loads the patterns of other distributions. An entry point is a module that registers
    patterns, or a function without argument that does.

    If one fails, a warning names it, its registrations are undone, and the others go on.

    :param database: where they register
    """
    rows = [(p.dist.name if p.dist else "", p) for p in entry_points(group=GROUP)]
    for name, point in sorted(rows, key=lambda row: (row[0], row[1].name)):
        try:
            with rollback_on_failure(database):
                _load(point)
                rewrites = [e.rewrite for e in database if is_member(e.rewrite)]
                run_order(rewrites)
                check_names(rewrites, database.names())
        except Exception as e:
            warn_user(
                f"The patterns of distribution {name!r} are ignored: its entry point "
                f"{point.name} = {point.value} fails, {type(e).__name__}: {e}."
            )


@contextlib.contextmanager
def rollback_on_failure(database: RewriteDatabase) -> Iterator[None]:
    """Undoes every registration made in the block if it fails."""
    known = {e.serial for e in database}
    try:
        yield
    except Exception:
        for entry in database:
            if entry.serial not in known:
                database.remove(entry.name)
        raise


def _load(point: EntryPoint) -> None:
    found = point.load()
    if isinstance(found, ModuleType):
        return
    if isinstance(found, type) or not callable(found):
        raise TypeError("it must be a module, or a function without argument")
    found()
