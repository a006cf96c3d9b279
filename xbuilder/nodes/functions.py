"""Reads local functions: nodes at every depth, size once inlined, attributes of a call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from onnx import AttributeProto, FunctionProto, NodeProto

from ..operators.domains import main_domain
from ..operators.op_traits import GRAPH_OWNERS
from .copies import copy_node
from .subgraphs import subgraphs_of

FunctionKey = tuple[str, str]

#: number of nodes returned for a recursive function
_NO_END = 10**6
#: depth of nested calls followed from one call
_MAX_DEPTH = 40


def function_key(node: NodeProto) -> FunctionKey:
    """Key of the function a node may call: domain and name, followed by the overload if any."""
    domain = main_domain(node.domain)
    overload = node.overload
    return (domain, f"{node.op_type}:{overload}") if overload else (domain, node.op_type)


def body_size(functions: Mapping[FunctionKey, FunctionProto], key: FunctionKey) -> int:
    """Number of nodes of a function once every call in it is inlined, at most one million.

    One million is returned for a recursive function as well, and for one whose calls are nested too
    deep to be followed. Cost: that of the first forty levels.
    """
    sizes: dict[FunctionKey, int] = {}
    return _size(functions, key, sizes, set())


def _size(
    functions: Mapping[FunctionKey, FunctionProto],
    key: FunctionKey,
    sizes: dict[FunctionKey, int],
    pending: set[FunctionKey],
) -> int:
    if key in sizes:
        return sizes[key]
    if key in pending or len(pending) > _MAX_DEPTH:
        return _NO_END
    pending.add(key)
    total = 0
    for node in all_nodes(functions[key].node):
        called = function_key(node)
        total += 1 if called not in functions else _size(functions, called, sizes, pending)
    pending.discard(key)
    sizes[key] = min(total, _NO_END)
    return sizes[key]


def inlined_growth(
    functions: Mapping[FunctionKey, FunctionProto], nodes: Iterable[NodeProto]
) -> tuple[int, int]:
    """Number of nodes of some nodes and the functions they call, and number added when every call
    is inlined. A function called once adds nothing, whatever the depth.

    Cost: O(nodes of the functions), even if they call each other exponentially. Recursive functions
    grow by more than one million.

    :param functions: local functions
    :param nodes: nodes of a graph
    :return: number of nodes written, growth
    """
    every_node = all_nodes(nodes)
    roots = [k for k in map(function_key, every_node) if k in functions]
    written = len(every_node)
    sizes: dict[FunctionKey, int] = {}
    called: dict[FunctionKey, list[FunctionKey]] = {}
    own: dict[FunctionKey, int] = {}
    stack = list(dict.fromkeys(roots))
    while stack:
        key = stack[-1]
        if key not in called:
            keys = [function_key(n) for n in all_nodes(functions[key].node)]
            called[key] = [k for k in keys if k in functions]
            own[key] = len(keys) - len(called[key])
            written += len(keys)
            stack.extend(k for k in called[key] if k not in called)
            continue
        stack.pop()
        if key not in sizes:
            # a function that is still open calls this one, so it is recursive
            sizes[key] = own[key] + sum(sizes.get(k, 2 * _NO_END) for k in called[key])
    inlined = len(every_node) - len(roots) + sum(sizes[k] for k in roots)
    return written, inlined - (written - len(roots) - sum(map(len, called.values())))


def all_nodes(nodes: Iterable[NodeProto]) -> list[NodeProto]:
    """Nodes of a graph or a function, those of subgraphs included."""
    found: list[NodeProto] = []
    stack: list[Iterable[NodeProto]] = [nodes]
    while stack:
        for node in stack.pop():
            found.append(node)
            if node.domain or node.op_type in GRAPH_OWNERS:
                stack.extend(graph.node for _, graph in subgraphs_of(node))
    return found


def bind_attributes(
    node: NodeProto,
    given: dict[str, AttributeProto],
    defaults: dict[str, AttributeProto],
    missing: Collection[str] = (),
) -> NodeProto:
    """Copies a node of a function. Attributes by reference get their values, in subgraphs too.

    An attribute that the call does not give and that has no default value is left out.

    :param node: node of the body
    :param given: attributes of the call
    :param defaults: default values of the function
    :param missing: inputs of the function that the call does not give
    """
    copy = copy_node(node)
    if missing:
        inputs = ["" if name in missing else name for name in node.input]
        del copy.input[:]
        copy.input.extend(inputs)
    if not any(a.ref_attr_name or a.type == AttributeProto.GRAPH for a in node.attribute):
        return copy
    del copy.attribute[:]
    for att in node.attribute:
        if not att.ref_attr_name:
            new = copy.attribute.add()
            new.CopyFrom(att)
            for inner in [new.g] if att.type == AttributeProto.GRAPH else []:
                nodes = [bind_attributes(n, given, defaults, missing) for n in inner.node]
                del inner.node[:]
                inner.node.extend(nodes)
            continue
        value = given.get(att.ref_attr_name, defaults.get(att.ref_attr_name))
        if value is not None:
            new = copy.attribute.add()
            new.CopyFrom(value)
            new.name = att.name
    return copy
