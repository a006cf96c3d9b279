"""The database of rewrites: registered by a decorator, queried by tag."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import TypeVar

from xbuilder.errors import OptionError

from .members import short_name
from .patterns import PatternOptimization

PatternClass = type[PatternOptimization]
C = TypeVar("C", bound=PatternClass)

_PATTERNS: dict[str, PatternClass] = {}
_PACKAGES = ("xoptim.patterns", "xoptim.patterns_ort", "xoptim.patterns_ml")
#: sets that exist even when a selection finds nothing in them
SETS = ("default", "onnxruntime", "ml", "experimental", "investigation", "fix", "approximate")
_PRECISIONS = ("exact", "rounding", "approximate")


def register_pattern(
    *tags: str,
    roots: Iterable[str] = (),
    priority: int = 1,
    min_opset: int = 1,
    precision: str = "exact",
    after: Iterable[str] = (),
    reads: Iterable[str] = (),
    read_by: Iterable[str] = (),
) -> Callable[[C], C]:
    """Decorator, adds a pattern to the database.

    :param tags: sets the pattern belongs to: `"default"`, `"onnxruntime"`, ...
    :param roots: operator types `match` is called on
    :param priority: see :class:`PatternOptimization`
    :param min_opset: lowest main opset
    :param after: see :class:`PatternOptimization`
    :param reads: see :class:`PatternOptimization`
    :param read_by: see :class:`PatternOptimization`
    :param precision: `exact`, `rounding` or `approximate`; the last one is a tag as well and
        excludes the sets `default` and `onnxruntime`
    :raises OptionError: the name is taken or an option is not valid

    ::

        @register_pattern("default", roots=("Transpose",))
        class TransposeTransposePattern(PatternOptimization):
            ...
    """

    def register(cls: C) -> C:
        name = short_name(cls)
        if name in _PATTERNS:
            raise OptionError(f"Pattern {name!r} is already registered by {_PATTERNS[name]}.")
        if precision not in _PRECISIONS:
            raise OptionError(f"Precision of {name!r} must be one of {_PRECISIONS}.")
        if precision == "approximate" and {"default", "onnxruntime"} & set(tags):
            raise OptionError(f"Pattern {name!r} is approximate, it cannot be in a default set.")
        cls.tags = (*tags, precision) if precision not in tags else tags
        cls.precision = precision
        cls.priority, cls.min_opset = priority, min_opset
        if roots:
            cls.roots = tuple(roots)
        if after:
            cls.after = tuple(after)
        if reads:
            cls.reads = tuple(reads)
        if read_by:
            cls.read_by = tuple(read_by)
        _PATTERNS[name] = cls
        return cls

    return register


@lru_cache(maxsize=1)
def load_patterns() -> None:
    """Imports every family, once."""
    for package in _PACKAGES:
        module = import_module(package)
        for info in sorted(pkgutil.iter_modules(module.__path__), key=lambda i: i.name):
            import_module(f"{package}.{info.name}")


def all_patterns() -> dict[str, PatternClass]:
    """Every registered pattern by short name, in a fixed order."""
    load_patterns()
    return dict(_PATTERNS)


def query(include: Iterable[str], exclude: Iterable[str] = ()) -> list[PatternClass]:
    """Patterns having every tag of *include* and none of *exclude*.

    ::

        query(["default", "exact"])
    """
    include, exclude = set(include), set(exclude)
    return [
        cls
        for cls in all_patterns().values()
        if include <= set(cls.tags) and not exclude & set(cls.tags)
    ]


def tags() -> dict[str, list[str]]:
    """Names of the patterns having each tag."""
    rows: dict[str, list[str]] = {name: [] for name in SETS}
    for name, cls in all_patterns().items():
        for tag in cls.tags:
            rows.setdefault(tag, []).append(name)
    return rows
