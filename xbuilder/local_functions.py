"""Local functions: optimized on their own, inlined, made out of builders."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import onnx.helper as oh
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from .errors import InvalidModelError, OptionError
from .node_protos import main_domain, subgraphs_of
from .optimization_options import FunctionOptions
from .proto_export import export_function, initializer_bytes, tensor_proto

if TYPE_CHECKING:
    from .graph_builder import GraphBuilder
    from .graph_store import NodeRecord

Key = tuple[str, str]

#: deepest chain of functions calling functions
MAX_DEPTH = 64


def function_key(node: NodeProto) -> Key:
    """Key of the function a node may call."""
    domain = main_domain(node.domain)
    overload = getattr(node, "overload", "")
    return (domain, f"{node.op_type}:{overload}") if overload else (domain, node.op_type)


def optimize_functions(builder: GraphBuilder) -> list[dict[str, Any]]:
    """Optimizes the body of every local function. Returns rows of statistics."""
    rows: list[dict[str, Any]] = []
    for key, function in list(builder.functions.items()):
        body = type(builder)(
            function,
            optimization_options=builder.optimization_options,
            infer_shapes_options=builder.infer_shapes_options,
        )
        body.functions.update({k: f for k, f in builder.functions.items() if k != key})
        for row in body.optimize(recursive=False):
            row["graph"] = f"function {key[0]}.{key[1]}"
            rows.append(row)
        options = FunctionOptions(True, name=function.name, domain=function.domain)
        builder.functions[key] = export_function(body, options)
        for opset in builder.functions[key].opset_import:
            builder.opsets.setdefault(main_domain(opset.domain), opset.version)
    return rows


# -- inlining


def inline_functions(builder: GraphBuilder, verbose: int = 0) -> int:
    """Replaces every call to a local function by its body, in subgraphs too.

    A function whose domains have other versions than the model's is left as it is.

    :return: number of calls that were inlined
    :raises InvalidModelError: functions call each other without end
    """
    from .subgraphs import children_of, write_back

    count = 0
    for _ in range(MAX_DEPTH):
        done = 0
        for record in list(builder.store.nodes):
            key = function_key(builder.store.proto(record))
            if key in builder.functions and _same_opsets(builder, builder.functions[key]):
                _inline(builder, record, builder.functions[key])
                done += 1
                if verbose:
                    print(f"[inline_functions] {record!r}")
        if not done:
            break
        count += done
    else:
        raise InvalidModelError("Local functions call each other without end, they are recursive.")
    for record in list(builder.store.nodes):
        if not any(True for _ in subgraphs_of(builder.store.proto(record))):
            continue
        inside = sum(inline_functions(c, verbose) for c in children_of(builder, record).values())
        if inside:
            write_back(builder, record)
            count += inside
    if builder.parent is None:
        remove_unused_functions(builder)
    return count


def _same_opsets(builder: GraphBuilder, function: FunctionProto) -> bool:
    used = {main_domain(n.domain) for n in function.node}
    return all(
        builder.opsets.get(main_domain(o.domain), o.version) == o.version
        for o in function.opset_import
        if main_domain(o.domain) in used
    )


def _inline(builder: GraphBuilder, record: NodeRecord, function: FunctionProto) -> None:
    store = builder.store
    call = store.proto(record)
    given = {a.name: a for a in call.attribute}
    defaults = {a.name: a for a in function.attribute_proto}
    actual = dict(zip(function.input, record.inputs, strict=False))
    mapping = {name: actual.get(name, "") for name in function.input}
    outputs = dict(zip(function.output, record.outputs, strict=False))
    nodes: list[NodeProto] = []
    taken: dict[str, str] = {}
    for name in function.output:
        result = outputs.get(name, "")
        if not result:
            continue
        if name in mapping or name in taken:
            nodes.append(oh.make_node("Identity", [mapping.get(name, taken.get(name, ""))], [result]))
        else:
            taken[name] = result
    identities, nodes = nodes, []
    mapping.update(taken)

    def rename(name: str) -> str:
        if name and name not in mapping:
            mapping[name] = builder.unique_name(name)
        return mapping.get(name, "")

    for node in function.node:
        copy = NodeProto()
        copy.CopyFrom(node)
        _bind_attributes(copy, given, defaults)
        _rename_node(builder, copy, rename)
        copy.name = builder.unique_node_name(copy.name or copy.op_type)
        nodes.append(copy)
    for opset in function.opset_import:
        builder.opsets.setdefault(main_domain(opset.domain), opset.version)
    for name in record.outputs:
        builder.constants.computed.pop(name, None)
    for new_record in store.replace([record], [*nodes, *identities], anchor=record):
        builder.learn(new_record)


def _bind_attributes(
    node: NodeProto, given: dict[str, AttributeProto], defaults: dict[str, AttributeProto]
) -> None:
    """Replaces attributes by reference, in subgraphs too; those without value are dropped."""
    attributes: list[AttributeProto] = []
    for att in node.attribute:
        if att.ref_attr_name:
            value = given.get(att.ref_attr_name) or defaults.get(att.ref_attr_name)
            if value is None:
                continue
            copy = AttributeProto()
            copy.CopyFrom(value)
            copy.name = att.name
            attributes.append(copy)
            continue
        if att.type == AttributeProto.GRAPH:
            for inner in att.g.node:
                _bind_attributes(inner, given, defaults)
        attributes.append(att)
    kept = [AttributeProto.FromString(a.SerializeToString()) for a in attributes]
    del node.attribute[:]
    node.attribute.extend(kept)


def _rename_node(builder: GraphBuilder, node: NodeProto, rename: Callable[[str], str]) -> None:
    inputs, outputs = [rename(i) for i in node.input], [rename(o) for o in node.output]
    del node.input[:]
    del node.output[:]
    node.input.extend(inputs)
    node.output.extend(outputs)
    for _, graph in subgraphs_of(node):
        _rename_graph(builder, graph, rename)


def _rename_graph(builder: GraphBuilder, graph: GraphProto, outer: Callable[[str], str]) -> None:
    """Renames what a subgraph captures, and its own names so that they stay unique."""
    own: dict[str, str] = {}
    for rows in (graph.input, graph.initializer):
        for row in rows:
            own[row.name] = own.get(row.name) or builder.unique_name(row.name)
            row.name = own[row.name]

    def rename(name: str) -> str:
        return own[name] if name in own else outer(name)

    for node in graph.node:
        for name in node.output:
            if name:
                own.setdefault(name, "")
        inputs = [own[i] if own.get(i) else outer(i) for i in node.input]
        del node.input[:]
        node.input.extend(inputs)
        for name in node.output:
            if name:
                own[name] = builder.unique_name(name)
        outputs = [own[o] if o else "" for o in node.output]
        del node.output[:]
        node.output.extend(outputs)
        for _, sub in subgraphs_of(node):
            _rename_graph(builder, sub, rename)
    for out in graph.output:
        out.name = rename(out.name)
    kept = [v for v in graph.value_info if own.get(v.name)]
    for info in kept:
        info.name = own[info.name]


def called_functions(builder: GraphBuilder) -> set[Key]:
    """Functions the graph calls, directly or not."""
    called: set[Key] = set()

    def visit(nodes: Any) -> None:
        for node in nodes:
            key = function_key(node)
            if key in builder.functions and key not in called:
                called.add(key)
                visit(builder.functions[key].node)
            for _, graph in subgraphs_of(node):
                visit(graph.node)

    visit(builder.nodes)
    return called


def remove_unused_functions(builder: GraphBuilder) -> int:
    """Removes the functions nothing calls. Returns how many."""
    called = called_functions(builder)
    dead = [key for key in builder.functions if key not in called]
    for key in dead:
        del builder.functions[key]
    return len(dead)


# -- making functions


def make_local_function(
    builder: GraphBuilder,
    source: GraphBuilder,
    options: FunctionOptions,
    optimize: bool = False,
    metadata_props: dict[str, str] | None = None,
) -> tuple[list[str], Key]:
    """Turns a builder into a local function of another one.

    :param builder: receives the function
    :param source: becomes the function
    :param options: name, domain, what happens to the initializers
    :param optimize: optimizes the body first
    :param metadata_props: metadata stored in the function
    :return: names of the initializers that became inputs, and the key `(domain, name)`
    :raises OptionError: another function has the same name
    """
    if not options.export_as_function or not options.name:
        raise OptionError("make_local_function needs FunctionOptions(export_as_function=True, name=).")
    if optimize:
        source.optimize()
    if options.inline:
        source.inline_functions()
    added: list[str] = []
    if options.return_initializer:
        added = _initializers_to_inputs(builder, source, options)
    proto = export_function(source, options)
    if not proto.domain:
        proto.domain = builder.local_domain
    if metadata_props:
        oh.set_metadata_props(proto, metadata_props)
    for key, function in source.functions.items():
        _add_function(builder, function, FunctionOptions(True, key[1], key[0], merge_allowed=True))
    key = _add_function(builder, proto, options)
    builder.add_domain(key[0])
    return added, key


def _initializers_to_inputs(
    builder: GraphBuilder, source: GraphBuilder, options: FunctionOptions
) -> list[str]:
    from .builder_making import IOSpec

    added: list[str] = []
    for name, value in list(source.constants.initializers.items()):
        small = initializer_bytes(value) < options.external_threshold
        if options.move_initializer_to_constant and small:
            continue
        source.input_specs.append(IOSpec(name))
        del source.constants.initializers[name]
        added.append(builder.make_initializer(name, value, give_unique=True))
    return added


def _add_function(builder: GraphBuilder, proto: FunctionProto, options: FunctionOptions) -> Key:
    key = main_domain(proto.domain), proto.name
    known = builder.functions.get(key)
    if known is not None:
        same = known.SerializeToString(deterministic=True) == proto.SerializeToString(
            deterministic=True
        )
        if same and options.merge_allowed:
            return key
        if not options.rename_allowed:
            raise OptionError(
                f"A {'n equal' if same else ' different'} function {key} exists already; "
                "allow FunctionOptions(merge_allowed=True) or rename_allowed=True."
            )
        i = 2
        while (key[0], f"{proto.name}_{i}") in builder.functions:
            i += 1
        proto.name = f"{proto.name}_{i}"
        key = key[0], proto.name
    builder.functions[key] = proto
    return key


def initializers_to_constants(
    builder: GraphBuilder, prefix: str = "", threshold: int | None = None, verbose: int = 0
) -> int:
    """Turns initializers into Constant nodes, see `GraphBuilder.move_initializers_to_constant`."""
    table = builder.constants
    count = 0
    for name in list(table.initializers):
        value = table.initializers[name]
        size = initializer_bytes(value)
        if name in table.overridable or not name.startswith(prefix):
            continue
        if threshold is not None and size >= threshold:
            continue
        attribute = oh.make_attribute("value", tensor_proto(builder, name, value))
        del table.initializers[name]
        node = NodeProto(op_type="Constant", output=[name])
        node.name = builder.unique_node_name("Constant")
        node.attribute.append(attribute)
        builder.add_node(node, position=0)
        count += 1
        if verbose:
            print(f"[move_initializers_to_constant] {name} ({size} bytes)")
    return count
