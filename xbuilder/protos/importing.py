"""A proto, a file or another library's model becomes a builder; what is given is never modified."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from ..builder_making import IOSpec, require_unique
from ..errors import InvalidModelError, OptionError
from ..facts import DECLARED, ResultFacts
from ..files.external_data import check_external_data, check_references
from ..gc_pause import without_gc
from ..inference.function_calls import all_nodes
from ..inference.node_inference import facts_from_type
from ..nested.body_scope import clear_names, declared_names
from ..nodes.arity import check_arity
from ..nodes.protos import (
    copy_node,
    local_names,
    main_domain,
    reserve_graph_names,
    reserve_names,
    subgraphs_of,
    with_sorted_subgraphs,
)
from ..nodes.record import NodeRecord
from ..options import InferShapesOptions

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder


@without_gc
def import_any(builder: GraphBuilder, source: Any) -> None:
    """Fills an empty builder with a model.

    :param builder: an empty builder
    :param source: ModelProto, GraphProto, FunctionProto, path, onnx_ir.Model or ONNXProgram
    :raises OptionError: the type of *source* is not supported
    :raises InvalidModelError: the model is not valid
    :raises ExternalDataError: it refers to a file out of its folder, or to one that is missing when
        the folder is known
    """
    if builder.parent is None and isinstance(source, (ModelProto, GraphProto, FunctionProto)):
        if builder.constants.base_dir is None:
            check_references(source)
        else:
            check_external_data(source, builder.constants.base_dir, builder.allowed_roots)
    if isinstance(source, (str, os.PathLike)):
        _import_path(builder, Path(source))
    elif isinstance(source, ModelProto):
        _import_model(builder, source)
    elif isinstance(source, GraphProto):
        if builder.parent is None and not builder.opsets:
            raise OptionError(
                "A GraphProto does not hold the versions of its domains, give opsets={'': 18}."
            )
        import_graph(builder, source)
    elif isinstance(source, FunctionProto):
        _import_function(builder, source)
    elif type(source).__module__.startswith(("onnx_ir", "onnxscript")):
        import onnx_ir

        import_any(builder, onnx_ir.to_proto(source))
    elif hasattr(source, "model_proto"):
        import_any(builder, source.model_proto)
    else:
        raise OptionError(
            f"Unable to build a graph from {type(source)}; expected an opset, a dictionary of "
            "opsets, a ModelProto, a GraphProto, a FunctionProto, a path, an onnx_ir.Model "
            "or an ONNXProgram."
        )


def _import_path(builder: GraphBuilder, path: Path) -> None:
    from ..files.model_files import load_model

    loaded = load_model(path, builder.allowed_roots)
    builder.constants.base_dir, builder.path = loaded.base_dir, loaded.path
    builder.allowed_roots = builder.constants.allowed_roots = loaded.allowed_roots
    _import_model(builder, loaded.proto)


def _import_model(builder: GraphBuilder, model: ModelProto) -> None:
    if not model.opset_import and not model.HasField("graph"):
        raise InvalidModelError("The model has neither graph nor opset; is it an ONNX model?")
    builder.origin = model
    for opset in model.opset_import:
        builder.opsets[main_domain(opset.domain)] = opset.version
        builder.spells_main_domain |= opset.domain == "ai.onnx"
    builder.opsets.setdefault("", 1)
    if builder.ir_version is None and model.ir_version:
        builder.ir_version = model.ir_version
    for function in model.functions:
        key = main_domain(function.domain), function.name
        if getattr(function, "overload", ""):
            key = key[0], f"{function.name}:{function.overload}"
        builder.functions[key] = function
        for opset in function.opset_import:
            builder.opsets.setdefault(main_domain(opset.domain), opset.version)
        _check_function(function)
    declared = None
    if builder.infer_shapes_options & (InferShapesOptions.ONNX | InferShapesOptions.DATA_PROP):
        declared = _onnx_inference(builder, model)
    import_graph(builder, model.graph, declared)


def _check_function(function: FunctionProto) -> None:
    versions = {main_domain(o.domain): o.version for o in function.opset_import}
    for i, node in enumerate(function.node):
        check_arity(NodeRecord(node, i, 0), versions)


def _onnx_inference(builder: GraphBuilder, model: ModelProto) -> list[ValueInfoProto]:
    """Runs onnx's inference on a copy without weights."""
    light = ModelProto()
    light.CopyFrom(model) if model.ByteSize() < 2**28 else _copy_without_weights(light, model)
    for node in all_nodes(light.graph.node):
        for _, graph in subgraphs_of(node):  # their names would mix with those of the outer graph
            for infos in (graph.input, graph.output, graph.value_info):
                clear_names(infos)
    data_prop = bool(builder.infer_shapes_options & InferShapesOptions.DATA_PROP)
    try:
        inferred = onnx.shape_inference.infer_shapes(light, data_prop=data_prop)
    except (
        onnx.shape_inference.InferenceError,
        onnx.checker.ValidationError,
        ValueError,
        RuntimeError,
    ) as e:
        warnings.warn(f"onnx.shape_inference failed, its results are left out: {e}", stacklevel=2)
        return []
    return list(inferred.graph.value_info)


