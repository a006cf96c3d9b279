"""The registry of patterns: a database which the decorator `register_pattern` fills."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from xbuilder.errors import OptionError
from xbuilder.support.argument_types import check_type
from xbuilder.support.gc_pause import without_gc
from xbuilder.support.walking import import_all

from ..authoring.levels import priority_of
from ..authoring.operator_names import check_declared_operators, is_tested
from ..authoring.rewriters import short_name
from .cards import (
    PatternCard,
    card_file,
    current_stamp,
    is_member,
    read_cards,
    write_cards,
)
from .database import RewriteDatabase
from .database_query import as_words
from .installed import load_installed
from .order import run_order
from .phases import PHASES, phase_of

if TYPE_CHECKING:
    from ..authoring.patterns import PatternOptimization

PatternClass: TypeAlias = "type[PatternOptimization]"
C = TypeVar("C", bound="PatternClass")

#: packages of patterns, one module per family, imported on first use
_PACKAGES = tuple(f"xoptim.patterns{end}" for end in ("", "_ort", "_ml", "_cuda"))
#: sets that exist even when a selection finds nothing in them
SETS = ("default", "onnxruntime", "ml", "experimental", "investigation", "fix", "approximate")
_PRECISIONS = ("exact", "rounding", "approximate")


def empty_database() -> RewriteDatabase:
    """A database of patterns without any: one inner database for each phase, and the tags of the
    sets.

    >>> empty_database().query("default")
    []
    """
    database = RewriteDatabase()
    for name, phase in PHASES.items():
        database.add(name, RewriteDatabase(name), position=phase.position)
    database.declare(*SETS)
    return database


#: every registered pattern, each in the database of its phase
PATTERNS = empty_database()
#: the cards of the patterns of this project, by name
_CARDS: dict[str, PatternCard] = {}


def _new_name(cls: Any, tags: Sequence[str], aliases: Sequence[str]) -> str:
    """The name of a class to register, checked to be free, as its aliases are."""
    check_type("register_pattern", cls, type, "a class")
    name = short_name(cls)
    for word in (name, *aliases) if _card_of(cls) is None else ():
        PATTERNS.check_new(word, tags)
    return name


def _card_of(cls: PatternClass) -> PatternCard | None:
    """The card of a class that is not registered yet, None if there is none."""
    card = _CARDS.get(short_name(cls))
    is_expected = card is not None and card.cls is None and card.__module__ == cls.__module__
    return card if is_expected else None


def register_pattern(
    *tags: str,
    roots: Iterable[str] = (),
    priority: int | str = "usual",
    min_opset: int = 1,
    precision: str = "exact",
    tolerance: float = 0.0,
    after: Iterable[str] = (),
    reads: Iterable[str] = (),
    beyond: Iterable[str] = (),
    read_by: Iterable[str] = (),
    rank: int = 0,
    prepares: Iterable[str] = (),
    before: str | Iterable[str] = (),
    behind: str | Iterable[str] = (),
    aliases: str | Iterable[str] = (),
) -> Callable[[C], C]:
    """Decorator that adds a pattern to the database.

    :param tags: sets the pattern belongs to: `"default"`, `"onnxruntime"`, ...; and its phase, see
        :func:`xoptim.catalogue.phases.phase_of`
    :param roots: operator types `match` is called on
    :param priority: see :class:`PatternOptimization`
    :param min_opset: lowest main opset
    :param after: likewise
    :param reads: likewise
    :param beyond: likewise
    :param read_by: likewise
    :param rank: likewise
    :param prepares: likewise
    :param before: patterns of the same priority that run after this one, on the same nodes
    :param behind: patterns of the same priority that run before this one
    :param aliases: other names of the pattern, those of patterns it does the work of
    :param precision: `exact`, `rounding` or `approximate`; the last one is a tag as well and
        excludes the sets `default` and `onnxruntime`
    :param tolerance: relative difference of the results, besides the rounding of their type
    :raises OptionError: the name is taken or an option is not valid

    ::

        @register_pattern("default", roots=("Transpose",))
        class TransposeTransposePattern(PatternOptimization):
            ...
    """
    names = {"roots": roots, "after": after, "reads": reads, "beyond": beyond, "read_by": read_by}

    def register(cls: C) -> C:
        name, cls.aliases = _new_name(cls, tags, as_words(aliases)), as_words(aliases)
        check_precision(name, precision, tags)
        cls.phase = phase_of(name, cls.__module__, tags)
        sets = tuple(t for t in tags if t not in PHASES)
        cls.tags = (*sets, precision) if precision not in sets else sets
        cls.precision, cls.tolerance = precision, tolerance
        cls.priority, cls.min_opset, cls.rank = priority_of(priority), min_opset, rank or cls.rank
        cls.before, cls.behind = as_words(before), as_words(behind)
        _declare(cls, prepares=prepares, **names)
        _add(name, cls)
        return cls

    return register


def _declare(cls: PatternClass, **names: Iterable[str]) -> None:
    """Sets the declarations of a class that are not empty."""
    declared = {attribute: tuple(words) for attribute, words in names.items() if words}
    known = vars(cls)  # they were checked when the class was made
    new = {
        attribute: words for attribute, words in declared.items() if known.get(attribute) != words
    }
    if not is_tested(cls.__module__):
        check_declared_operators(f"Pattern {short_name(cls)!r}", new)
    for attribute, words in declared.items():
        setattr(cls, attribute, words)


def _add(name: str, cls: PatternClass) -> None:
    """Adds a class to the database, or to its card."""
    card = _card_of(cls)
    if card is None:
        PATTERNS[cls.phase].add(name, cls, cls.tags, aliases=cls.aliases)
    else:
        card.cls = cls
    copyreg.pickle(cls, _pickled)


def check_precision(name: str, precision: str, tags: Sequence[str] = ()) -> None:
    """Checks what a pattern declares of its precision.

    :param name: the pattern, for the message
    :param precision: what it declares
    :param tags: the sets it belongs to
    :raises OptionError: there is no such precision, or the sets do not accept it

    >>> check_precision("GeluErf", "rounding", ["default"])
    """
    if precision not in _PRECISIONS:
        raise OptionError(f"Precision of {name!r} must be one of {_PRECISIONS}.")
    if precision == "approximate" and {"default", "onnxruntime"} & set(tags):
        raise OptionError(f"Pattern {name!r} is approximate, it cannot be in a default set.")


def _pickled(pattern: PatternOptimization) -> tuple[Any, ...]:
    """Pickles a registered pattern by its name, because a decorator may have made its class."""
    return _restored, (short_name(type(pattern)), dict(pattern.__dict__))


def _restored(name: str, state: dict[str, Any]) -> PatternOptimization:
    entry = pattern_database().find(name)
    if entry is None:
        raise OptionError(f"Pattern {name!r} is not registered here, import its module first.")
    pattern: PatternOptimization = entry.rewrite.__new__(entry.rewrite)
    pattern.__dict__.update(state)
    return pattern


def is_shipped(pattern: PatternOptimization | PatternClass | PatternCard) -> bool:
    """Whether a pattern is one of this project. Their tests already check every call, with
    ``verifies=True``."""
    return is_tested(pattern.__module__)


@lru_cache(maxsize=1)
@without_gc
def load_patterns() -> None:
    """Registers the cards of the patterns of this project, or imports every family if there are
    none, then loads the patterns of other distributions, once. Patterns are in the order of
    :func:`.run_order`, not in the one of the imports."""
    is_first = not any(is_member(e.declared) for e in PATTERNS)
    path, stamp = card_file(), current_stamp()
    cards = read_cards(path, stamp)
    for card in cards or ():
        _register_card(card, is_first)
    for package in _PACKAGES if cards is None else ():
        import_all(package, import_module(package).__path__)
    if cards is None or not is_first:
        known = [e for e in PATTERNS if is_member(e.declared)]
        places = {known[i].name: k for k, i in enumerate(run_order([e.declared for e in known]))}
        PATTERNS.reorder(lambda e: places.get(e.name, len(places)))
    if cards is None and is_first:  # nobody had them yet: they declare what their files say
        write_cards(path, stamp, [e.declared for e in PATTERNS])
    load_installed(PATTERNS)


def _register_card(card: PatternCard, is_first: bool) -> None:
    """Registers a pattern that is not imported, unless its module already is.

    :param is_first: only cards are registered, whose names were checked before they were written
    """
    phase = PATTERNS[card.phase]
    if is_first:
        phase.add_checked(card.name, card, card.tags, aliases=card.aliases)
    else:
        known = PATTERNS.find(card.name)
        if known is not None and known.declared.__module__ == card.__module__:
            return
        phase.add(card.name, card, card.tags, aliases=card.aliases)
    _CARDS[card.name] = card


def pattern_database() -> RewriteDatabase:
    """The database of every registered pattern, with one inner database for each phase."""
    load_patterns()
    return PATTERNS


def all_patterns() -> dict[str, PatternClass]:
    """Every registered pattern by short name, in the order of the database."""
    return {e.name: e.rewrite for e in pattern_database()}
