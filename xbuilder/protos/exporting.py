"""Exports a graph as a model, graph or function proto, or as a container."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import onnx.helper as oh
from google.protobuf.message import Message
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)
from onnx.numpy_helper import from_array

from ..constants.growth import METADATA
from ..constants.initializers import initializer_type_shape, is_external_proto
from ..errors import InvalidModelError, OptionError
from ..files.model_container import ModelContainer
from ..graph.annotations import annotations_of, forget_lost_results, origin_graph
from ..graph.graph import Graph
from ..inference.graph_inference import add_node
from ..nodes.attributes import readable
from ..nodes.functions import all_nodes
from ..nodes.making import make_node_proto
from ..nodes.value_infos import IOSpec, facts_to_type, hold_dimension
from ..operators.domains import main_domain
from ..options import FunctionOptions
from ..tensors.sizes import initializer_bytes, stored_bytes
from .inline_external import PROTO_LIMIT, check_size, inline_external
from .unknown_fields import copy_unknown_fields

#: maximum number of elements in a byte
_PACKED = 8

PRODUCER = "xoptim"
#: fields written from the graph, or from the options; the others are those of the file
_MODEL_FIELDS = frozenset({"functions", "graph", "ir_version", "opset_import", "producer_name"})
_GRAPH_FIELDS = frozenset(
    {
        *("initializer", "input", "name", "node", "output"),
        *("quantization_annotation", "sparse_initializer", "value_info"),
    }
)
_FUNCTION_FIELDS = frozenset(
    {"domain", "input", "name", "node", "opset_import", "output", "value_info"}
)


def export(
    graph: Graph,
    large_model: bool,
    external_threshold: int,
    function_options: FunctionOptions | None,
    as_graph_proto: bool,
) -> Any:
    """Makes the proto the options select, see :meth:`GraphBuilder.to_onnx`."""
    options = function_options
    if options is None or not options.export_as_function:
        options = _own_options(graph) if graph.is_function and not as_graph_proto else None
    if large_model and options is None and not as_graph_proto:
        return export_container(graph, external_threshold)
    _check_sizes(graph)
    if options is not None and options.return_initializer:
        return export_weighted_function(graph, options)
    proto: ModelProto | GraphProto | FunctionProto
    if options is not None:
        proto = export_function(graph, options)
    else:
        proto = export_graph(graph) if as_graph_proto else export_model(graph)
    inline_external(proto, graph.scope.folder)
    return proto


def _check_sizes(graph: Graph) -> None:
    """Checks that a proto can hold the initializers.

    :raises OptionError: they are too big
    :raises InvalidModelError: one would be, whose content is far smaller than its dimensions
    """
    sizes = {n: initializer_bytes(v) for n, v in graph.constants.initializers.items()}
    if max(sizes.values(), default=0) >= PROTO_LIMIT:
        for name, size in sizes.items():
            held = stored_bytes(graph.constants.initializers[name])
            if held * _PACKED < size:
                raise InvalidModelError(
                    f"Initializer {name!r} declares {size} bytes and holds {held}: the model is "
                    "damaged."
                )
    check_size(sum(sizes.values()))


def _own_options(graph: Graph) -> FunctionOptions:
    """Options to export the function a graph comes from."""
    name = getattr(graph.origin, "name", "") or "function"
    return FunctionOptions(
        export_as_function=True, name=name, domain=getattr(graph.origin, "domain", "")
    )


def tensor_proto(graph: Graph, name: str, value: Any) -> TensorProto:
    """An initializer as a TensorProto with its content and its name."""
    array = graph.constants.read_tensor(value) if is_external_proto(value) else None
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
    """Converts an array to a TensorProto."""
    return from_array(np.asarray(array, order="C"), name=name)


def export_io(graph: Graph, spec: IOSpec) -> ValueInfoProto:
    """Exports an input or an output, as the file declared it, else from the facts."""
    facts = graph.facts[spec.name]
    warned, declared = spec.name in graph.scope.warned, spec.proto
    typed = declared is not None and declared.type.WhichOneof("value") is not None
    if declared is not None and typed and declared.name == spec.name and not warned:
        return declared
    proto = facts_to_type(facts, graph.dimensions.is_written)
    info = _redeclared(spec.name, proto, declared)
    if proto is not None:
        _keep_declared_shape(info.type, declared)
    if spec.doc_string:
        info.doc_string = spec.doc_string
    return info


def _redeclared(
    name: str, proto: TypeProto | None, declared: ValueInfoProto | None
) -> ValueInfoProto:
    """A declaration with another name or type, and the rest of the one of the file."""
    info = ValueInfoProto()
    if declared is not None:
        info.CopyFrom(declared)
    info.name = name
    if proto is not None:
        denotation = info.type.denotation
        info.type.CopyFrom(proto)
        if denotation:
            info.type.denotation = denotation
    elif info.type.WhichOneof("value") is not None:
        info.ClearField("type")
    return info


def _keep_declared_shape(proto: TypeProto, declared: ValueInfoProto | None) -> None:
    """Gives a tensor of unknown rank the declared shape, which no fact contradicts."""
    if declared is None or not proto.HasField("tensor_type"):
        return
    tensor = declared.type.tensor_type
    if tensor.HasField("shape") and not proto.tensor_type.HasField("shape"):
        proto.tensor_type.shape.CopyFrom(tensor.shape)


def export_graph(graph: Graph) -> GraphProto:
    """Makes a GraphProto. Tensors stored in other files are left there.

    :param graph: the graph
    """
    proto = GraphProto()
    fill_graph(proto, graph)
    return proto


def fill_graph(
    proto: GraphProto, graph: Graph, initializers: dict[str, TensorProto] | None = None
) -> None:
    """Writes a graph into an empty proto, see :func:`export_graph`."""
    described = initializers or {}
    origin = origin_graph(graph)
    proto.name = readable(origin.name if origin is not None else "") or "graph"
    proto.node.extend(graph.nodes)
    if graph.parent is None:
        forget_lost_results(graph, proto.node)
    proto.input.extend([export_io(graph, s) for s in graph.input_specs])
    if graph.parent is None and not graph.scope.is_function:
        for info in proto.input:
            hold_dimension(info, graph.facts[info.name], graph.dimensions.is_written)
    proto.output.extend([export_io(graph, s) for s in graph.output_specs])
    for name, value in graph.constants.initializers.items():
        _fill_tensor(proto.initializer.add(), name, described.get(name, value))
    proto.sparse_initializer.extend(graph.sparse_initializers)
    proto.value_info.extend(_value_infos(graph))
    if origin is not None:
        proto.quantization_annotation.extend(annotations_of(graph))
        _copy_others(proto, origin, _GRAPH_FIELDS)


def _fill_tensor(proto: TensorProto, name: str, value: Any) -> None:
    """Writes an initializer in place. A weight is copied as few times as protobuf allows."""
    if isinstance(value, TensorProto):
        proto.CopyFrom(value)
        proto.name = name
        return
    array = np.asarray(value, order="C")
    if array.dtype.kind in "biuf" and array.dtype.isnative and sys.byteorder == "little":
        proto.dims.extend(array.shape)
        proto.name, proto.data_type = name, oh.np_dtype_to_tensor_dtype(array.dtype)
        proto.raw_data = array.tobytes()
    else:
        proto.CopyFrom(named_tensor(array, name))


def _value_infos(graph: Graph) -> list[ValueInfoProto]:
    """Types and shapes of results, inputs and initializers that were declared and still exist."""
    rows: list[ValueInfoProto] = []
    inputs = set(graph.input_names)
    for name, info in graph.declared.items():
        stays = name in graph.store.producers or name in inputs
        if not stays and not _describes_initializer(graph, name, info):
            continue
        if name not in graph.scope.warned and info.HasField("type"):
            rows.append(info)
            continue
        proto = facts_to_type(graph.facts[name], graph.dimensions.is_written)
        if proto is not None:
            rows.append(_redeclared(name, proto, info))
    return rows


def _describes_initializer(graph: Graph, name: str, info: ValueInfoProto) -> bool:
    """Whether a declaration is the one of an initializer that still has this type."""
    value = graph.constants.initializers.get(name)
    if value is None:
        return False
    tensor = info.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
    elem_type, shape = initializer_type_shape(value)
    return tensor.elem_type == elem_type and dims == list(shape)


def _copy_others(proto: Message, origin: Message, written: Collection[str]) -> None:
    """Copies the fields of the proto of a file that are not written from the graph, whatever they
    are, even those of a newer version of onnx, so that nothing of the file is lost."""
    for field, value in origin.ListFields():
        if field.name in written:
            continue
        if hasattr(value, "extend"):
            getattr(proto, field.name).extend(value)
        elif field.message_type is not None:
            getattr(proto, field.name).CopyFrom(value)
        else:
            text = isinstance(value, (str, bytes)) and field.type == field.TYPE_STRING
            setattr(proto, field.name, readable(value) if text else value)
    copy_unknown_fields(proto, origin)


def export_model(graph: Graph, initializers: dict[str, TensorProto] | None = None) -> ModelProto:
    """Makes a ModelProto. See :func:`export_graph` for *initializers*."""
    model = ModelProto()
    origin = graph.origin if isinstance(graph.origin, ModelProto) else None
    model.ir_version = graph.ir_version
    model.producer_name = readable(origin.producer_name if origin is not None else "") or PRODUCER
    if origin is not None:
        _copy_others(model, origin, _MODEL_FIELDS)
    if graph.scope.totals.growth.metadata:
        given = {p.key: p.value for p in model.metadata_props}
        oh.set_model_props(model, {**given, METADATA: graph.scope.totals.growth.metadata})
    for domain, version in sorted(graph.opsets.items()):
        model.opset_import.append(oh.make_opsetid(domain, version))
    fill_graph(model.graph, graph, initializers)
    model.functions.extend(graph.functions.values())
    return model


def export_container(graph: Graph, external_threshold: int) -> Any:
    """Makes a container, whose proto only describes the big initializers, which are not copied."""
    sources: dict[str, Any] = {}
    described: dict[str, TensorProto] = {}
    for name, value in graph.constants.initializers.items():
        if is_external_proto(value):
            described[name] = reference_proto(name, value)
            continue
        numeric = not isinstance(value, TensorProto) or value.data_type != TensorProto.STRING
        forced = name in graph.constants.external_names
        if numeric and (initializer_bytes(value) >= external_threshold or forced):
            sources[name] = value
            described[name] = _without_content(name, value)
    model = export_model(graph, described)
    folder = graph.scope.folder
    return ModelContainer(model, sources, folder.base_dir, folder.allowed_roots, folder.path)


def _without_content(name: str, value: Any) -> TensorProto:
    """The type and the dimensions of an initializer, and what is written about it."""
    elem_type, shape = initializer_type_shape(value)
    if not isinstance(value, TensorProto):
        return TensorProto(name=name, data_type=elem_type, dims=shape)
    about: dict[str, Any] = {"metadata_props": value.metadata_props}
    if value.HasField("doc_string"):
        about["doc_string"] = value.doc_string
    return TensorProto(name=name, data_type=elem_type, dims=shape, **about)


def constant_nodes(graph: Graph, given: Collection[str] = ()) -> list[NodeProto]:
    """Initializers as Constant nodes, because a function has no initializer.

    :param graph: the graph
    :param given: the initializers that are inputs of the function
    """
    rows = [
        constant_node(graph, name, value)
        for name, value in graph.constants.initializers.items()
        if name not in graph.input_names and name not in given
    ]
    # dense, because onnxruntime may crash on a function with sparse values
    rows.extend(
        constant_node(graph, s.values.name, dense_array(graph, s))
        for s in graph.sparse_initializers
    )
    return rows


def initializers_to_constants(
    graph: Graph, prefix: str = "", threshold: int | None = None, verbose: int = 0
) -> int:
    """Turns initializers into Constant nodes, see `GraphBuilder.move_initializers_to_constant`."""
    table = graph.constants
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
        node = constant_node(graph, name, value)
        add_node(graph, node, position=0)
        if verbose:
            print(f"[move_initializers_to_constant] {name} ({initializer_bytes(value)} bytes)")
    return len(names)


def constant_node(graph: Graph, name: str, value: Any) -> NodeProto:
    """A Constant node whose value is an initializer."""
    return make_node_proto(
        "Constant",
        [],
        [name],
        name=graph.unique_node_name("Constant"),
        attributes=[oh.make_attribute("value", reference_proto(name, value))],
    )


def dense_array(graph: Graph, sparse: SparseTensorProto) -> np.ndarray:
    """Content of a sparse initializer.

    :raises OptionError: it is too big for a proto, or in a file that cannot be read
    """
    read = graph.constants.read_tensor
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


def export_weighted_function(graph: Graph, options: FunctionOptions) -> dict[str, Any]:
    """Makes a function whose weights are inputs after its own, and what a model needs to call it.

    :param graph: the graph
    :param options: name and domain of the function, `move_initializer_to_constant` and
        `external_threshold` as for a local function
    :return: `proto`, the function; `functions`, those it calls, directly or not;
        `initializers_name`, the inputs that are weights, in order; `initializers_dict`, their
        values; `initializers_renaming`, the name of the weight of the graph for each of these
        inputs
    """
    limit = options.external_threshold if options.move_initializer_to_constant else 0
    weights = {
        name: value
        for name, value in graph.constants.initializers.items()
        if name not in graph.constants.overridable and initializer_bytes(value) >= limit
    }
    proto = export_function(graph, options, list(weights))
    inline_external(proto, graph.scope.folder)
    return {
        "proto": proto,
        "functions": list(graph.functions.values()),
        "initializers_name": list(weights),
        "initializers_dict": {n: tensor_proto(graph, n, value) for n, value in weights.items()},
        "initializers_renaming": {name: name for name in weights},
    }


def export_function(
    graph: Graph, options: FunctionOptions, weights: Sequence[str] = ()
) -> FunctionProto:
    """Makes a FunctionProto. The initializers become Constant nodes.

    :param graph: the graph
    :param options: name and domain of the function
    :param weights: the initializers that become inputs instead
    """
    origin = graph.origin if isinstance(graph.origin, FunctionProto) else None
    proto = FunctionProto()
    proto.name = options.name
    proto.domain = options.domain or (graph.scope.local_domain if origin is None else origin.domain)
    proto.input.extend([*graph.input_names, *weights])
    proto.output.extend(graph.output_names)
    proto.node.extend(constant_nodes(graph, weights))
    proto.node.extend(graph.nodes)
    forget_lost_results(graph, proto.node)
    domains = {main_domain(node.domain) for node in all_nodes(proto.node)} | {""}
    for domain, version in sorted(graph.opsets.items()):
        if domain in domains or origin is not None:
            proto.opset_import.append(oh.make_opsetid(domain, version))
    if origin is not None:
        proto.value_info.extend(_value_infos(graph))
        _copy_others(proto, origin, _FUNCTION_FIELDS)
    return proto
