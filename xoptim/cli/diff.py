"""``xoptim diff``: lists what differs between two models, without running them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..reports.model_diff import KINDS, DiffRow, ModelDiff
from .options.optimize_options import data_root_option
from .terminal.output import common_options, console, print_json, verbosity
from .terminal.paths import InputModel

#: rows of a table without -v
_MOST_ROWS = 40
_COUNTS = ("kind", "same", "renamed", "changed", "removed", "added")
_ROWS = ("change", "operator, type", "first model", "second model", "detail")


@click.command()
@click.argument("model", type=InputModel())
@click.argument("other", type=InputModel())
@data_root_option
@common_options
def diff(model: Path, other: Path, data_roots: Sequence[Path], as_json: bool) -> None:
    """Lists what differs between MODEL and OTHER: signature, opsets, weights, functions, nodes.

    Weights are paired by content, nodes by what they compute, then by what surrounds them; names
    come last, and another name is no difference. Nothing is run: xoptim compare does that. Exits
    with 1 if the models differ.
    """
    from xbuilder.files.model_container import ModelContainer

    from ..reports.model_diff import diff_models

    found = diff_models(*(ModelContainer.load(path, data_roots) for path in (model, other)))
    if as_json:
        print_json({"same": found.same, "counts": found.counts(), "rows": found.to_rows()})
    else:
        _print(found)
    if not found.same:
        raise click.exceptions.Exit(1)


def _print(found: ModelDiff) -> None:
    from ..reports.tables import counted, print_line, print_table

    out = console()
    print_table(out, "in both models", _COUNTS, [tuple(r.values()) for r in found.counts()])
    rows = [row for row in found.rows if verbosity() or row.change != "renamed"]
    tables: dict[tuple[int, str], list[DiffRow]] = {}
    for row in rows:
        tables.setdefault((KINDS.index(row.kind), row.where), []).append(row)
    for (position, where), listed in sorted(tables.items()):
        title = f"{KINDS[position]}s of {where}" if where else f"{KINDS[position]}s"
        shown = listed if verbosity() else listed[:_MOST_ROWS]
        print_table(out, title, _ROWS, map(_cells, shown), left=len(_ROWS))
        if len(shown) < len(listed):
            rest = counted(len(listed) - len(shown), f"other {KINDS[position]}")
            print_line(out, f"and {rest}, -v shows all of them")
    if found.same:
        renamed = f" up to {counted(len(found.rows), 'name')}" if found.rows else ""
        print_line(out, f"\nthe models are the same{renamed}")


def _cells(row: DiffRow) -> tuple[str, ...]:
    return row.change, row.operator, row.before, row.after, row.detail
