"""Loads the patterns of other distributions, through entry points of group `xoptim.patterns`."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from types import ModuleType

from ..authoring.rewriters import is_member
from .database import RewriteDatabase
from .order import check_names, order_of

#: group of the entry points
GROUP = "xoptim.patterns"
_METADATA = (".dist-info", ".egg-info")


def distributions() -> Iterator[Distribution]:
    """Distributions of `sys.path` with entry points of the group, the first one of each name. Cost:
    reads their files of entry points, parses only those that hold the name of the group."""
    seen = set()
    for folder in dict.fromkeys(sys.path):
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:
            continue  # a zip file, or nothing
        for name in names:
            if name.endswith(_METADATA):
                path = os.path.join(folder, name)
                project = name.partition("-")[0].removesuffix(".egg-info").lower()
                if project not in seen and _has_group(path):
                    yield Distribution.at(Path(path))
                seen.add(project)


def _has_group(path: str) -> bool:
    try:
        with open(os.path.join(path, "entry_points.txt"), "rb", buffering=0) as f:
            return GROUP.encode() in f.read()
    except OSError:
        return False


def load_installed(database: RewriteDatabase) -> None:
    """Loads the patterns of other distributions. An entry point is a module that registers
    patterns, or a function without argument that does.

    If one fails, a warning names it, its registrations are undone, and the others go on.

    :param database: where they register
    """
    rows = [(d.name, p) for d in distributions() for p in d.entry_points if p.group == GROUP]
    for name, point in sorted(rows, key=lambda row: (row[0], row[1].name)):
        try:
            with all_or_nothing(database):
                _load(point)
                rewrites = [e.rewrite for e in database if is_member(e.rewrite)]
                order_of(rewrites)
                check_names(rewrites, database.names())
        except Exception as e:
            warnings.warn(
                f"The patterns of distribution {name!r} are ignored: its entry point "
                f"{point.name} = {point.value} fails, {type(e).__name__}: {e}.",
                stacklevel=2,
            )


@contextlib.contextmanager
def all_or_nothing(database: RewriteDatabase) -> Iterator[None]:
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
