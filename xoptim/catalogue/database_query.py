"""Queries of a database of rewrites: by tags, by names, by positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from xbuilder.errors import OptionError

Words = str | Iterable[str]


def as_words(words: Words) -> tuple[str, ...]:
    """Names and tags without duplicates, in the given order; those of a set are sorted.

    :raises OptionError: if one of them is not a word
    """
    if isinstance(words, str):
        words = (words,)
    found = tuple(dict.fromkeys(sorted(words) if isinstance(words, Set) else words))
    wrong = [w for w in found if not isinstance(w, str) or not w]
    if wrong:
        raise OptionError(f"A tag or a name is a string which is not empty, not {wrong[0]!r}.")
    return found


def as_position(position: float | str | None) -> float | None:
    """A position in a sequence: a number, or its text.

    :raises OptionError: if it is neither
    """
    if position is None:
        return None
    try:
        number = float(position)
    except (TypeError, ValueError):
        number = inf
    if abs(number) < inf:
        return number
    raise OptionError(f"A position is a number, such as 1.5 or '50.2', not {position!r}.")


@dataclass(frozen=True)
class RewriteDatabaseQuery:
    """A query of a database: by tags, by names, by positions. It is immutable: every method returns
    another query.

    A tag and a name are used the same way. Words make sets: their order means nothing, the result
    is in the order of the database.

    :param include: a rewrite has at least one of these tags; None takes every rewrite
    :param require: it has all of these
    :param exclude: it has none of these
    :param subquery: queries for the inner databases, by name, instead of this one
    :param position_cutoff: keeps the rewrites before this position
    :param database: the database it was made for, None for the one of this project; see
        :meth:`RewriteDatabase.as_query`
    :param extra_rewrites: rewrites to add to the result, each alone or with its position
        `(rewrite, 1.5)`; one with the name of a rewrite that was found takes its place; what an
        extra query finds is required and excluded as well, the rewrites only excluded

    ::

        query = RewriteDatabaseQuery(["default", "onnxruntime"], require="exact")
        OptimizationOptions(patterns=query.excluding("Cast", "merge"))
    """

    include: Words | None
    require: Words = ()
    exclude: Words = ()
    subquery: Mapping[str, RewriteDatabaseQuery] = field(default_factory=dict)
    position_cutoff: float = inf
    extra_rewrites: Iterable[Any] = ()
    database: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_value = object.__setattr__
        if self.include is not None:
            set_value(self, "include", tuple(sorted(as_words(self.include))))
        for name in ("require", "exclude"):
            set_value(self, name, tuple(sorted(as_words(getattr(self, name)))))
        set_value(self, "extra_rewrites", tuple(self.extra_rewrites))
        cutoff = self.position_cutoff
        set_value(self, "position_cutoff", inf if cutoff == inf else as_position(cutoff))
        wrong = [n for n, q in self.subquery.items() if not isinstance(q, RewriteDatabaseQuery)]
        if wrong:
            raise OptionError(f"What to ask database {wrong[0]!r} is not a RewriteDatabaseQuery.")

    def including(self, *tags: str) -> RewriteDatabaseQuery:
        """The same query, which also takes rewrites with one of these tags."""
        if self.include is None:
            return self
        return replace(self, include=(*self.include, *tags))

    def requiring(self, *tags: str) -> RewriteDatabaseQuery:
        """The same query, restricted to rewrites with all these tags."""
        return replace(self, require=(*self.require, *tags))

    def excluding(self, *tags: str) -> RewriteDatabaseQuery:
        """The same query, without rewrites that have one of these tags."""
        return replace(self, exclude=(*self.exclude, *tags))

    def before(self, position: float | str) -> RewriteDatabaseQuery:
        """The same query, restricted to rewrites before a position."""
        cutoff = as_position(position)
        return self if cutoff is None else replace(self, position_cutoff=cutoff)

    def register(self, *rewrites: Any) -> RewriteDatabaseQuery:
        """The same query, with extra rewrites, patterns, or results of other queries."""
        return replace(self, extra_rewrites=(*self.extra_rewrites, *rewrites))

    def words(self) -> tuple[str, ...]:
        """Every tag and name the query uses."""
        return (*(self.include or ()), *self.require, *self.exclude)

    def inner(self, name: str) -> RewriteDatabaseQuery:
        """The query for the inner database of this name."""
        return self.subquery.get(name) or replace(self, position_cutoff=inf, extra_rewrites=())

    def keeps(self, words: frozenset[str]) -> bool:
        """Whether a rewrite with these tags has all those required and none of those excluded."""
        return words.issuperset(self.require) and words.isdisjoint(self.exclude)

    def takes(self, words: frozenset[str]) -> bool:
        """Whether it takes a rewrite with these tags."""
        if self.include is not None and words.isdisjoint(self.include):
            return False
        return self.keeps(words)
