"""Optimizes the graphs inside a graph: bodies of nodes, local functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from ..graph.graph import Graph
from ..inference.graph_inference import infer_and_note
from ..inference.refresh import refreshed
from ..nodes.record import NodeRecord
from ..operators.domains import main_domain
from ..options import FunctionOptions
from ..protos.exporting import export_function
from ..protos.importing import import_any
from .bodies import BodyNames, children_of, owners, write_back

Row = dict[str, Any]
#: optimizes one graph and returns rows of statistics, the same way for a graph and what it nests
Optimize = Callable[[Graph], list[Row]]


@dataclass(slots=True)
class BodyPasses:
    """Whether the passes have seen the body of a node.

    :param have_run: they have
    """

    have_run: bool = False


def optimize_children(graph: Graph, optimize: Optimize, again: bool = False) -> list[Row]:
    """Optimizes the subgraphs of a graph, writes them back in their owners. Returns statistics.

    :param graph: the graph
    :param optimize: optimizes one graph, returns rows of statistics
    :param again: leaves out the subgraphs that were optimized and whose captures did not change
    """
    rows: list[Row] = []
    for record in owners(graph):
        if again and not _is_new(record):
            continue
        children = children_of(graph, record)
        changed = any(child.notes[BodyNames].differ for child in children.values())
        result = next(filter(None, record.outputs), "")
        for name, child in children.items():
            before = child.store.generation, set(child.constants.initializers)
            child.notes[BodyPasses].have_run = True
            rows += _located(optimize(child), f"{record.op_type} {result!r} {name}")
            changed |= before != (child.store.generation, set(child.constants.initializers))
        if changed:
            with refreshed(graph, record):
                infer_and_note(graph, write_back(graph, record))
    return rows


def _located(rows: list[Row], path: str) -> list[Row]:
    """Rows that give the path of their graph, which another graph holds; no two bodies have the
    same one."""
    for row in rows:
        inner = row.get("graph")
        row["graph"] = f"{path}/{inner}" if inner else path
    return rows


def _is_new(record: NodeRecord) -> bool:
    """Whether the subgraphs of an owner are not those that were optimized.

    Their graphs are made again when a result they capture is renamed, or its facts refined.
    """
    children = cast(dict[str, Graph] | None, record.children)
    return children is None or not all(c.notes[BodyPasses].have_run for c in children.values())


def optimize_functions(graph: Graph, optimize: Optimize) -> list[Row]:
    """Optimizes the body of every local function. Returns rows of statistics.

    :param graph: the graph of the model
    :param optimize: optimizes one graph, returns rows of statistics
    """
    rows: list[Row] = []
    for key, function in list(graph.functions.items()):
        body = Graph(graph.scope.for_function(key))
        import_any(body, function)
        rows += _located(optimize(body), f"function {key[0]}.{key[1]}")
        options = FunctionOptions(True, name=function.name, domain=function.domain)
        graph.functions[key] = export_function(body, options)
        for opset in graph.functions[key].opset_import:
            graph.opsets.setdefault(main_domain(opset.domain), opset.version)
    return rows
