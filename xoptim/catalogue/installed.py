"""Loads the patterns of other distributions, through entry points of group `xoptim.patterns`.

The standard library parses the metadata of every distribution: 15 to 30 ms for a hundred of them.
It is asked if one of their files holds the name of the group.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

from xbuilder.support.user_warnings import warn_user

from .cards import is_member
from .database import RewriteDatabase
from .order import check_names, run_order

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: group of the entry points
GROUP = "xoptim.patterns"


def load_installed(database: RewriteDatabase) -> None:
    """Loads the patterns of other distributions. An entry point is a module that registers
    patterns, or a function without argument that does.

    If one fails, a warning names it, its registrations are undone, and the others go on.

    :param database: where they register
    """
    if not _is_group_named():
        return
    from importlib.metadata import entry_points

    rows = [(p.dist.name if p.dist else "", p) for p in entry_points(group=GROUP)]
    for name, point in sorted(rows, key=lambda row: (row[0], row[1].name)):
        try:
            with rollback_on_failure(database):
                _load(point)
                rewrites = [e.declared for e in database if is_member(e.declared)]
                run_order(rewrites)
                check_names(rewrites, database.names())
        except Exception as e:
            warn_user(
                f"The patterns of distribution {name!r} are ignored: its entry point "
                f"{point.name} = {point.value} fails, {type(e).__name__}: {e}."
            )


def _is_group_named() -> bool:
    """Whether the metadata of a distribution holds the name of the group, or may hold it where it
    is not in folders."""
    if any(f is not PathFinder and hasattr(f, "find_distributions") for f in sys.meta_path):
        return True
    for place in dict.fromkeys(map(os.path.abspath, sys.path)):
        if place.endswith(".egg") or os.path.isfile(place):
            return True
        with contextlib.suppress(OSError):
            for name in os.listdir(place):
                if name.lower().endswith((".dist-info", ".egg-info")) and _names_group(place, name):
                    return True
    return False


def _names_group(place: str, name: str) -> bool:
    with (
        contextlib.suppress(OSError),
        open(f"{place}/{name}/entry_points.txt", "rb") as stream,
    ):
        return GROUP.encode() in stream.read()
    return False


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
