"""Loads the patterns of a user's file, `xoptim optimize --load my_patterns.py`."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from xbuilder.errors import OptionError

from ..authoring.patterns import PatternOptimization
from .installed import rollback_on_failure
from .registry import PatternClass, pattern_database, register_pattern


def load_pattern_file(path: str | Path) -> list[str]:
    """Runs a Python file and registers the patterns it defines.

    The patterns the file registers are in the sets it declares. The others are in no set and are
    selected by name. Loading a file again replaces its patterns.

    :return: names of the patterns
    :raises OptionError: the file fails, or defines no pattern

    ::

        load_pattern_file("my_patterns.py")
        options = OptimizationOptions(patterns="default+MyNegNeg")
    """
    database, name = pattern_database(), f"patterns of {os.path.realpath(path)}"
    for entry in database:
        if entry.declared.__module__ == name:
            database.remove(entry.name)
    try:
        with rollback_on_failure(database):
            module = _run(str(path), name)
            for cls in _patterns_of(module):
                if not any(e.declared is cls for e in database):
                    register_pattern(
                        priority=cls.priority, min_opset=cls.min_opset, precision=cls.precision
                    )(cls)
    except Exception as e:
        sys.modules.pop(name, None)
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == str(path)]
        where = f", line {lines[-1]}" if lines else ""
        raise OptionError(
            f"The patterns of {str(path)!r} fail{where}: {type(e).__name__}: "
            f"{str(e).removesuffix('.')}."
        ) from e
    found = [e.name for e in database if e.declared.__module__ == name]
    if not found:
        raise OptionError(f"{str(path)!r} defines no pattern.")
    return found


def _run(path: str, name: str) -> ModuleType:
    """Runs a file as a module, registered so that pickle finds it by its name."""
    loader = SourceFileLoader(name, path)
    spec = spec_from_loader(name, loader)
    assert spec is not None, "there is a loader"
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def _patterns_of(module: ModuleType) -> Iterator[PatternClass]:
    """The patterns a module defines, except private and imported ones."""
    for name, value in vars(module).items():
        is_pattern = isinstance(value, type) and issubclass(value, PatternOptimization)
        if is_pattern and value.__module__ == module.__name__ and not name.startswith("_"):
            yield value
