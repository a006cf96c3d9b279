"""Databases of rewrites, registered under a name and tags, queried in the order of registration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import IO, Any, ClassVar

from xbuilder.errors import OptionError
from xbuilder.operators.op_schemas import schema_of
from xbuilder.support.close_names import closest_names

from ..authoring.rewriters import short_name
from .cards import PatternCard
from .database_query import RewriteDatabaseQuery, as_position, as_words
from .entry import Entry
from .query_text import query_of_names, read_call, read_signed_names

#: width of a summary that is not printed on a terminal
_WIDTH = 120


class RewriteDatabase:
    """Rewrites by name and by tag. A word means one thing: a name already taken is
    refused, and so is a name that is also a tag, or a tag that is also a name.

    A database may hold others. A query traverses them as if they were one, in the order of the
    registrations: an inner database receives the same query, or the one the query has for its
    name. It is left out if its own name or tags are excluded, or if its position is cut off. The
    extra rewrites and the cutoff of a query do not apply to inner databases.

    A registration costs O(number of inner databases), a query O(number of rewrites).

    :param name: every rewrite of the database has it as a tag

    ::

        database = RewriteDatabase("mine")
        database.register("NegNeg", NegNegPattern, "default", "cheap")

        @database.register("default", position=1.5)
        class ClipClipPattern(Rewrite):
            ...

        database.query("default-cheap")
    """

    #: number of changes of all databases: a cached selection is valid until it changes
    generation: ClassVar[int] = 0

    def __init__(self, name: str = ""):
        self.name = name
        self._entries: dict[str, Entry] = {}
        #: name of a class, alias -> name of the rewrite
        self._others: dict[str, str] = {}
        #: how many rewrites have a tag
        self._tags: dict[str, int] = {}
        #: the databases among the rewrites
        self._inner: dict[str, RewriteDatabase] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self)} rewrites)"

    # -- content

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __iter__(self) -> Iterator[Entry]:
        """Every rewrite, inner databases included, in the order of the registrations."""
        found = {e.serial: e for e in self._all()}
        return iter([found[serial] for serial in sorted(found)])

    def _all(self) -> Iterator[Entry]:
        for entry in self._entries.values():
            if isinstance(entry.declared, RewriteDatabase):
                yield from entry.declared._all()
            else:
                yield entry

    def entries(self) -> list[Entry]:
        """The entries registered here. Inner databases are not opened."""
        return list(self._entries.values())

    def inner(self) -> list[RewriteDatabase]:
        """The databases inside this one."""
        return list(self._inner.values())

    def __contains__(self, word: object) -> bool:
        """Whether a rewrite or a database has this name or this tag."""
        if word in self._entries or word in self._tags or word in self._others:
            return True
        return word == self.name or any(word in d for d in self._inner.values())

    def find(self, name: str) -> Entry | None:
        """The entry with a name, an alias, a class name, inner databases included, None if
        missing."""
        entry = self._entries.get(self._others.get(name, name))
        for database in self._inner.values() if entry is None else ():
            entry = entry or database.find(name)
        return entry

    def __getitem__(self, name: str) -> Any:
        """The rewrite, or the inner database, with a name.

        :raises OptionError: if there is none
        """
        return self._found(name).rewrite

    def _found(self, name: str) -> Entry:
        entry = self.find(name)
        if entry is None:
            raise self.unknown(name)
        return entry

    def names(self) -> list[str]:
        """Names of the rewrites, aliases included."""
        return [name for e in self for name in (e.name, *e.aliases)]

    def tags(self) -> dict[str, list[str]]:
        """Names of the rewrites having each tag."""
        rows: dict[str, list[str]] = {tag: [] for tag in self._tags}
        for entry in self:
            for tag in entry.tags:
                rows.setdefault(tag, []).append(entry.name)
        return rows

    # -- registration

    def declare(self, *tags: str) -> None:
        """Declares tags, even if no rewrite has them yet."""
        _next_serial()
        for tag in as_words(tags):
            self._tags[tag] = self._tags.get(tag, 0) + 1

    def register(self, *what: Any, name: str = "", position: float | str | None = None) -> Any:
        """Adds a rewrite. As a function, `register("Name", rewrite, "tag", ...)` or
        `register(rewrite, "tag", ...)`, it returns the rewrite; as a decorator,
        `@register("tag", ...)`, it returns the class or the function unchanged.

        :param what: a name and a rewrite, or a rewrite alone, then tags; or tags alone
        :param name: the name, when it is not the one of the class or of the function
        :param position: place in a sequence, `50.2` or `"50.2"`
        :raises OptionError: the name is taken, is a tag, or nothing gives it
        """
        words = list(what)
        if len(words) > 1 and isinstance(words[0], str) and not isinstance(words[1], str):
            name = words.pop(0)
        if not words or isinstance(words[0], str):
            return lambda rewrite: self.register(rewrite, *words, name=name, position=position)
        rewrite = words.pop(0)
        self.add(name or name_of(rewrite), rewrite, as_words(words), as_position(position))
        return rewrite

    def add(
        self,
        name: str,
        rewrite: Any,
        tags: tuple[str, ...] = (),
        position: float | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Entry:
        """Adds a rewrite, see :meth:`register`.

        :param name: its name
        :param rewrite: the rewrite
        :param tags: its tags
        :param position: its position
        :param aliases: other names: a query with one of them is a query with its name
        :raises OptionError: a name is taken, or is a tag
        """
        for word in (name, *aliases):
            self.check_new(word, tags)
        if rewrite is self or any(rewrite is d for d in self._inner.values()):
            raise OptionError(f"{rewrite!r} is in the database, a ProxyDatabase repeats it.")
        return self.add_checked(name, rewrite, tags, position, aliases)

    def add_checked(
        self,
        name: str,
        rewrite: Any,
        tags: tuple[str, ...] = (),
        position: float | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Entry:
        """Adds a rewrite whose names are known to be free, see :meth:`add`."""
        if self.name:
            tags = (*tags, self.name)
        others = {*aliases}
        if isinstance(rewrite, (type, PatternCard)):
            others |= {rewrite.__name__, *(f"{alias}Pattern" for alias in aliases)}
        self._others.update(dict.fromkeys(others, name))
        words = frozenset((name, *tags, *others))
        entry = Entry(name, rewrite, tags, position, words, _next_serial(), aliases)
        self._entries[name] = entry
        if isinstance(rewrite, RewriteDatabase):
            self._inner[name] = rewrite
        for tag in tags:
            self._tags[tag] = self._tags.get(tag, 0) + 1
        return entry

    def check_new(self, name: str, tags: Iterable[str] = ()) -> None:
        """Checks that a rewrite may have a name and tags.

        :raises OptionError: if the name is taken, is a tag, or if a tag is a name
        """
        if name in self:
            taken = self.find(name)
            if taken is None:
                raise OptionError(f"{name!r} is a tag, it cannot be the name of a rewrite.")
            raise OptionError(f"Pattern {name!r} is already registered by {taken.declared}.")
        for tag in tags:
            entry = None if tag in self._tags else self.find(tag)
            if entry is not None and not isinstance(entry.declared, RewriteDatabase):
                raise OptionError(f"{tag!r} is the name of a rewrite, it cannot be a tag.")

    def remove(self, name: str) -> None:
        """Removes the entry with a name from the database that holds it, this one or an inner one.

        :raises OptionError: if there is none
        """
        entry = self._found(name)
        if entry.name not in self._entries:
            next(d for d in self._inner.values() if d.find(name) is entry).remove(name)
            return
        _next_serial()
        del self._entries[entry.name]
        self._inner.pop(entry.name, None)
        for word in entry.words:
            self._others.pop(word, None)
        for tag in entry.tags:
            self._tags[tag] -= 1
            if not self._tags[tag]:
                del self._tags[tag]

    def reorder(self, key: Callable[[Entry], Any]) -> None:
        """Reorders every rewrite, inner databases included, as if registered in another order;
        later registrations come after.

        :param key: sort key, equal entries keep their order
        """
        self._renumber({e.serial: _next_serial() for e in sorted(self, key=key)})

    def _renumber(self, serials: Mapping[int, int]) -> None:
        rows = [e._replace(serial=serials.get(e.serial, e.serial)) for e in self.entries()]
        self._entries.clear()
        self._entries.update((e.name, e) for e in sorted(rows, key=lambda e: e.serial))
        for database in self._inner.values():
            database._renumber(serials)

    def copy(self) -> RewriteDatabase:
        """A copy, inner databases included: registering in one leaves the other as it is."""
        other = copy(self)
        other._others, other._tags = dict(self._others), dict(self._tags)
        other._inner = {name: database.copy() for name, database in self._inner.items()}
        other._entries = {
            n: e._replace(declared=other._inner.get(n, e.declared))
            for n, e in self._entries.items()
        }
        return other

    # -- queries

    def unknown(self, name: str) -> OptionError:
        """The error to raise for a name, or a tag, that does not exist."""
        tags = self.tags()
        close = closest_names(name, [*self.names(), *tags])
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        if schema_of(name, ""):
            hint += f" `xoptim patterns --op {name}` lists those that look at this operator."
        return OptionError(
            f"Unknown pattern or set of patterns {name!r}.{hint} "
            f"Sets are {sorted(tags)}; command `xoptim patterns` lists everything."
        )

    def as_query(
        self, *what: RewriteDatabaseQuery | str, **parameters: Any
    ) -> RewriteDatabaseQuery:
        """Builds a query from the text or the words of a user.

        :param what: a query; or the text of a selection, read from left to right; or several words
            with a sign, whose order does not matter: `"+default", "&exact", "-Cast"`
        :param parameters: given to the patterns written `Name(parameter=value)`
        :return: a query that knows this database: `OptimizationOptions(patterns=query)` asks it
        :raises OptionError: a name is not known, close names are suggested
        """
        if len(what) == 1 and isinstance(what[0], RewriteDatabaseQuery):
            self.check(what[0])
            return replace(what[0], database=self)
        wrong = [w for w in what if not isinstance(w, str)]
        if wrong:
            raise OptionError(f"A query is a RewriteDatabaseQuery or words, not {wrong[0]!r}.")
        terms = [t for text in what for t in read_signed_names(str(text))]
        if len(what) > 1:
            terms.sort(key=lambda t: t.sign != "+")
        for term in terms:
            if not term.has_parameters and term.text not in self:
                raise self.unknown(term.text)
        found = query_of_names(terms, lambda text: self._with_parameters(text, parameters))
        return replace(found, database=self)

    def _with_parameters(self, text: str, more: dict[str, Any]) -> tuple[str, Any]:
        """Reads `"MatMulAdd(allow_reshape=True)"`: returns the name of the pattern, and the pattern
        built with these parameters."""
        name, parameters = read_call(text)
        if name not in self:
            raise self.unknown(name)
        found = self.entries_of(RewriteDatabaseQuery((name,)))
        if len(found) != 1:
            raise OptionError(f"{name!r} is a set of patterns, it has no parameter.")
        cls = found[0].rewrite if isinstance(found[0].rewrite, type) else type(found[0].rewrite)
        try:
            return found[0].name, cls(**more, **parameters)
        except TypeError:
            known = [p for p in inspect.signature(cls).parameters if p not in more]
            raise OptionError(
                f"Pattern {name!r} does not accept {text!r}, it has {known}."
            ) from None

    def check(self, query: RewriteDatabaseQuery) -> None:
        """Checks that every name and tag of a query exists.

        :raises OptionError: otherwise, close names are suggested
        """
        rewrites = [e for e in query.extra_rewrites if not isinstance(e, RewriteDatabaseQuery)]
        extra_words = {w for e in rewrites for w in self._extra_entry(e).words}
        for word in query.words():
            if word not in self and word not in extra_words:
                raise self.unknown(word)
        for name, inner in query.subquery.items():
            database = self[name]
            if not isinstance(database, RewriteDatabase):
                raise OptionError(f"{name!r} is not a database, it cannot be asked a query.")
            database.check(inner)
        for extra in query.extra_rewrites:
            if isinstance(extra, RewriteDatabaseQuery):
                self.check(extra)

    def query(self, *what: RewriteDatabaseQuery | str) -> Any:
        """The rewrites of a query, see :meth:`select`; other databases return a rewriter."""
        return self.select(*what)

    def select(self, *what: RewriteDatabaseQuery | str) -> list[Any]:
        """The rewrites of a query, see :meth:`as_query`, inner databases opened: what was
        registered, in the order of the registrations."""
        return [e.rewrite for e in self.entries_of(self.as_query(*what))]

    def entries_of(self, query: RewriteDatabaseQuery) -> list[Entry]:
        """The entries of a query, inner databases opened, extra rewrites included."""
        return self.add_extra(self._opened(query), query)

    def _opened(self, query: RewriteDatabaseQuery) -> list[Entry]:
        """The entries a query finds, inner databases opened, extra rewrites left out."""
        rows = self.found_in(query)
        if not self._inner:
            return rows
        opened = [e for e in rows if e.name not in self._inner]
        for entry in rows:
            if entry.name in self._inner:
                opened += self._inner[entry.name]._opened(query.inner(entry.name))
        return opened

    def found_in(self, query: RewriteDatabaseQuery) -> list[Entry]:
        """The entries a query finds here. Inner databases to query are among them, not opened."""
        rows: list[Entry] = []
        for entry in self._entries.values():
            if entry.position is not None and entry.position >= query.position_cutoff:
                continue
            if entry.name in self._inner:
                if entry.words.isdisjoint(query.exclude):
                    rows.append(entry)
            elif query.takes(entry.words):
                rows.append(entry)
        return rows

    def add_extra(self, found: Iterable[Entry], query: RewriteDatabaseQuery) -> list[Entry]:
        """Adds the extra rewrites of a query to what it found; each name once, in the order of the
        registrations, those that are not registered come last."""
        rows = {e.name: e for e in found}
        for extra in query.extra_rewrites:
            if isinstance(extra, RewriteDatabaseQuery):
                for entry in self.entries_of(extra):
                    if query.keeps(entry.words):
                        explicit = self.find(entry.name) is not entry
                        rows[entry.name] = entry if explicit else rows.get(entry.name, entry)
            else:
                entry = self._extra_entry(extra)
                if entry.words.isdisjoint(query.exclude):
                    rows[entry.name] = entry
        return sorted(rows.values(), key=lambda e: e.serial)

    def _extra_entry(self, extra: Any) -> Entry:
        rewrite, position = extra if isinstance(extra, tuple) else (extra, None)
        name = name_of(rewrite)
        known = self.find(name)
        if known is not None and known.rewrite in (rewrite, type(rewrite)):
            place = known.position if position is None else as_position(position)
            return known._replace(declared=rewrite, position=place)
        words = frozenset((name, *getattr(rewrite, "tags", ())))
        return Entry(name, rewrite, (), as_position(position), words, _next_serial())

    # -- display

    def summary_rows(
        self, query: RewriteDatabaseQuery | None = None, depth: int = 0
    ) -> Iterator[tuple[str, str, str, str]]:
        """Position, name, kind and tags of each entry, followed by the entries of each inner
        database.

        :param query: what to show, everything by default
        :param depth: how deep the database is in another one
        """
        selected = None if query is None else {e.serial for e in self.entries_of(query)}
        for entry in self._entries.values():
            position = "" if entry.position is None else f"{entry.position:g}"
            name, tags = "  " * depth + entry.name, " ".join(entry.tags)
            declared = entry.declared
            if isinstance(declared, RewriteDatabase):
                inner = None if query is None else query.inner(entry.name)
                rows = list(declared.summary_rows(inner, depth + 1))
                yield position, f"{name} ({len(rows)})", type(declared).__name__, tags
                yield from rows
            elif selected is None or entry.serial in selected:
                is_named = isinstance(declared, (type, PatternCard))
                yield position, name, (declared if is_named else type(declared)).__name__, tags

    def print_summary(
        self, file: IO[str] | None = None, query: RewriteDatabaseQuery | None = None
    ) -> None:
        """Prints the entries as a table, inner databases included.

        :param file: where to print, the standard output by default
        :param query: what to show, everything by default
        """
        from rich.console import Console
        from rich.table import Table

        table = Table(title=f"{type(self).__name__} {self.name}".strip())
        for title in ("position", "name", "kind", "tags"):
            table.add_column(title, no_wrap=title == "name")
        for row in self.summary_rows(query):
            table.add_row(*row)
        Console(file=file, width=None if file is None else _WIDTH).print(table)


class ProxyDatabase(RewriteDatabase):
    """Another database under another name, at another place: the same rewrites are queried twice in
    a sequence. A registration in one is in the other.

    ::

        sequence.register("merge", merge, position=0)
        sequence.register("merge_again", ProxyDatabase(merge), position=50)
    """

    def __init__(self, database: RewriteDatabase):
        self.database = database
        self.name = database.name
        self._entries, self._others = database._entries, database._others
        self._tags, self._inner = database._tags, database._inner

    def add(self, *what: Any, **more: Any) -> Entry:
        """Adds a rewrite to the other database."""
        return self.database.add(*what, **more)

    def copy(self) -> ProxyDatabase:
        """A proxy of a copy of the other database."""
        return ProxyDatabase(self.database.copy())

    def query(self, *what: RewriteDatabaseQuery | str) -> Any:
        """The answer of the other database."""
        return self.database.query(*what)


def _next_serial() -> int:
    """Serial number of a registration; also counts a change of the databases."""
    RewriteDatabase.generation += 1
    return RewriteDatabase.generation


def name_of(rewrite: Any) -> str:
    """Name of a rewrite: its own, or the one of its class.

    :raises OptionError: if it has none
    """
    if isinstance(rewrite, type):
        return short_name(rewrite)
    name = getattr(rewrite, "name", "") or getattr(rewrite, "__name__", "")
    if not name or not isinstance(name, str):
        raise OptionError(f"{rewrite!r} has no name, give one: register(name, rewrite, ...).")
    return name