def _copy_without_weights(target: ModelProto, model: ModelProto) -> None:
    target.ir_version = model.ir_version
    target.opset_import.extend(model.opset_import)
    target.functions.extend(model.functions)
    graph = target.graph
    graph.name = model.graph.name
    for field in ("node", "input", "output", "value_info"):
        getattr(graph, field).extend(getattr(model.graph, field))
    known = {i.name for i in graph.input}
    for init in model.graph.initializer:
        if init.name not in known:
            graph.input.append(
                onnx.helper.make_tensor_value_info(init.name, init.data_type, list(init.dims))
            )


def import_graph(
    builder: GraphBuilder, graph: GraphProto, declared: list[ValueInfoProto] | None = None
) -> None:
    """Fills a builder with a graph.

    :param builder: an empty builder whose opsets are known
    :param graph: the graph
    :param declared: types and shapes to use beside those of the graph
    """
    if builder.parent is None:
        reserve_graph_names(builder.names, graph)
        for infos in (graph.input, graph.output, graph.value_info, declared or ()):
            for dim in declared_names(infos):  # before any name is generated
                builder.normalize_dimension(dim)
    if builder.origin is None:
        builder.origin = graph
    require_unique([i.name for i in graph.input], "Input")
    require_unique([i.name for i in graph.initializer], "Initializer")
    initializers = {i.name for i in graph.initializer}
    listed = _lists_every_initializer(builder)
    for info in graph.input:
        if info.name in initializers:
            if listed:
                continue
            builder.constants.overridable.add(info.name)
        builder.input_specs.append(IOSpec(info.name, info))
        builder.facts.refine(info.name, _facts(builder, info), "an input")
    for init in graph.initializer:
        _import_initializer(builder, init)
    for sparse in graph.sparse_initializer:
        builder.sparse_initializers.append(sparse)
        builder.facts.refine(
            sparse.values.name,
            ResultFacts(sparse.values.data_type, tuple(sparse.dims)),
            "a sparse initializer",
        )
    for out in graph.output:
        builder.output_specs.append(IOSpec(out.name, out))
        builder.store.add_outputs([out.name])
    builder.declared.update((v.name, v) for v in graph.value_info)
    declarations = dict(builder.declared)
    declarations.update((v.name, v) for v in declared or ())
    declarations.update((v.name, v) for v in graph.output)
    _import_nodes(builder, graph.node, declarations)
    _check_defined(builder)


def _lists_every_initializer(builder: GraphBuilder) -> bool:
    """Tells if the format of the model obliges to list every initializer among the inputs.

    It is so before IR version 4. Such an initializer is a constant, as it is for onnxruntime; the
    model is then written with a newer IR version and its real inputs only.
    """
    if not isinstance(builder.origin, ModelProto) or builder.origin.ir_version >= 4:
        return False
    builder.ir_version = None
    return True


def _import_initializer(builder: GraphBuilder, init: onnx.TensorProto) -> None:
    facts = ResultFacts(init.data_type, tuple(init.dims))
    reason = (
        ""
        if init.name in builder.constants.overridable
        else (builder.facts.contradicts(init.name, facts))
    )
    if reason:
        tell_once(builder, init.name, reason)
        builder.facts.restart([init.name])
    builder.constants.add_initializer(init.name, init)


def _import_function(builder: GraphBuilder, function: FunctionProto) -> None:
    builder.as_function = builder.in_function = True
    builder.origin = function
    for opset in function.opset_import:
        builder.opsets[main_domain(opset.domain)] = opset.version
        builder.spells_main_domain |= opset.domain == "ai.onnx"
    builder.opsets.setdefault("", 1)
    for name in (*function.input, *function.output):
        builder.names.reserve(name)
    for name in function.input:
        builder.input_specs.append(IOSpec(name))
        builder.facts.refine(name, ResultFacts(), "an input")
    for name in function.output:
        builder.output_specs.append(IOSpec(name))
        builder.store.add_outputs([name])
    declared = {v.name: v for v in getattr(function, "value_info", ())}
    builder.declared.update(declared)
    _import_nodes(builder, function.node, declared)
    _check_defined(builder)


def _facts(builder: GraphBuilder, info: ValueInfoProto) -> ResultFacts:
    return facts_from_type(info.type, builder.new_dimension, builder.declared_dimension)


def tell_once(builder: GraphBuilder, name: str, reason: str) -> None:
    """Tells the user once that the file declares something wrong about a result."""
    if name not in builder.told:
        builder.told.add(name)
        warnings.warn(
            f"The model declares something else than what is inferred for {name!r}: {reason}; "
            "the inferred one is kept.",
            stacklevel=2,
        )


