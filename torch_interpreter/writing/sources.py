"""Names the nodes after their module and writes where they come from in their metadata."""

from __future__ import annotations

from typing import Any

import torch

from xbuilder import GraphBuilder
from xbuilder.nodes.sources import NodeSource, source_of, write_source

from ..common.traces import user_lines

#: the module of the nodes that torch adds
_ADDED = "_empty_nn_module_stack_from_metadata_hook"


def node_source(
    node: torch.fx.Node, name: str, prefix: str = "", owner: torch.fx.Node | None = None
) -> NodeSource:
    """The modules, the operator and the lines of code a node of an fx graph comes from.

    :param node: the node
    :param name: its name
    :param prefix: in a local function, the path of its module and a dot, a dot alone if it is one
        operator: the source is relative to it
    :param owner: the node that owns the graph of the node, if it is the body of an If or of a loop:
        torch does not record the modules of a body
    """
    place = _place(node)
    modules = _modules(place)
    lines = user_lines(place.meta.get("stack_trace") or "")
    if owner is not None:
        modules = modules or _modules(owner)
        lines = lines or user_lines(owner.meta.get("stack_trace") or "")
    if prefix:
        paths = [path for path, _ in modules]
        at = paths.index(prefix[:-1]) if prefix[:-1] in paths[1:] else len(modules)
        modules = [
            (p.removeprefix(prefix) if i else "", c) for i, (p, c) in enumerate(modules[at:])
        ]
    return NodeSource(
        (*(path for path, _ in modules), name),
        (*(kind for _, kind in modules), _operator(node.target)),
        lines,
    )


def _place(node: torch.fx.Node) -> torch.fx.Node:
    """The node that knows its place in the model: a size that torch adds comes from a tensor."""
    while _ADDED in (node.meta.get("nn_module_stack") or {}) and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _modules(node: torch.fx.Node) -> list[tuple[str, str]]:
    """Path and class of each module a node is in, the model first."""
    stack = (node.meta.get("nn_module_stack") or {}).values()
    entries = [entry for entry in stack if isinstance(entry, tuple)]
    return [(path.split("@")[0], _class_name(kind)) for path, kind in entries]


def _class_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"


def _operator(target: Any) -> str:
    """The name of an operator, as torch.onnx writes it if torch defines it."""
    known = isinstance(target, torch._ops.OperatorBase | torch._ops.OpOverloadPacket | str)
    return f"{target}" if known else getattr(target, "__name__", f"{target}")


def write_sources(g: GraphBuilder, size: int, source: NodeSource) -> None:
    """Writes a source in the metadata of the last nodes of a graph, and the module in their names.

    Nodes that have a source keep it. Cost: O(nodes).

    :param g: the graph
    :param size: number of nodes that come from somewhere else
    :param source: the source
    """
    for record in g.store.nodes[size:]:
        proto = record._proto
        if source_of(proto) is None:
            write_source(proto, source)
            if source.module and not proto.name.startswith(source.module):
                proto.name = g.unique_node_name(f"{source.module}.{record.op_type}")
