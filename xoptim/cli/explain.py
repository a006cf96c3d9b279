"""``xoptim explain``: why a pattern does not match the nodes of a model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.store.named_nodes import named_nodes

from ..catalogue.selection import get_pattern
from ..engine.optimizer import GraphBuilderPatternOptimization
from .patterns import check_selection, load_option
from .terminal.output import common_options, counted, print_json, print_list
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
    found = get_pattern(pattern, as_list=True)
    if len(found) != 1:
        raise OptionError(
            f"{pattern!r} is {counted(len(found), 'pattern')}, one is explained at a time: "
            f"`xoptim patterns` lists them."
        )
    builder = GraphBuilder(
        str(model),
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=after),
    )
    if after is not None:
        builder.optimize()
    rows = explain_nodes(builder.graph, pattern, nodes)
    if as_json:
        print_json(rows)
        return
    if not rows:
        roots = " nor ".join(found[0].roots)
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


def explain_nodes(graph: Graph, pattern: str, names: Collection[str] = ()) -> list[dict[str, Any]]:
    """Asks a pattern why it does not match some nodes.

    :param graph: the graph
    :param pattern: name of the pattern
    :param names: names of nodes or of results; every root of the pattern if empty
    :return: rows with `result`, `operator`, `answer`
    :raises OptionError: the graph has no such name
    """
    engine = GraphBuilderPatternOptimization(graph, [pattern])
    if names:
        found = named_nodes(graph.store, names).values()
        records = sorted({r for rows in found for r in rows}, key=lambda r: r.order)
        nodes = [graph.store.proto(r) for r in records]
    else:
        nodes = list(engine.iter_roots(engine.patterns[0]))
    return [
        {
            "result": next((o for o in node.output if o), node.name),
            "operator": node.op_type,
            "answer": engine.explain(pattern, node).splitlines()[0],
        }
        for node in nodes
    ]