def _reserve_records(builder: GraphBuilder) -> None:
    """Reserves every name the nodes use, before any name is generated."""
    names, node_names, store = builder.names, builder.node_names, builder.store
    names.reserve_all(store.producers)
    names.reserve_all(store.consumers)
    for record in store.possible_owners():
        for _, graph in subgraphs_of(store.proto(record)):
            reserve_names(names, node_names, graph)


def _import_nodes(
    builder: GraphBuilder, nodes: Iterable[NodeProto], declared: dict[str, ValueInfoProto]
) -> None:
    store = builder.store
    opsets = builder.opsets
    store.extend(_clean_nodes(builder, list(nodes)), lambda record: check_arity(record, opsets))
    if builder.parent is None:
        _reserve_records(builder)
    _check_single(builder)
    _sort_subgraphs(builder)
    if store.order_violated:
        store.sort()
    records = store.nodes
    options = builder.infer_shapes_options
    builder.infer_nodes = bool(options)
    only_new = options == InferShapesOptions.NEW
    for record in list(records):
        infer = not (only_new and all(name in declared for name in record.outputs))
        builder.learn(record, infer)
        for name in record.outputs:
            if name in declared:
                _refine_with_declared(builder, name, declared[name])
    builder.infer_nodes = True


def _sort_subgraphs(builder: GraphBuilder) -> None:
    """Sorts the subgraphs that read a name before they define it."""
    for record in builder.store.possible_owners():
        if not record.captured:
            continue
        lost = {name for name in record.captured if not builder.has_name(name)}
        node = builder.store.proto(record)
        if lost and any(lost & local_names(graph) for _, graph in subgraphs_of(node)):
            builder.store.replace([record], [with_sorted_subgraphs(node, lost)], record)


def _clean_nodes(builder: GraphBuilder, nodes: list[NodeProto]) -> list[NodeProto]:
    """The nodes; copies replace those whose name is taken (onnxruntime refuses two nodes of one
    name) or which spell the main domain `ai.onnx`."""
    names = [node.name for node in nodes]
    named = [name for name in names if name]
    builder.node_names.reserve_all(named)
    if len(set(named)) == len(named) and not builder.spells_main_domain:
        return nodes
    seen: set[str] = set()
    return [_clean_node(builder, n, name, seen) for n, name in zip(nodes, names, strict=True)]


def _clean_node(builder: GraphBuilder, node: NodeProto, name: str, seen: set[str]) -> NodeProto:
    taken = name != "" and name in seen
    seen.add(name)
    spelled = builder.spells_main_domain and any(n.domain == "ai.onnx" for n in all_nodes([node]))
    if not taken and not spelled:
        return node
    copy = copy_node(node)
    if taken:
        copy.name = builder.unique_node_name(name)
    for inner in all_nodes([copy]):
        if inner.domain == "ai.onnx":
            inner.domain = ""
    return copy


def _refine_with_declared(builder: GraphBuilder, name: str, info: ValueInfoProto) -> None:
    if not info.HasField("type"):
        return
    facts = _facts(builder, info)
    reason = builder.facts.contradicts(name, facts)
    if reason:
        tell_once(builder, name, reason)
        return
    known = builder.facts[name].shape if builder.facts.is_local(name) else None
    if known is not None and facts.shape is not None:
        # what a file declares fills what is unknown, it never says that a symbol is an integer:
        # files whose batch was made dynamic afterwards still declare the old one
        pairs = zip(known, facts.shape, strict=True)
        facts.shape = tuple(d if builder.is_generated(k) else k for k, d in pairs)
    builder.facts.refine(name, facts, DECLARED)


def _check_single(builder: GraphBuilder) -> None:
    """Checks that no result has the name of an input or of an initializer.

    :raises InvalidModelError: one does
    """
    for kind, names in (
        ("an input", builder.input_names),
        ("an initializer", builder.constants.initializers),
        ("a sparse initializer", [s.values.name for s in builder.sparse_initializers]),
    ):
        for name in names:
            record = builder.store.producers.get(name)
            if record is not None:
                raise InvalidModelError(
                    f"{name!r} is {kind} and a result of node {record!r}; "
                    "every result of a graph needs its own name."
                )


def _check_defined(builder: GraphBuilder) -> None:
    """Checks that every name that is read exists.

    :raises InvalidModelError: one does not
    """
    store = builder.store
    known = set(store.producers) | set(builder.constants.initializers)
    known.update(spec.name for spec in builder.input_specs)
    known.update(s.values.name for s in builder.sparse_initializers)
    for name, readers in store.consumers.items():
        if name not in known and not _outer(builder, name):
            reader = next(iter(readers))
            raise InvalidModelError(
                f"Node {reader!r} reads {name!r} which is neither an input, an initializer, nor "
                "the result of a node; the model is not valid."
            )
    for name in store.outputs:
        if name not in known and not _outer(builder, name):
            raise InvalidModelError(
                f"Output {name!r} is neither an input, an initializer, nor the result of a node."
            )


def _outer(builder: GraphBuilder, name: str) -> bool:
    return builder.parent is not None and builder.parent.has_name(name)
