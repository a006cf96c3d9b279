"""The database of patterns, filled by a decorator."""

from __future__ import annotations

import copyreg
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar

from xbuilder.argument_types import check_type
from xbuilder.errors import OptionError

from .database import RewriteDatabase
from .database_query import as_words
from .installed import load_installed
from .members import is_member, short_name
from .order import order_of
from .patterns import PatternOptimization
from .phases import PHASES, phase_of, priority_of

PatternClass = type[PatternOptimization]
C = TypeVar("C", bound=PatternClass)

#: packages of patterns, one module for each family: they are named by what is above this room
_PACKAGES: list[str] = []
#: sets that exist even when a selection finds nothing in them
SETS = ("default", "onnxruntime", "ml", "experimental", "investigation", "fix", "approximate")
_PRECISIONS = ("exact", "rounding", "approximate")


def empty_database() -> RewriteDatabase:
    """The database of patterns, empty: a database for each phase, the known sets."""
    database = RewriteDatabase()
    for name, phase in PHASES.items():
        database.add(name, RewriteDatabase(name), position=phase.position)
    database.declare(*SETS)
    return database


#: every registered pattern, each in the database of its phase
PATTERNS = empty_database()


def _new_name(cls: Any, tags: Sequence[str]) -> str:
    """The name of a class that is registered, nothing has it yet."""
    check_type("register_pattern", cls, type, "a class")
    name = short_name(cls)
    PATTERNS.check_new(name, tags)
    return name


def register_pattern(
    *tags: str,
    roots: Iterable[str] = (),
    priority: int | str = "usual",
    min_opset: int = 1,
    precision: str = "exact",
    after: Iterable[str] = (),
    reads: Iterable[str] = (),
    read_by: Iterable[str] = (),
    prepares: Iterable[str] = (),
    before: str | Iterable[str] = (),
    behind: str | Iterable[str] = (),
) -> Callable[[C], C]:
    """Decorator, adds a pattern to the database.

    :param tags: sets the pattern belongs to: `"default"`, `"onnxruntime"`, ...; and its phase, see
        :func:`xoptim.api.phases.phase_of`
    :param roots: operator types `match` is called on
    :param priority: see :class:`PatternOptimization`
    :param min_opset: lowest main opset
    :param after: see :class:`PatternOptimization`
    :param reads: see :class:`PatternOptimization`
    :param read_by: see :class:`PatternOptimization`
    :param prepares: see :class:`PatternOptimization`
    :param before: see :class:`PatternOptimization`
    :param behind: see :class:`PatternOptimization`
    :param precision: `exact`, `rounding` or `approximate`; the last one is a tag as well and
        excludes the sets `default` and `onnxruntime`
    :raises OptionError: the name is taken or an option is not valid

    ::

        @register_pattern("default", roots=("Transpose",))
        class TransposeTransposePattern(PatternOptimization):
            ...
    """

    declared = {"roots": roots, "after": after, "reads": reads, "read_by": read_by}
    declared["prepares"] = prepares

    def register(cls: C) -> C:
        name = _new_name(cls, tags)
        if precision not in _PRECISIONS:
            raise OptionError(f"Precision of {name!r} must be one of {_PRECISIONS}.")
        if precision == "approximate" and {"default", "onnxruntime"} & set(tags):
            raise OptionError(f"Pattern {name!r} is approximate, it cannot be in a default set.")
        cls.phase = phase_of(name, cls.__module__, tags)
        sets = tuple(t for t in tags if t not in PHASES)
        cls.tags = (*sets, precision) if precision not in sets else sets
        cls.precision = precision
        cls.priority, cls.min_opset = priority_of(priority), min_opset
        cls.before, cls.behind = as_words(before), as_words(behind)
        for attribute, names in declared.items():
            if names:
                setattr(cls, attribute, tuple(names))
        PATTERNS[cls.phase].add(name, cls, cls.tags)
        copyreg.pickle(cls, _pickled)
        return cls

    return register


def _pickled(pattern: PatternOptimization) -> tuple[Any, ...]:
    """How a registered pattern is pickled: by its name, a decorator may have made its class."""
    return _restored, (short_name(type(pattern)), dict(pattern.__dict__))


def _restored(name: str, state: dict[str, Any]) -> PatternOptimization:
    cls = all_patterns().get(name)
    if cls is None:
        raise OptionError(f"Pattern {name!r} is not registered here, import its module first.")
    pattern = cls.__new__(cls)
    pattern.__dict__.update(state)
    return pattern


def add_families(*packages: str) -> None:
    """Names packages whose modules register patterns. They are imported on use.

    :param packages: their order does not matter
    """
    _PACKAGES.extend(packages)


def is_shipped(pattern: PatternOptimization) -> bool:
    """Tells if a pattern is one of this project: its tests check each of its calls, with
    ``verifies=True``."""
    return type(pattern).__module__.startswith("xoptim.patterns")


@lru_cache(maxsize=1)
def load_patterns() -> None:
    """Imports every family, then the patterns other distributions bring, once. What is there before
    these is in the order :func:`.order_of` says, not in the one of the imports."""
    for package in _PACKAGES:
        module = import_module(package)
        for info in pkgutil.iter_modules(module.__path__):
            import_module(f"{package}.{info.name}")
    known = [e for e in PATTERNS if is_member(e.rewrite)]
    places = {known[i].name: k for k, i in enumerate(order_of([e.rewrite for e in known]))}
    PATTERNS.reorder(lambda e: places.get(e.name, len(places)))
    load_installed(PATTERNS)


def pattern_database() -> RewriteDatabase:
    """The database of every registered pattern: it holds one database for each phase."""
    load_patterns()
    return PATTERNS


def all_patterns() -> dict[str, PatternClass]:
    """Every registered pattern by short name, in the order of the database."""
    return {e.name: e.rewrite for e in pattern_database()}
