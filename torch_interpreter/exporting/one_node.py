"""Decomposes operators where they are in a graph, without running the rest of the program again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from .in_place import make_functional

Decomposition = Callable[..., Any]
_ATEN: Any = torch.ops.aten


class NotDecomposed(Exception):
    """A decomposition needs more than the arguments of its operator."""


def decompose_nodes(
    module: GraphModule,
    table: Mapping[Any, Decomposition],
    accepts: Callable[[Node], bool] = lambda node: True,
) -> dict[str, str]:
    """Replaces the nodes of some operators by what their decompositions do.

    :param module: the graph, it is modified
    :param table: operator -> decomposition
    :param accepts: the nodes to replace, among those of these operators
    :return: names of outputs of the graph -> names of the nodes that replace them
    :raises NotDecomposed: torch does not trace a decomposition, or it reads a constant
    """
    renamed: dict[str, str] = {}
    mode = detect_fake_mode([n.meta.get("val") for n in module.graph.nodes])
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target in table and accepts(node):
            if mode is None:
                raise NotDecomposed("the graph has no fake tensor")
            with mode, torch.no_grad(), enable_python_dispatcher():
                traced = _traced(module, node, table[node.target])
            renamed.update(_replace(module, node, traced))
    return renamed


def _replace(module: GraphModule, node: Node, traced: GraphModule) -> dict[str, str]:
    """Writes the nodes of a decomposition before a node, which disappears."""
    values: dict[Node, Any] = {}
    arguments = iter(_tensors(node))
    meta = {k: v for k, v in node.meta.items() if k != "val"}
    results: Any = None
    with module.graph.inserting_before(node):
        for inner in traced.graph.nodes:
            if inner.op == "placeholder":
                values[inner] = next(arguments)
            elif inner.op == "output":
                results = torch.fx.node.map_arg(inner.args[0], values.__getitem__)
            else:
                if inner.op == "call_function":
                    copied = module.graph.node_copy(inner, values.__getitem__)
                else:
                    copied = _number(module, traced, inner)
                copied.meta = {**meta, "val": inner.meta.get("val")}
                values[inner] = copied
    return _give(module, node, results)


def _tensors(node: Node) -> list[Node]:
    """The arguments of a node that are results: the others are graphs."""
    return [n for n in node.all_input_nodes if n.op != "get_attr" or "val" in n.meta]


def _number(module: GraphModule, traced: GraphModule, inner: Node) -> Node:
    """A constant of a decomposition, which has to be one number.

    :raises NotDecomposed: it is a larger tensor
    """
    value = getattr(traced, str(inner.target), None)
    if inner.op != "get_attr" or not isinstance(value, torch.Tensor) or value.ndim:
        raise NotDecomposed(f"a decomposition reads {inner.target}")
    options: dict[str, Any] = {"dtype": value.dtype}
    inner.meta.setdefault("val", value)
    number = _ATEN.scalar_tensor.default
    return module.graph.call_function(number, (_content(value),), options)


def _content(value: torch.Tensor) -> Any:
    """The number of a tensor, even if it is a constant of a fake one."""
    constant = getattr(value, "constant", None)
    with torch.utils._python_dispatch._disable_current_modes():
        return (value if constant is None else constant).item()


def _traced(module: GraphModule, node: Node, decomposition: Decomposition) -> GraphModule:
    """The graph of a decomposition, whose inputs are those of the node.

    :raises NotDecomposed: torch fails, or an operator in place has no functional form
    """
    inputs = _tensors(node)
    graphs = {n: getattr(module, str(n.target)) for n in node.all_input_nodes if n not in inputs}
    for graph in graphs.values():
        for part in graph.modules():
            if isinstance(part, GraphModule):
                part.recompile()  # a copy of a program has no code yet
    fakes = [n.meta.get("val") for n in inputs]
    if any(f is None for f in fakes):
        raise NotDecomposed(f"{node.name} has an argument without fake value")

    def run(*values: Any) -> Any:
        known = {**graphs, **dict(zip(inputs, values, strict=True))}
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
        return decomposition(*args, **kwargs)

    try:
        traced: GraphModule = make_fx(run)(*fakes)
        make_functional(traced.graph, inputs_change=False)
    except Exception as e:
        raise NotDecomposed(f"{type(e).__name__}: {e}") from e
    return traced


def _give(module: GraphModule, node: Node, results: Any) -> dict[str, str]:
    """Replaces the results of a node, each read with its position if there are several."""
    graph, renamed = module.graph, {}
    if isinstance(results, list | tuple):
        for user in list(node.users):
            if user.target is not operator.getitem:
                raise NotDecomposed(f"{user.name} reads all the results of {node.name}")
            position: Any = user.args[1]
            found = results[position]
            if not isinstance(found, Node):
                raise NotDecomposed(f"result {position} of {node.name} is {found!r}")
            user.replace_all_uses_with(found)
            renamed[user.name] = found.name
            graph.erase_node(user)
    elif isinstance(results, Node):
        node.replace_all_uses_with(results)
        renamed[node.name] = results.name
    else:
        raise NotDecomposed(f"the result of {node.name} is {results!r}")
    graph.erase_node(node)
    return renamed
