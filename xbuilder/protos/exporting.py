"""A builder becomes a proto."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.helper as oh
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)
from onnx.numpy_helper import from_array

from ..builder_making import IOSpec
from ..constants.table import initializer_type_shape, is_external
from ..errors import OptionError
from ..facts import ResultFacts
from ..inference.function_calls import all_nodes
from ..inference.node_inference import facts_to_type, value_info
from ..nested.embedding import check_size, embed_external
from ..nodes.making import make_node_proto
from ..nodes.protos import main_domain
from ..options import FunctionOptions
from ..tensors.checks import is_known_type

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder

PRODUCER = "xoptim"


def export(
    builder: GraphBuilder,
    large_model: bool,
    external_threshold: int,
    function_options: FunctionOptions | None,
    as_graph_proto: bool,
) -> Any:
    """Makes the proto the options ask for, see :meth:`GraphBuilder.to_onnx`."""
    options = function_options
    if options is None or not options.export_as_function:
        options = _own_options(builder) if builder.as_function and not as_graph_proto else None
    if large_model and options is None and not as_graph_proto:
        return export_container(builder, external_threshold)
    check_size(sum(initializer_bytes(v) for v in builder.constants.initializers.values()))
    proto: ModelProto | GraphProto | FunctionProto
    if options is not None:
        proto = export_function(builder, options)
    else:
        proto = export_graph(builder) if as_graph_proto else export_model(builder)
    embed_external(proto, builder.constants)
    return proto


def _own_options(builder: GraphBuilder) -> FunctionOptions:
    """Options of the function a builder comes from."""
    name = getattr(builder.origin, "name", "") or "function"
    return FunctionOptions(
        export_as_function=True, name=name, domain=getattr(builder.origin, "domain", "")
    )


def initializer_bytes(value: Any) -> int:
    """Size of the content of an initializer, in bytes."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if value.data_type == TensorProto.STRING:
        return sum(len(s) for s in value.string_data)
    if not is_known_type(value.data_type):
        return value.ByteSize()
    count = int(np.prod(value.dims, dtype=np.int64)) if value.dims else 1
    return count * oh.tensor_dtype_to_np_dtype(value.data_type).itemsize


def tensor_proto(builder: GraphBuilder, name: str, value: Any) -> TensorProto:
    """An initializer as a TensorProto holding its content and its name."""
    array = builder.constants.read_tensor(value) if is_external(value) else None
    return named_tensor(array, name) if array is not None else reference_proto(name, value)


def reference_proto(name: str, value: Any) -> TensorProto:
    """An initializer as a TensorProto of this name, which may still refer to another file."""
    if not isinstance(value, TensorProto):
        return named_tensor(value, name)
    if value.name == name:
        return value
    copy = TensorProto()
    copy.CopyFrom(value)
    copy.name = name
    return copy


def named_tensor(array: np.ndarray, name: str) -> TensorProto:
    """Converts an array."""
    return from_array(np.asarray(array, order="C"), name=name)


def export_io(builder: GraphBuilder, spec: IOSpec) -> ValueInfoProto:
    """An input or an output: as the file declared it, else from the facts."""
    facts = builder.facts[spec.name]
    declared = spec.proto is not None and spec.proto.type.WhichOneof("value") is not None
    if declared and spec.proto.name == spec.name and spec.name not in builder.told:
        return spec.proto
    if spec.name in builder.told and facts.shape is None:
        facts = ResultFacts(facts.type)
    proto = facts_to_type(facts, builder.is_written)
    info = ValueInfoProto()
    info.name = spec.name
    if proto is not None:
        info.type.CopyFrom(proto)
    if spec.doc_string:
        info.doc_string = spec.doc_string
    return info


def used_names(builder: GraphBuilder) -> set[str]:
    """Names that a node reads or that the graph returns."""
    return set(builder.store.consumers) | set(builder.store.outputs)


def export_graph(
    builder: GraphBuilder, initializers: dict[str, TensorProto] | None = None
) -> GraphProto:
    """Makes a GraphProto, tensors stored in other files stay there.

    :param builder: the builder
    :param initializers: what to write instead of the initializers of the builder
    """
    graph = GraphProto()
    origin = _origin_graph(builder)
    graph.name = (origin.name if origin is not None else "") or "graph"
    graph.node.extend(builder.nodes)
    graph.input.extend(builder.inputs)
    graph.output.extend(builder.outputs)
    for name, value in builder.constants.initializers.items():
        if initializers is not None and name in initializers:
            graph.initializer.append(initializers[name])
        else:
            graph.initializer.append(reference_proto(name, value))
    graph.sparse_initializer.extend(builder.sparse_initializers)
    graph.value_info.extend(_value_infos(builder))
    if origin is not None:
        graph.doc_string = origin.doc_string
        graph.metadata_props.extend(origin.metadata_props)
        graph.quantization_annotation.extend(_annotations(builder, origin))
    return graph


def _origin_graph(builder: GraphBuilder) -> GraphProto | None:
    if isinstance(builder.origin, ModelProto):
        return builder.origin.graph
    return builder.origin if isinstance(builder.origin, GraphProto) else None


def _annotations(builder: GraphBuilder, origin: GraphProto) -> list[Any]:
    """Quantization parameters of the results that are still there."""
    known = set(builder.store.producers) | set(builder.constants.initializers)
    known.update(builder.input_names)
    return [a for a in origin.quantization_annotation if a.tensor_name in known]


