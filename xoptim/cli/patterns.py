"""``xoptim patterns``: the sets of patterns and what each pattern does."""

from __future__ import annotations

import inspect
from typing import Any

import click

from xbuilder.errors import OptionError

from ..api.members import Member
from ..api.patterns import PatternOptimization
from .output import common_options, console, counted, print_json, print_table

#: tags that are no sets: a selection by precision goes through the sets
_PRECISIONS = {"exact", "rounding"}
#: width of the list when it is not read on a terminal: a pattern takes one line
_WIDE = 1000


def check_selection(selection: str | None) -> None:
    """Checks that a selection of patterns names existing ones, before anything is read.

    :param selection: such as `default+onnxruntime-Cast`, None for none
    :raises OptionError: if it is empty or a name is unknown, the message suggests close ones
    """
    if selection is not None and not selection.strip():
        raise OptionError("the selection of patterns is empty, 'none' selects no pattern")
    if selection is not None:
        from ..api.selection import get_pattern_list

        get_pattern_list(selection)


@click.command()
@click.argument("selection", required=False)
@common_options
def patterns(selection: str | None, as_json: bool, verbose: int) -> None:
    """Lists the patterns of SELECTION, all of them by default."""
    check_selection(selection)
    rows = describe_patterns(selection)
    if as_json:
        print_json(rows)
        return
    print_table(
        console(width=_WIDE),
        counted(len(rows), "pattern"),
        ["name", "sets", "precision", "what it does"],
        [(r["name"], " ".join(r["sets"]), r["precision"], r["summary"]) for r in rows],
        left=4,
        one_line=True,
    )


def describe_patterns(selection: str | None = None) -> list[dict[str, Any]]:
    """Describes patterns.

    :param selection: such as `default+onnxruntime-Cast`, None for every pattern
    :return: rows with `name`, `sets`, `roots`, `priority`, `min_opset`, `precision`, `summary`
    :raises OptionError: if a name is unknown
    """
    from ..api.registry import all_patterns
    from ..api.selection import get_pattern_list

    names = list(all_patterns()) if selection is None else selection
    return [_describe(member) for member in get_pattern_list(names)]


def _describe(member: Member) -> dict[str, Any]:
    return {
        "name": member.name,
        "sets": [tag for tag in member.tags if tag not in _PRECISIONS],
        "roots": list(member.roots) if isinstance(member, PatternOptimization) else [],
        "priority": member.priority,
        "min_opset": member.min_opset,
        "precision": member.precision,
        "summary": (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " "),
    }
