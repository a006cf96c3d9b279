"""``xoptim explain``: why a pattern does not match the nodes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..catalogue.selection import single_pattern
from ..tasks.explain import explain_model
from ..tasks.tables import counted
from .patterns import check_selection, load_option
from .terminal.output import common_options, print_json, print_list
from .terminal.paths import InputModel

#: results on the line of an answer
_SHOWN = 3


@click.command()
@click.argument("model", type=InputModel())
@click.argument("pattern")
@click.argument("nodes", nargs=-1)
@click.option("--after", help="Optimizes the model with these patterns before it is looked at.")
@load_option
@common_options
def explain(
    model: Path,
    pattern: str,
    nodes: tuple[str, ...],
    after: str | None,
    as_json: bool,
    verbose: int,
) -> None:
    """Says why PATTERN does not match the nodes of MODEL: the first condition that fails.

    NODES are names of nodes or of results, every node the pattern may start from by default.
    """
    check_selection(after)
    rows = explain_model(str(model), pattern, nodes, after)
    if as_json:
        print_json(rows)
        return
    if not rows:
        roots = " nor ".join(single_pattern(pattern).roots)
        click.echo(f"{pattern} starts from no node: the model has no {roots}.")
        return
    print_list(
        f"{counted(len(rows), 'node')} {pattern} starts from",
        ["result", "operator", "answer"],
        _grouped(rows),
    )


def _grouped(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """One line for all the nodes that have the same answer."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        groups.setdefault((row["operator"], row["answer"]), []).append(row["result"])
    lines = []
    for (operator, answer), results in groups.items():
        more = len(results) - _SHOWN
        shown = ", ".join(results[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        lines.append((shown, operator, answer))
    return lines
