"""Databases whose queries make a rewriter: a sequence, an equilibrium or a walk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..catalogue.database import ProxyDatabase, RewriteDatabase
from ..catalogue.database_query import RewriteDatabaseQuery
from ..catalogue.entry import Entry
from ..catalogue.registry import pattern_database
from ..engine.failures import OnFailure
from .equilibrium import EquilibriumGraphRewriter
from .rewriters import GraphRewriter
from .sequential import SequentialGraphRewriter
from .walking import Order, WalkingGraphRewriter

#: tags of the rewriters that do not run with the others of an equilibrium
FINAL, CLEANUP = "final", "cleanup"


class RewriterDatabase(RewriteDatabase):
    """A database whose :meth:`query` makes a rewriter; a subclass defines :meth:`build`.

    A database inside it makes a rewriter as well, unless it finds nothing.

    :param name: see :class:`RewriteDatabase`
    :param on_failure: policy for a rewrite that fails, see :class:`CompositeRewriter`
    """

    def __init__(self, name: str = "", on_failure: str | OnFailure | None = None):
        super().__init__(name)
        self.on_failure = on_failure

    def query(self, *what: RewriteDatabaseQuery | str) -> GraphRewriter:
        """The rewriter of a query, see :meth:`RewriteDatabase.as_query`."""
        return self.build(self.as_query(*what))

    def build(self, query: RewriteDatabaseQuery) -> GraphRewriter:
        """Makes the rewriter of a query whose words are known."""
        raise NotImplementedError(f"{type(self).__name__} must define method build.")

    def found_here(self, query: RewriteDatabaseQuery) -> list[Entry]:
        """The entries of a query, where inner databases are replaced by their rewriters."""
        rows = []
        for entry in self.add_extra(self.found_in(query), query):
            if isinstance(entry.declared, RewriteDatabase):
                inner = query.inner(entry.name)
                if not entry.rewrite.entries_of(inner):
                    continue
                entry = entry._replace(declared=rewriter_of(entry.rewrite, inner, entry.name))
            rows.append(entry)
        return rows


def rewriter_of(database: RewriteDatabase, query: RewriteDatabaseQuery, name: str) -> GraphRewriter:
    """The rewriter a database makes for a query, an equilibrium by default.

    :param database: the database
    :param query: the query, whose words may be unknown to the database
    :param name: name of the rewriter of a database that makes none
    """
    if isinstance(database, ProxyDatabase):
        return rewriter_of(database.database, query, name)
    if isinstance(database, RewriterDatabase):
        return database.build(query)
    return EquilibriumGraphRewriter([e.rewrite for e in database.entries_of(query)], name=name)


class SequenceDatabase(RewriterDatabase):
    """Rewriters by position. The rewriter of a query runs each of them once, in order.

    Without a position, a rewriter comes after those that were registered; an extra one comes last.

    ::

        database = SequenceDatabase()
        database.register("merge", MergeOptimizer(), "fast", position=0)
        database.register("canonicalize", EquilibriumDatabase("canonicalize"), position=1)
        database.register("merge_again", MergeOptimizer(), "slow", position="50.2")
        database.query(RewriteDatabaseQuery("fast", position_cutoff=50)).rewrite(builder)
    """

    def add(
        self,
        name: str,
        rewrite: Any,
        tags: tuple[str, ...] = (),
        position: float | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Entry:
        """Adds a rewrite, see :meth:`RewriteDatabase.register`."""
        if position is None:
            position = max((position_of(e) for e in self.entries()), default=-1.0) + 1
        return super().add(name, rewrite, tags, position, aliases)

    def build(self, query: RewriteDatabaseQuery) -> SequentialGraphRewriter:
        """Makes a :class:`SequentialGraphRewriter`, in the order of the positions."""
        found = sorted(self.found_here(query), key=lambda e: (position_of(e), e.serial))
        rewrites = [e.rewrite for e in found]
        return SequentialGraphRewriter(*rewrites, name=self.name, on_failure=self.on_failure)


def position_of(entry: Entry) -> float:
    """Position of an entry, after all the others if it has none."""
    return float("inf") if entry.position is None else entry.position


class EquilibriumDatabase(RewriterDatabase):
    """Rewriters of any kind. The rewriter of a query runs them together until a fixed point.

    Those with the tag `final` run when the others change nothing any more, those with the tag
    `cleanup` after each change.

    :param name: see :class:`RewriteDatabase`
    :param max_use_ratio: see :class:`EquilibriumGraphRewriter`
    :param on_failure: see :class:`EquilibriumGraphRewriter`
    """

    def __init__(
        self,
        name: str = "",
        max_use_ratio: float | None = None,
        on_failure: str | OnFailure | None = None,
    ):
        super().__init__(name, on_failure)
        self.max_use_ratio = max_use_ratio

    def build(self, query: RewriteDatabaseQuery) -> EquilibriumGraphRewriter:
        """Makes an :class:`EquilibriumGraphRewriter`."""
        found = self.found_here(query)
        roles = {tag: _with_tag(found, tag) for tag in (FINAL, CLEANUP)}
        apart = {e.serial for rows in roles.values() for e in rows}
        return EquilibriumGraphRewriter(
            [e.rewrite for e in found if e.serial not in apart],
            self.max_use_ratio,
            [e.rewrite for e in roles[FINAL]],
            [e.rewrite for e in roles[CLEANUP]],
            self.name,
            self.on_failure,
        )


def _with_tag(entries: Iterable[Entry], tag: str) -> list[Entry]:
    return [e for e in entries if tag in e.tags]


class WalkingDatabase(RewriterDatabase):
    """Node rewriters and patterns. The rewriter of a query walks through the nodes and tries
    them in their order. Inner databases are expanded.

    :param name: see :class:`RewriteDatabase`
    :param order: see :class:`WalkingGraphRewriter`
    :param ignore_newtrees: see :class:`WalkingGraphRewriter`
    :param on_failure: see :class:`WalkingGraphRewriter`
    """

    def __init__(
        self,
        name: str = "",
        order: str | Order = "topological",
        ignore_newtrees: bool = True,
        on_failure: str | OnFailure | None = None,
    ):
        super().__init__(name, on_failure)
        self.order, self.ignore_newtrees = order, ignore_newtrees

    def build(self, query: RewriteDatabaseQuery) -> WalkingGraphRewriter:
        """Makes a :class:`WalkingGraphRewriter`."""
        return WalkingGraphRewriter(
            *(e.rewrite for e in self.entries_of(query)),
            order=self.order,
            ignore_newtrees=self.ignore_newtrees,
            name=self.name,
            on_failure=self.on_failure,
        )


def phase_sequence() -> SequenceDatabase:
    """The database of patterns as a sequence of its phases, each run until a fixed point.

    ::

        phase_sequence().query("default-stabilize").rewrite(builder)
    """
    sequence = SequenceDatabase("phases")
    for entry in pattern_database().entries():
        sequence.add(entry.name, ProxyDatabase(entry.rewrite), (), entry.position)
    return sequence
