"""``xoptim explain``: why a pattern does not match the nodes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options.selection import SelectionType, check_selection, load_option
from .terminal.output import common_options, print_json, print_list, verbosity
from .terminal.paths import InputModel
from .terminal.progress import progress

if TYPE_CHECKING:
    from ..tasks.explain import NearMiss

#: results on the line of an answer
_SHOWN = 3
#: rows of near misses, without -v
_MISSES = 20


@click.command()
@click.argument("model", type=InputModel())
@click.argument("pattern", required=False)
@click.argument("nodes", nargs=-1)
@click.option("--node", help="Tries every pattern near a node, by its name or one of its results.")
@click.option("--op", "op_type", help="Tries every pattern near the nodes of an operator.")
@click.option(
    "-p",
    "--patterns",
    type=SelectionType(),
    default="default+onnxruntime",
    show_default=True,
    help="The patterns to try, without PATTERN.",
)
@click.option(
    "--after",
    help="Optimizes the model with these patterns before it is looked at: without PATTERN, those "
    "of -p, 'none' only inlines its local functions.",
)
@load_option
@common_options
def explain(
    model: Path,
    pattern: str | None,
    nodes: tuple[str, ...],
    node: str | None,
    op_type: str | None,
    patterns: str,
    after: str | None,
    as_json: bool,
) -> None:
    """Explains why PATTERN does not match the nodes of MODEL: the first condition that fails.

    NODES are names of nodes or of results, every node the pattern may start from by default.
    Without PATTERN, the patterns that decline are ranked by how far they went: near --node or --op,
    or in the whole model.
    """
    from ..catalogue.selection import single_pattern
    from ..reports.tables import counted
    from ..tasks.explain import explain_model, near_misses

    for selection in (after, patterns):
        check_selection(selection)
    if pattern is None:
        chosen = None if after == "none" else after or patterns
        with progress() as on_step:
            on_step("tries the patterns", None)
            misses = near_misses(str(model), node, op_type, patterns, chosen)
        _print_misses(misses, as_json)
        return
    if node is not None or op_type is not None:
        raise click.UsageError(
            "--node and --op try every pattern, they do not go with PATTERN: give the nodes "
            "after it"
        )
    with progress() as on_step:
        on_step(f"tries {pattern}", None)
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


def _print_misses(misses: Sequence[NearMiss], as_json: bool) -> None:
    from ..reports.tables import counted

    if as_json:
        print_json([asdict(miss) for miss in misses])
        return
    if not misses:
        click.echo("no pattern declines after the first node it looks at, --op OP shows the others")
        return
    shown = misses if verbosity() else misses[:_MISSES]
    rows = [(m.pattern, m.visited, m.count, m.result, m.reason) for m in shown]
    columns = ["pattern", "nodes visited", "times", "from", "declines because"]
    print_list("patterns that decline, the farthest first", columns, rows)
    if len(shown) < len(misses):
        click.echo(f"and {counted(len(misses) - len(shown), 'other')}, -v shows them")


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
