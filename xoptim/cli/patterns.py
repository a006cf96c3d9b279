"""``xoptim patterns``: lists the sets of patterns and the rewrites of each pattern."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import click

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names
from xbuilder.support.deferred_list import known

from ..authoring.rewriters import Member
from ..catalogue.cards import PatternCard
from ..catalogue.database_query import RewriteDatabaseQuery
from .options.selection import SelectionType, load_option
from .terminal.output import common_options, print_json, print_list

#: how equations write operators
_SIGNS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "@": "MatMul"}
#: tags that are not sets; a selection by precision goes through the sets
_PRECISIONS = {"exact", "rounding"}


@click.command()
@click.argument("selection", required=False, type=SelectionType())
@click.option("--op", help="Only those that look at an operator, such as MatMul.")
@click.option("--query", help="Words with a sign in any order: '+default &canonicalize -Cast'.")
@click.option("--before", help="Only the phases before a position, such as 2.", metavar="POSITION")
@click.option("--tags", "what", flag_value="tags", help="Lists the tags instead of the patterns.")
@load_option
@click.option("--summary", "what", flag_value="summary", help="Shows the database, by phase.")
@common_options
def patterns(
    selection: str | None,
    query: str | None,
    before: str | None,
    op: str | None,
    what: str | None,
    as_json: bool,
) -> None:
    """Lists the patterns of SELECTION, all of them by default: names and tags after '+' or ',' are
    added, '-' takes away, '&' keeps nothing else, from left to right. Names may be 'Softmax*'."""
    found = query_of(selection, query, before)
    if op is not None:
        found = _looking_at(found, op)
    if what == "summary" and not as_json:
        _print_summary(found)
    elif what == "tags":
        _print_tags(found, as_json)
    else:
        rows = describe_patterns(found)
        _print_patterns(rows if as_json else sorted(rows, key=lambda r: r["name"]), as_json)


def query_of(selection: str | None, words: str | None, before: str | None) -> RewriteDatabaseQuery:
    """The query for the patterns to list.

    :param selection: a selection, None for every pattern
    :param words: words with a sign
    :param before: a position
    :raises OptionError: a name is unknown, or both are given
    """
    from ..catalogue.registry import pattern_database

    if selection is not None and words is not None:
        raise OptionError("a selection and --query are two ways to say the same thing, give one")
    texts = words.split() if words is not None else [_named(selection or "")]
    if not any(texts) and (words is not None or selection is not None):
        raise OptionError("the selection of patterns is empty, 'none' selects no pattern")
    if not any(texts):
        found = RewriteDatabaseQuery(None)
    elif texts[0].strip().lower() == "none":
        found = RewriteDatabaseQuery(())
    else:
        found = pattern_database().as_query(*texts)
    return found if before is None else _before(found, before)


def _named(selection: str) -> str:
    """A selection whose globs are replaced by the names they match.

    :raises OptionError: a glob matches no name
    """
    from ..catalogue.registry import pattern_database

    if not set("*?[") & set(selection):
        return selection
    known = sorted(entry.name for entry in pattern_database())
    parts = re.split(r"([-+,&])", selection)
    for i, part in enumerate(parts):
        if set("*?[") & set(part):
            names = [n for n in known if fnmatchcase(n.lower(), part.strip().lower())]
            sign = parts[i - 1] if i else "+"
            if not names or sign == "&":
                why = "no pattern has such a name" if not names else "no glob comes after '&'"
                raise OptionError(f"{part!r}: {why}, `xoptim patterns` lists them.")
            parts[i] = sign.join(names) if sign == "-" else "+".join(names)
    return "".join(parts)


def _looking_at(query: RewriteDatabaseQuery, op: str) -> RewriteDatabaseQuery:
    """The patterns of a query that look at an operator.

    :raises OptionError: none does
    """
    from ..catalogue.registry import pattern_database
    from ..reports.tables import counted

    entries = list(pattern_database().entries_of(query))
    kept = [e.name for e in entries if op in _operators(e.declared)]
    if not kept:
        known = {o for e in entries for o in _operators(e.declared)} - {"*"}
        close = closest_names(op, known)
        hint = f", did you mean {' or '.join(close)}?" if close else "."
        raise OptionError(f"None of {counted(len(entries), 'pattern')} looks at {op!r}{hint}")
    return pattern_database().as_query("+".join(kept))


def _operators(member: object) -> set[str]:
    """The operators that a pattern looks at: those it starts from, those around, those that its
    equation replaces."""
    names = ("roots", "after", "reads", "beyond", "read_by")
    found = {o for name in names for o in getattr(member, name, ())}
    left, arrow, _ = (inspect.getdoc(member) or "").split("\n\n")[0].partition(" -> ")
    found.update(re.findall(r"[A-Z]\w*(?=\()", left))
    return found | {o for sign, o in _SIGNS.items() if arrow and f" {sign} " in left}


def _before(query: RewriteDatabaseQuery, position: str) -> RewriteDatabaseQuery:
    """The part of a query before a position, whatever its inner queries are."""
    extra = [
        _before(e, position) if isinstance(e, RewriteDatabaseQuery) else e
        for e in query.extra_rewrites
    ]
    return replace(query.before(position), extra_rewrites=extra)


def _print_patterns(rows: list[dict[str, Any]], as_json: bool) -> None:
    from ..reports.tables import counted

    if as_json:
        print_json(rows)
        return
    columns = ["name", "sets", "phase", "precision", "what it does"]
    table = []
    for row in rows:
        also = [f"Also named {', '.join(row['aliases'])}."] if row["aliases"] else []
        what = " ".join([row["summary"], *also])
        table.append([row["name"], " ".join(row["sets"]), row["phase"], row["precision"], what])
    print_list(counted(len(rows), "pattern"), columns, table)


def _print_tags(query: RewriteDatabaseQuery, as_json: bool) -> None:
    """Prints the tags of the selected patterns and the purpose of each phase."""
    from ..catalogue.phases import PHASES
    from ..catalogue.registry import pattern_database
    from ..reports.tables import counted

    database = pattern_database()
    kept = {e.name for e in database.entries_of(query)}
    everything = len(kept) == len(database)
    found = {tag: [n for n in names if n in kept] for tag, names in database.tags().items()}
    found = {tag: names for tag, names in found.items() if names or everything}
    if as_json:
        print_json(found)
        return
    rows = []
    for tag, names in found.items():
        phase = PHASES.get(tag)
        meaning = "" if phase is None else f"{phase.position:g}: {phase.what}"
        rows.append([tag, str(len(names)), meaning])
    print_list(counted(len(rows), "tag"), ["tag", "patterns", "phase"], rows, one_line=False)


def _print_summary(query: RewriteDatabaseQuery) -> None:
    """Prints the database phase by phase, with the selected patterns of each."""
    from ..catalogue.registry import pattern_database

    rows = list(pattern_database().summary_rows(query))
    print_list("patterns by phase", ["position", "name", "kind", "tags"], rows)


def describe_patterns(
    selection: RewriteDatabaseQuery | str | None = None,
) -> list[dict[str, Any]]:
    """Describes patterns.

    :param selection: such as `default+onnxruntime-Cast`, or a query, None for every pattern
    :return: rows with `name`, `aliases`, `sets`, `phase`, `roots`, `priority`, `min_opset`,
        `precision`, `summary`
    :raises OptionError: if a name is unknown
    """
    from ..catalogue.selection import get_pattern_list

    found = RewriteDatabaseQuery(None) if selection is None else selection
    return [_describe(member) for member in known(get_pattern_list(found))]


def _describe(member: Member | PatternCard) -> dict[str, Any]:
    return {
        "name": member.name,
        "aliases": list(member.aliases),
        "sets": [tag for tag in member.tags if tag not in _PRECISIONS],
        "phase": member.phase,
        "roots": list(getattr(member, "roots", ())),
        "priority": member.priority,
        "min_opset": member.min_opset,
        "precision": member.precision,
        "summary": (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " "),
    }
