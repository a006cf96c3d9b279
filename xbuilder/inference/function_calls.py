"""Facts of the results of a call to a local function, out of its body and the facts of the
inputs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto, FunctionProto, NodeProto

from ..dims import Dim, Shape, symbols
from ..facts import ResultFacts
from ..nodes.protos import copy_node, function_key, main_domain, subgraphs_of

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder
    from ..store.graph_store import NodeRecord

Key = tuple[str, str]

#: constants above this number of elements are not given to the body
_MAX_ELEMENTS = 1024
#: bodies with more nodes than this, functions they call included, are not instantiated
_MAX_NODES = 20000


def infer_call(builder: GraphBuilder, record: NodeRecord) -> list[ResultFacts | None] | None:
    """Facts of the outputs of a call, None if they are not known.

    The body is built with the attributes of the call and the facts of its inputs. Calls that look
    alike (same attributes, facts and constants) are instantiated once.

    :param builder: graph holding the call
    :param record: the call
    """
    call = builder.store.proto(record)
    key = function_key(call)
    function = builder.functions[key]
    if key in builder.function_calls:
        return None
    if builder.in_function and any(a.ref_attr_name for a in call.attribute):
        return None
    signature = _signature(builder, record, call, key)
    known = builder.function_facts
    if signature not in known:
        small = body_size(builder.functions, key) <= _MAX_NODES
        known[signature] = _body_facts(builder, record, call, function) if small else []
    visible = _visible_symbols(builder, record)
    fresh: dict[str, str] = {}
    return [_export(builder, facts, visible, fresh) for facts in known[signature]]


def body_size(functions: dict[Key, FunctionProto], key: Key) -> int:
    """Number of nodes of a function once everything it calls is inlined, at most one million.

    A function calling itself has no end: one million is returned as well.
    """
    sizes: dict[Key, int] = {}
    return _size(functions, key, sizes, set())


def _size(
    functions: dict[Key, FunctionProto], key: Key, sizes: dict[Key, int], pending: set[Key]
) -> int:
    limit = 10**6
    if key in sizes:
        return sizes[key]
    if key in pending or len(pending) > 200:
        return limit
    pending.add(key)
    total = 0
    for node in all_nodes(functions[key].node):
        called = function_key(node)
        total += 1 if called not in functions else _size(functions, called, sizes, pending)
    pending.discard(key)
    sizes[key] = min(total, limit)
    return sizes[key]


def all_nodes(nodes: Any) -> list[NodeProto]:
    """Nodes of a graph or a function, those of the subgraphs included."""
    found: list[NodeProto] = []
    stack = [nodes]
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


def _signature(
    builder: GraphBuilder, record: NodeRecord, call: NodeProto, key: Key
) -> tuple[Any, ...]:
    inputs: list[Any] = []
    for name in record.inputs:
        value = _small_constant(builder, name)
        content = None if value is None else (str(value.dtype), value.tobytes())
        inputs.append((bool(name), repr(builder.facts[name]) if name else "", content))
    attributes = tuple(sorted(a.SerializeToString(deterministic=True) for a in call.attribute))
    return (key, attributes, tuple(inputs))


def _small_constant(builder: GraphBuilder, name: str) -> Any:
    """Value of a constant that may decide of a shape: small, numerical."""
    if not name or not builder.constants.is_constant(name):
        return None
    shape = builder.facts[name].shape
    if shape is None or any(not isinstance(d, int) for d in shape):
        return None
    count = 1
    for d in shape:
        count *= int(d)
    value = builder.constants.value(name) if count <= _MAX_ELEMENTS else None
    return None if value is None or value.dtype == object else value


def _body_facts(
    builder: GraphBuilder, record: NodeRecord, call: NodeProto, function: FunctionProto
) -> list[ResultFacts | None]:
    """Facts of the outputs as the body knows them; dimensions it makes are still its own."""
    from ..builder_making import IOSpec

    opsets = {main_domain(o.domain): o.version for o in function.opset_import}
    body = type(builder)(opsets or dict(builder.opsets))
    body.constants.set_folder(builder.constants.base_dir, builder.constants.allowed_roots)
    body.functions.update(builder.functions)
    body.function_calls = (*builder.function_calls, function_key(call))
    body.function_facts = builder.function_facts
    body.dimension_names = builder.dimension_names
    body.generated_dimensions = builder.generated_dimensions
    body.facts.constraints = builder.facts.constraints.copy()
    body.inference.facts = body.facts
    missing: set[str] = set()
    for i, name in enumerate(function.input):
        actual = record.inputs[i] if i < len(record.inputs) else ""
        if not actual:
            missing.add(name)
            continue
        body.names.reserve(name)
        body.input_specs.append(IOSpec(name))
        value = _small_constant(builder, actual)
        if value is not None:
            body.constants.add_initializer(name, value)
        body.facts.refine(name, builder.facts[actual], "the call of a function")
    given = {a.name: a for a in call.attribute}
    defaults = {a.name: a for a in function.attribute_proto}
    for node in function.node:
        body.add_node(bind_attributes(node, given, defaults, missing))
    return [body.facts[name] for name in function.output][: len(record.outputs)]


def _visible_symbols(builder: GraphBuilder, record: NodeRecord) -> frozenset[str]:
    found: set[str] = set()
    for name in record.inputs:
        facts = builder.facts[name]
        values = facts.value if isinstance(facts.value, tuple) else (facts.value,)
        for d in (*(facts.shape or ()), *values):
            if isinstance(d, str):
                found |= symbols(d)
    return frozenset(found)


def _export(
    builder: GraphBuilder,
    facts: ResultFacts | None,
    visible: frozenset[str],
    fresh: dict[str, str],
) -> ResultFacts | None:
    """Facts of the body told outside: a symbol the inputs do not have gets a fresh name."""
    if facts is None:
        return None

    def dim(d: Dim) -> Dim:
        if isinstance(d, int) or symbols(d) <= visible:
            return d
        if d not in fresh:
            fresh[d] = builder.new_dimension("fct")
        return fresh[d]

    shape: Shape | None = None if facts.shape is None else tuple(dim(d) for d in facts.shape)
    value = facts.value
    items = value if isinstance(value, tuple) else (value,)
    if any(isinstance(v, str) and not symbols(v) <= visible for v in items):
        value = None
    return ResultFacts(
        facts.type,
        shape,
        facts.rank,
        value,
        _export(builder, facts.sequence, visible, fresh),
        _export(builder, facts.optional, visible, fresh),
    )
