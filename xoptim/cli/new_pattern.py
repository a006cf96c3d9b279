"""``xoptim new-pattern``: writes the source of a pattern that matches nodes of a model."""

from __future__ import annotations

from pathlib import Path

import click

from .terminal.output import common_options, print_json, staged_text
from .terminal.paths import InputModel, OutputFile, check_different


@click.command(name="new-pattern")
@click.argument("model", type=InputModel())
@click.argument("nodes", nargs=-1, required=True)
@click.option("--name", default="New", show_default=True, help="Name of the pattern.")
@click.option("-o", "--output", type=OutputFile([".py"]), help="File to write; printed if missing.")
@common_options
def new_pattern(
    model: Path,
    nodes: tuple[str, ...],
    name: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Writes a pattern that matches NODES of MODEL; the replacement is left to you.

    A node is given by its name or by the name of one of its results, see `xoptim print`.
    """
    from xbuilder import GraphBuilder

    from ..toolkit.selected_nodes import source_of_nodes

    check_different([output], model)
    source = source_of_nodes(name, GraphBuilder(str(model)), nodes)
    with staged_text(output, source):
        if as_json:
            print_json({"ok": True, "name": name, "source": source})
        elif output is None:
            click.echo(source, nl=False)
        else:
            click.echo(f"wrote {output}")