def _value_infos(builder: GraphBuilder) -> list[ValueInfoProto]:
    """Types and shapes of the results that were declared and are still there."""
    rows: list[ValueInfoProto] = []
    for name, info in builder.declared.items():
        if name not in builder.store.producers or name in builder.store.outputs:
            continue
        if name not in builder.told and info.HasField("type"):
            rows.append(info)
            continue
        facts = builder.facts[name]
        new_info = value_info(name, facts, builder.is_written)
        if new_info is not None:
            rows.append(new_info)
    return rows


def export_model(
    builder: GraphBuilder, initializers: dict[str, TensorProto] | None = None
) -> ModelProto:
    """Makes a ModelProto; see :func:`export_graph` for *initializers*."""
    model = ModelProto()
    origin = builder.origin if isinstance(builder.origin, ModelProto) else None
    model.ir_version = builder.effective_ir_version
    model.producer_name = (origin.producer_name if origin is not None else "") or PRODUCER
    if origin is not None:
        model.producer_version = origin.producer_version
        model.domain = origin.domain
        model.model_version = origin.model_version
        model.doc_string = origin.doc_string
        model.metadata_props.extend(origin.metadata_props)
        model.training_info.extend(origin.training_info)
    for domain, version in sorted(builder.opsets.items()):
        model.opset_import.append(oh.make_opsetid(domain, version))
    model.graph.CopyFrom(export_graph(builder, initializers))
    model.functions.extend(builder.functions.values())
    return model


def export_container(builder: GraphBuilder, external_threshold: int) -> Any:
    """Makes a container: big initializers stay where they are, the proto only describes them."""
    from ..files.model_container import ModelContainer

    sources: dict[str, Any] = {}
    described: dict[str, TensorProto] = {}
    for name, value in builder.constants.initializers.items():
        if is_external(value):
            described[name] = reference_proto(name, value)
            continue
        numeric = not isinstance(value, TensorProto) or value.data_type != TensorProto.STRING
        forced = name in builder.external_names
        if numeric and (initializer_bytes(value) >= external_threshold or forced):
            elem_type, shape = initializer_type_shape(value)
            sources[name] = value
            described[name] = TensorProto(name=name, data_type=elem_type, dims=shape)
    model = export_model(builder, described)
    return ModelContainer(
        model, sources, builder.constants.base_dir, builder.allowed_roots, builder.path
    )


def constant_nodes(builder: GraphBuilder) -> list[NodeProto]:
    """Initializers as Constant nodes: a function has no initializer."""
    rows = [
        constant_node(builder, name, value)
        for name, value in builder.constants.initializers.items()
        if name not in builder.input_names
    ]
    # dense: onnxruntime may crash on a function holding sparse values
    rows.extend(
        constant_node(builder, s.values.name, dense_array(builder, s))
        for s in builder.sparse_initializers
    )
    return rows


def initializers_to_constants(
    builder: GraphBuilder, prefix: str = "", threshold: int | None = None, verbose: int = 0
) -> int:
    """Turns initializers into Constant nodes, see `GraphBuilder.move_initializers_to_constant`."""
    table = builder.constants
    names = [
        name
        for name, value in table.initializers.items()
        if name not in table.overridable
        and name.startswith(prefix)
        and (threshold is None or initializer_bytes(value) < threshold)
    ]
    for name in reversed(names):
        value = table.initializers[name]
        table.remove_initializer(name)
        node = constant_node(builder, name, value)
        builder.add_node(node, position=0)
        if verbose:
            print(f"[move_initializers_to_constant] {name} ({initializer_bytes(value)} bytes)")
    return len(names)


def constant_node(builder: GraphBuilder, name: str, value: Any) -> NodeProto:
    """A Constant node giving an initializer."""
    return make_node_proto(
        "Constant",
        [],
        [name],
        name=builder.unique_node_name("Constant"),
        attributes=[oh.make_attribute("value", reference_proto(name, value))],
    )


def dense_array(builder: GraphBuilder, sparse: SparseTensorProto) -> np.ndarray:
    """Content of a sparse initializer.

    :raises OptionError: it is too big for a proto, or in a file which cannot be read
    """
    read = builder.constants.read_tensor
    values, indices = read(sparse.values), read(sparse.indices)
    if values is None or indices is None:
        raise OptionError(
            f"The content of sparse initializer {sparse.values.name!r} is in another file, whose "
            "folder is not known; give base_dir."
        )
    dims = tuple(sparse.dims)
    check_size(math.prod(dims) * values.dtype.itemsize)
    dense = np.zeros(dims, dtype=values.dtype)
    if indices.ndim == 2:
        dense[tuple(indices.T)] = values
    else:
        dense.reshape(-1)[indices] = values
    return dense


def export_function(builder: GraphBuilder, options: FunctionOptions) -> FunctionProto:
    """Makes a FunctionProto, its initializers become Constant nodes."""
    origin = builder.origin if isinstance(builder.origin, FunctionProto) else None
    proto = FunctionProto()
    proto.name = options.name
    proto.domain = options.domain or (builder.local_domain if origin is None else origin.domain)
    proto.input.extend(builder.input_names)
    proto.output.extend(builder.output_names)
    proto.node.extend(constant_nodes(builder))
    proto.node.extend(builder.nodes)
    domains = {main_domain(node.domain) for node in all_nodes(proto.node)} | {""}
    for domain, version in sorted(builder.opsets.items()):
        if domain in domains or origin is not None:
            proto.opset_import.append(oh.make_opsetid(domain, version))
    if origin is not None:
        proto.attribute.extend(origin.attribute)
        proto.attribute_proto.extend(origin.attribute_proto)
        proto.doc_string = origin.doc_string
        proto.overload = origin.overload
        proto.metadata_props.extend(origin.metadata_props)
        proto.value_info.extend(_value_infos(builder))
    return proto
