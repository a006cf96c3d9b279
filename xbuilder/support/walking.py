"""Imports every module of a package: a new file is found by itself."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module

from .gc_pause import without_gc


@without_gc
def import_all(package: str, path: Iterable[str]) -> None:
    """Imports the modules of a package and of its folders, in alphabetical order.

    :param package: its name
    :param path: its attribute `__path__`

    ::

        import_all(__name__, __path__)
    """
    for info in pkgutil.walk_packages(path, f"{package}."):
        import_module(info.name)
