"""Outlines nodes of a graph into a local function, which other rewrites use as their root."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import onnx.helper as oh
from onnx import FunctionProto

from xbuilder.graph.graph import Graph
from xbuilder.nodes.functions import all_nodes
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.domains import main_domain
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.live_names import LiveNames
from xbuilder.store.readers import NO_READERS

from .deduction import Refusal
from .roots import order_of

#: domain of the functions a rewrite outlines for other rewrites, see :meth:`RewriteContext.outline`
INTERMEDIATE = "intermediate"


class InlinedBack(LiveNames):
    """Results of the nodes inlined back into a graph, from functions that rewrites outlined and no
    rewrite took. They are not outlined again."""


def body_of(
    store: GraphStore,
    visited: Collection[NodeRecord],
    inputs: Collection[str],
    results: Sequence[str],
) -> list[NodeRecord]:
    """The visited nodes between some results, in graph order. Cost: O(their edges).

    :raises Refusal: something else reads an inner result, or a node holds a subgraph
    """
    body: set[NodeRecord] = set()
    stack = list(results)
    while stack:
        name = stack.pop()
        record = None if name in inputs else store.producers.get(name)
        if record is not None and record not in body and record in visited:
            body.add(record)
            stack.extend(record.inputs)
    for record in body:
        if record.captured:
            raise Refusal("a node of the function holds a subgraph")
        for name in record.outputs:
            if name in results:
                continue
            inside = body.issuperset(store.consumers.get(name, NO_READERS))
            if not inside or name in store.outputs or name in store.pinned:
                raise Refusal("an inner result is used elsewhere")
    return sorted(body, key=order_of)


def function_of(
    graph: Graph, name: str, body: Sequence[NodeRecord], inputs: Sequence[str], results: list[str]
) -> tuple[FunctionProto, list[str]]:
    """Builds a local function from copies of some nodes, which keep their names of results.

    :param graph: holds the nodes
    :param name: name of the function; the first result is its overload, so the function is unique
    :param body: the nodes
    :param inputs: its first inputs
    :param results: its outputs
    :return: the function, and the other names it reads, inputs that come after the first ones
    """
    known = {*inputs, *(o for record in body for o in record.outputs)}
    others = list(dict.fromkeys(n for r in body for n in r.reads() if n not in known))
    nodes = [graph.store.proto(record) for record in body]
    domains = {"", *(main_domain(node.domain) for node in all_nodes(nodes))}
    opsets = [oh.make_opsetid(d, v) for d, v in graph.opsets.items() if d in domains]
    formal = _unique([*inputs, *others])
    function = oh.make_function(
        INTERMEDIATE, name, formal, results, nodes, opsets, overload=results[0]
    )
    return function, others


def _unique(names: Sequence[str]) -> list[str]:
    """Names of the parameters: an input given twice is read under its first name."""
    known: Mapping[str, int] = {name: i for i, name in reversed(list(enumerate(names)))}
    return [n if known[n] == i else f"{n}/{i}" for i, n in enumerate(names)]
