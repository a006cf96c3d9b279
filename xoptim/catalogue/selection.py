"""Turns a user's selection (`"default+onnxruntime-CastCast"`) into a list of patterns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

from xbuilder.errors import OptionError
from xbuilder.support.deferred_list import Deferred, DeferredList

from ..authoring.rewriters import Member
from .cards import PatternCard
from .database import RewriteDatabase
from .database_query import RewriteDatabaseQuery
from .order import check_names, in_order
from .registry import is_shipped, pattern_database

if TYPE_CHECKING:
    from ..authoring.patterns import PatternOptimization

#: a class of patterns, or the card of one
Declared: TypeAlias = "type[PatternOptimization] | PatternCard"


class Selection(DeferredList[Member]):
    """The list of rewrites a user selected, in the order they run when it was made. A pattern of
    this project is made when it is read."""


def as_selection(patterns: Any) -> Selection:
    """The selection itself, or the one made from something else.

    :param patterns: see :func:`get_pattern_list`
    """
    if isinstance(patterns, Selection) and patterns.is_as_made():
        return patterns
    return get_pattern_list(patterns)


def get_pattern_list(
    positive_list: Any = "default", negative_list: Any = None, verbose: int = 0
) -> Selection:
    """Builds the list of patterns a user selects, graph rewriters included.

    :param positive_list: a selection (`"default+onnxruntime-CastCast"`, `"default&canonicalize"`,
        `"A,B"`), a :class:`RewriteDatabaseQuery`, None or `"none"` for no pattern, or a list of
        names, queries, classes and instances
    :param negative_list: patterns to remove, same forms
    :param verbose: verbosity of the patterns
    :return: instances, each class once, in the order they run, see :func:`.run_order`: the order of
        the words means nothing; an instance prevails over what a name of the same list makes
    :raises OptionError: a name is not known, close names are suggested
    """
    declared = _declared(positive_list) if negative_list is None else None
    if declared is not None:
        return Selection(_instances(declared, verbose))
    selected = _select(positive_list, verbose)
    check_declarations(selected)
    if negative_list is not None:
        removed = set(_select(negative_list, verbose))
        selected = [p for p in selected if p not in removed]
    return Selection(selected)


def _declared(what: Any) -> tuple[Declared, ...] | None:
    """The classes of patterns a text or a query selects, and the cards of those that are not
    imported, in the order they run; None if it selects anything else, or is neither."""
    if isinstance(what, RewriteDatabaseQuery):
        return _only_classes(what.database or pattern_database(), what)
    if not isinstance(what, str) or what.strip().lower() == "none":
        return None
    database = pattern_database()  # its first call registers the patterns
    return _classes_of(what, database, RewriteDatabase.generation)


def _instances(
    declared: tuple[Declared, ...], verbose: int
) -> list[PatternOptimization | Deferred[Any]]:
    """The patterns of a selection. One of this project is made when it is read."""
    slots = _slots(declared, verbose)
    items: list[Any] = [s if s.__class__ is Deferred else s(verbose=verbose) for s in slots]
    given = [m for m in items if m.__class__ is not Deferred]
    if given:
        check_declarations(given)
    return items


@lru_cache(maxsize=64)
def _slots(declared: tuple[Declared, ...], verbose: int) -> tuple[Any, ...]:
    """The placeholders of the patterns of this project, and the classes of the others. Selections
    of the same patterns share them."""
    slots = [_deferred(d, verbose) if is_shipped(d) else d for d in declared]
    # those of a card were checked before it was written
    check_declarations(s.stands_for for s in slots if isinstance(s, Deferred))
    return tuple(slots)


def _deferred(declared: Declared, verbose: int) -> Deferred[PatternOptimization]:
    """The placeholder of a pattern of this project. Its card stands for it, or an instance nobody
    else has."""
    if isinstance(declared, PatternCard):
        return Deferred(lambda: declared.load()(verbose=verbose), declared)
    return Deferred(partial(declared, verbose=verbose), declared(verbose=verbose))


#: the declarations of a pattern that are tuples of names
DECLARED = frozenset(("roots", "after", "reads", "beyond", "read_by", "prepares"))


def check_declarations(members: Iterable[Member | PatternCard]) -> None:
    """Checks the declarations of patterns. Those of a card were, before it was written.

    :param members: patterns, rewriters, cards
    :raises OptionError: it is not a tuple of names, or a pattern comes before an unknown one
    """
    rows = list(members)
    new = [
        m
        for m in rows
        if isinstance(m, Member)
        and (m.checked is not type(m) or not DECLARED.isdisjoint(m.__dict__))
    ]
    if not new:
        return
    check_names(rows, pattern_database().names())
    for member in new:
        if _is_pattern(type(member)):
            _check_names(cast("PatternOptimization", member))
        else:
            type(member).checked = type(member)


def _check_names(pattern: PatternOptimization) -> None:
    """Checks that a pattern declares tuples: a string would be read letter by letter. Each class is
    checked once, and so is an instance that declares something on its own."""
    declares_nothing = DECLARED.isdisjoint(pattern.__dict__)
    if declares_nothing and pattern.has_lazy_declarations:
        type(pattern).checked = type(pattern)
        return
    for attribute in sorted(DECLARED):
        names = getattr(pattern, attribute)
        if names == ():
            continue  # true for most
        if not isinstance(names, (tuple, list)) or not all(isinstance(n, str) for n in names):
            raise OptionError(
                f"Attribute {attribute} of pattern {pattern.name} must be a tuple of operator "
                f"types, not {names!r}; write ({str(names)!r},) for one type."
            )
    if declares_nothing:
        type(pattern).checked = type(pattern)


def _select(what: Any, verbose: int) -> list[Member]:
    if what is None:
        return []
    if isinstance(what, str) and what.strip().lower() == "none":
        return []
    declared = _declared(what)
    if declared is not None:
        return list(Selection(_instances(declared, verbose)))
    if isinstance(what, (str, RewriteDatabaseQuery)):
        database = getattr(what, "database", None) or pattern_database()
        query = database.as_query(what, verbose=verbose)
        return in_order(_made(r, verbose) for r in database.select(query))
    if isinstance(what, Member):
        return [what]
    if isinstance(what, type) and issubclass(what, Member):
        return [_made(what, verbose)]
    if isinstance(what, Iterable):
        given = list(what)
        rows = [m for m in given if isinstance(m, Member)]
        for other in given:
            rows += () if isinstance(other, Member) else _select(other, verbose)
        return in_order(_unique(rows))
    raise OptionError(
        f"A selection of patterns is None, a string, a query, or a list of names, classes and "
        f"instances, not {type(what)}."
    )


@lru_cache(maxsize=64)
def _classes_of(
    text: str, database: RewriteDatabase, generation: int
) -> tuple[Declared, ...] | None:
    return _only_classes(database, text)


def _only_classes(
    database: RewriteDatabase, what: RewriteDatabaseQuery | str
) -> tuple[Declared, ...] | None:
    found = [e.declared for e in database.entries_of(database.as_query(what))]
    if not all(isinstance(f, PatternCard) or _is_pattern(f) for f in found):
        return None
    return tuple(in_order(found))


def _is_pattern(rewrite: Any) -> TypeGuard[type[PatternOptimization]]:
    from ..authoring.patterns import PatternOptimization

    return isinstance(rewrite, type) and issubclass(rewrite, PatternOptimization)


def _made(rewrite: Any, verbose: int) -> Member:
    """Turns a class, or an instance, into a pattern or a rewriter.

    :raises OptionError: it is neither
    """
    if _is_pattern(rewrite):
        return rewrite(verbose=verbose)
    if isinstance(rewrite, type) and issubclass(rewrite, Member):
        return rewrite()
    if isinstance(rewrite, Member):
        return rewrite
    raise OptionError(f"{rewrite!r} is not a pattern nor a rewriter.")


def _unique(patterns: list[Member]) -> list[Member]:
    """Keeps the first instance of each class; generated classes all differ."""
    return list(dict.fromkeys(patterns))


def single_pattern(what: Any) -> PatternOptimization:
    """The only pattern of a selection.

    :raises OptionError: the selection has none or several, or is a graph rewriter
    """
    from ..authoring.patterns import PatternOptimization

    found = get_pattern(what)
    if not isinstance(found, PatternOptimization):
        raise OptionError(f"{what!r} works on a whole graph, it is not a pattern.")
    return found


def get_pattern(obj: Any, as_list: bool = False, verbose: int = 0) -> Any:
    """Builds one pattern from a name, a class or an instance.

    :param obj: the name, the class or the instance
    :param as_list: returns a list, a selection of several patterns is then accepted
    :param verbose: verbosity of the pattern
    :raises OptionError: the name is not known, or is a set and *as_list* is False
    """
    patterns = _select(obj, verbose)
    if as_list:
        return patterns
    if len(patterns) != 1:
        raise OptionError(
            f"{obj!r} gives {len(patterns)} patterns, one was expected; use as_list=True."
        )
    return patterns[0]
