"""Rewrites registered in a database, with their metadata."""

from __future__ import annotations

from typing import Any, NamedTuple

from .cards import PatternCard


class Entry(NamedTuple):
    """A registered rewrite and its metadata.

    :param name: its name
    :param declared: a class of patterns, a pattern, a rewriter, another database; the card of a
        class whose module is not imported
    :param tags: its tags
    :param position: its place in a sequence
    :param words: every word that selects it: names, name of the class, tags, name of the database
    :param serial: order of the registration
    :param aliases: its other names

    >>> from xoptim.catalogue.registry import pattern_database
    >>> pattern_database()["NotNot"].tags
    ('default', 'exact')
    """

    name: str
    declared: Any
    tags: tuple[str, ...]
    position: float | None
    words: frozenset[str]
    serial: int
    aliases: tuple[str, ...] = ()

    @property
    def rewrite(self) -> Any:
        """The rewrite. The module of a card is imported."""
        return self.declared.load() if isinstance(self.declared, PatternCard) else self.declared
