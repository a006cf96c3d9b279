"""Reading local functions: nodes at every depth, size, attributes of a call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from onnx import AttributeProto, FunctionProto, NodeProto

from .protos import copy_node, function_key, subgraphs_of

FunctionKey = tuple[str, str]

#: number of nodes a function is said to have when it has no end
_NO_END = 10**6


def body_size(functions: Mapping[FunctionKey, FunctionProto], key: FunctionKey) -> int:
    """Number of nodes of a function once everything it calls is inlined, at most one million.

    A function calling itself has no end: one million is returned as well.
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
    if key in pending or len(pending) > 200:
        return _NO_END
    pending.add(key)
    total = 0
    for node in all_nodes(functions[key].node):
        called = function_key(node)
        total += 1 if called not in functions else _size(functions, called, sizes, pending)
    pending.discard(key)
    sizes[key] = min(total, _NO_END)
    return sizes[key]


def all_nodes(nodes: Iterable[NodeProto]) -> list[NodeProto]:
    """Nodes of a graph or a function, those of the subgraphs included."""
    found: list[NodeProto] = []
    stack: list[Iterable[NodeProto]] = [nodes]
    while stack:
        for node in stack.pop():
            found.append(node)
            stack.extend(graph.node for _, graph in subgraphs_of(node))
    return found


def bind_attributes(
    node: NodeProto,
    given: dict[str, AttributeProto],
    defaults: dict[str, AttributeProto],
    missing: Collection[str] = (),
) -> NodeProto:
    """Copies a node of a function, attributes by reference get their values, in subgraphs too.

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
