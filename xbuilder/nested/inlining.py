"""Replaces the calls to local functions by the bodies of the functions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import Any

from onnx import FunctionProto

from ..errors import InvalidModelError
from ..graph.graph import Graph
from ..inference.refresh import refreshed
from ..nodes.functions import FunctionKey, all_nodes, bind_attributes, function_key, inlined_growth
from ..nodes.record import NodeRecord
from ..nodes.sources import move_sources
from ..operators.domains import main_domain
from ..operators.op_schemas import schema_of
from ..operators.opsets import opsets_of
from .bodies import children_of, owners, write_back
from .splicing import splice

Row = dict[str, Any]

#: nodes inlining may add to a model, those of functions called once are not counted: 10,000, or
#: 100 times the nodes of the file if it is more, never more than one million
GROWTH = 10_000
GROWTH_RATIO = 100
MAX_GROWTH = 10**6


def inline_functions(graph: Graph, verbose: int = 0, left: Counter[str] | None = None) -> int:
    """Replaces every call to a local function by its body, in subgraphs too.

    A function written for other versions of its domains than the model's is not inlined, unless
    every operator it uses is the same in both versions.

    :param graph: the graph, the functions are removed from its model
    :param verbose: prints what is inlined from 1
    :param left: counts the calls that are not inlined, by reason
    :return: number of calls that were inlined
    :raises InvalidModelError: functions are recursive
    """
    _check_size(graph)
    left = Counter() if left is None else left
    count = _inline_calls(graph, verbose, left)
    if graph.parent is None:
        remove_unused_functions(graph)
    return count


def inline_rows(graph: Graph) -> list[Row]:
    """Inlines local functions. Returns rows of statistics, with the reasons why some are kept."""
    begin = time.perf_counter()
    left: Counter[str] = Counter()
    count = inline_functions(graph, left=left)
    row = {"pattern": "inline_functions", "removed": count, "changed": count}
    rows = [{**row, "time_in": time.perf_counter() - begin}]
    rows.extend({"pattern": f"inline_functions: {r}", "skipped": n} for r, n in left.items())
    return rows


def _check_size(graph: Graph) -> None:
    """Refuses a model that inlining would make far bigger, before it begins."""
    written, growth = inlined_growth(graph.functions, graph.nodes)
    limit = min(GROWTH + GROWTH_RATIO * written, MAX_GROWTH)
    if growth > limit:
        raise InvalidModelError(
            f"Inlining the local functions adds more than {limit} nodes to the {written} of the "
            "model: they call each other without end, or too many times; keep them with "
            "inline=False."
        )


def _inline_calls(graph: Graph, verbose: int, left: Counter[str]) -> int:
    count = 0
    stack = list(reversed(graph.store.nodes))
    while stack:
        record = stack.pop()
        key = function_key(graph.store.proto(record))
        if key not in graph.functions:
            continue
        reason = _why_not_inlined(graph, graph.functions[key])
        if reason:
            left[reason] += 1
        else:
            stack.extend(reversed(_inline(graph, record, graph.functions[key])))
            count += 1
            if verbose:
                print(f"[inline_functions] {record!r}")
    for record in owners(graph):
        inside = sum(_inline_calls(c, verbose, left) for c in children_of(graph, record).values())
        if inside:
            write_back(graph, record)
            count += inside
    return count


def _why_not_inlined(graph: Graph, function: FunctionProto) -> str:
    """The operator of a function that may change with the versions of the model, as a reason not to
    inline it, or an empty string."""
    imported = opsets_of(function)
    for node in all_nodes(function.node):
        domain = main_domain(node.domain)
        own = imported.get(domain)
        version = graph.opsets.get(domain, own)
        if own in (None, version) or function_key(node) in graph.functions:
            continue
        if not same_operator(node.op_type, domain, own, version):
            return (
                f"{node.op_type} may change between version {own} of domain "
                f"{domain or 'ai.onnx'!r}, the function's, and version {version}, the model's"
            )
    return ""


@cache
def same_operator(op_type: str, domain: str, a: int, b: int) -> bool:
    """Whether an operator is proven to be the same in two versions of its domain.

    >>> same_operator("Relu", "", 14, 18), same_operator("ReduceMax", "", 14, 18)
    (True, False)
    """
    first, second = (schema_of(op_type, domain, version) for version in (a, b))
    if first is None or second is None:
        return False
    return first.since_version == second.since_version


def _inline(graph: Graph, record: NodeRecord, function: FunctionProto) -> list[NodeRecord]:
    call = graph.store.proto(record)
    given = {a.name: a for a in call.attribute}
    defaults = {a.name: a for a in function.attribute_proto}
    mapping = dict.fromkeys(function.input, "")
    mapping.update(zip(function.input, record.inputs, strict=False))
    nodes = [bind_attributes(node, given, defaults) for node in function.node]
    move_sources(nodes, call)
    for opset in function.opset_import:
        graph.opsets.setdefault(main_domain(opset.domain), opset.version)
    results = list(zip(function.output, record.outputs, strict=False))
    with refreshed(graph, record):
        return splice(graph, record, nodes, mapping, results, graph.unique_name)


def inline_calls(graph: Graph, keys: Collection[FunctionKey]) -> list[str]:
    """Replaces the calls to some functions by their bodies, in this graph, not in its subgraphs.

    :param graph: the graph
    :param keys: the functions, those they call included
    :return: the results of the calls
    """
    results: list[str] = []
    names = {(domain, name.split(":")[0]) for domain, name in keys}
    stack = [r for r in reversed(graph.store.nodes) if r.key in names]
    while stack:
        record = stack.pop()
        key = function_key(graph.store.proto(record))
        if key in keys:
            results.extend(record.outputs)
            stack.extend(reversed(_inline(graph, record, graph.functions[key])))
    return results


def called_functions(graph: Graph) -> set[FunctionKey]:
    """Functions the graph calls, directly or indirectly."""
    called: set[FunctionKey] = set()
    stack: list[Any] = [graph.nodes]
    while stack:
        for node in all_nodes(stack.pop()):
            key = function_key(node)
            if key in graph.functions and key not in called:
                called.add(key)
                stack.append(graph.functions[key].node)
    return called


def remove_unused_functions(graph: Graph) -> int:
    """Removes the functions nothing calls. Returns how many."""
    called = called_functions(graph)
    dead = [key for key in graph.functions if key not in called]
    for key in dead:
        del graph.functions[key]
    return len(dead)
