"""Imports a proto, a file or another library's model into a graph, without modifying it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, ValueInfoProto

from ..errors import InvalidModelError, OptionError
from ..facts.facts import ResultFacts
from ..files.external_data import check_external_data
from ..files.model_files import load_model
from ..files.references import check_references, proto_bytes
from ..graph.graph import Graph
from ..nodes.functions import all_nodes
from ..nodes.mended_attributes import mended_function
from ..nodes.record import NodeRecord
from ..nodes.schema_check import node_check
from ..nodes.subgraphs import subgraphs_of
from ..nodes.value_infos import IOSpec, clear_names
from ..operators.domains import main_domain
from ..operators.opsets import opsets_of
from ..options import InferShapesOptions
from ..shapes.common import MAX_CONTENT
from ..support.gc_pause import without_gc
from ..support.user_warnings import warn_user
from .graph_importing import check_defined, import_graph, import_nodes, trusts_shapes


@without_gc
def import_any(graph: Graph, source: Any) -> None:
    """Fills an empty graph with a model.

    :param graph: an empty graph
    :param source: ModelProto, GraphProto, FunctionProto, path, onnx_ir.Model or ONNXProgram
    :raises OptionError: the type of *source* is not supported
    :raises InvalidModelError: the model is not valid
    :raises ExternalDataError: it refers to a file out of its folder, or to one that is missing when
        the folder is known
    """
    if graph.parent is None and isinstance(source, (ModelProto, GraphProto, FunctionProto)):
        folder = graph.scope.folder
        if folder.base_dir is None:
            check_references(source)
        else:
            check_external_data(source, folder.base_dir, folder.allowed_roots)
    if isinstance(source, (str, os.PathLike)):
        _import_path(graph, Path(source))
    elif isinstance(source, ModelProto):
        _import_model(graph, source)
    elif isinstance(source, GraphProto):
        if graph.parent is None and not graph.opsets:
            raise OptionError(
                "A GraphProto does not hold the versions of its domains, give opsets={'': 18}."
            )
        import_graph(graph, source)
    elif isinstance(source, FunctionProto):
        _import_function(graph, source)
    elif type(source).__module__.startswith(("onnx_ir", "onnxscript")):
        import onnx_ir

        import_any(graph, onnx_ir.to_proto(source))
    elif hasattr(source, "model_proto"):
        import_any(graph, source.model_proto)
    else:
        raise OptionError(
            f"Unable to build a graph from {type(source)}; expected an opset, a dictionary of "
            "opsets, a ModelProto, a GraphProto, a FunctionProto, a path, an onnx_ir.Model "
            "or an ONNXProgram."
        )


def _import_path(graph: Graph, path: Path) -> None:
    folder = graph.scope.folder
    loaded = load_model(path, folder.allowed_roots)
    folder.base_dir, folder.allowed_roots = loaded.base_dir, loaded.allowed_roots
    folder.path = loaded.path
    _import_model(graph, loaded.proto)


def _import_opsets(graph: Graph, proto: ModelProto | FunctionProto) -> None:
    for opset in proto.opset_import:
        graph.opsets[main_domain(opset.domain)] = opset.version
        graph.scope.spells_main_domain |= opset.domain == "ai.onnx"
    graph.opsets.setdefault("", 1)


def _import_model(graph: Graph, model: ModelProto) -> None:
    if not model.opset_import and not model.HasField("graph"):
        raise InvalidModelError("The model has neither graph nor opset; is it an ONNX model?")
    graph.origin = model
    _import_opsets(graph, model)
    if graph.scope.ir_version is None and model.ir_version:
        graph.scope.ir_version = model.ir_version
    for function in model.functions:
        key = main_domain(function.domain), function.name
        if function.overload:
            key = key[0], f"{function.name}:{function.overload}"
        graph.functions[key] = mended_function(function)
        for opset in function.opset_import:
            graph.opsets.setdefault(main_domain(opset.domain), opset.version)
        _check_function(graph.functions[key])
    inferred: list[ValueInfoProto] = []
    if graph.scope.infer_options & (InferShapesOptions.ONNX | InferShapesOptions.DATA_PROP):
        inferred = _onnx_inference(graph, model)
    import_graph(graph, model.graph, inferred)


def _check_function(function: FunctionProto) -> None:
    check = node_check(opsets_of(function))
    for node in function.node:
        check(NodeRecord(node, 0, 0))


def _onnx_inference(graph: Graph, model: ModelProto) -> list[ValueInfoProto]:
    """Runs the inference of onnx on a copy without weights, nor shapes that prove nothing."""
    light = ModelProto()
    light.CopyFrom(model) if proto_bytes(model) < 2**28 else _copy_without_weights(light, model)
    for node in all_nodes(light.graph.node):
        for _, body in subgraphs_of(node):  # their names would mix with those of the outer graph
            for infos in (body.input, body.output, body.value_info):
                clear_names(infos)
    if not trusts_shapes(graph):
        del light.graph.value_info[:]
        for info in light.graph.output:
            info.type.tensor_type.ClearField("shape")
    for info in (*light.graph.input, *light.graph.output, *light.graph.value_info):
        _forget_long_vector(info)
    data_prop = bool(graph.scope.infer_options & InferShapesOptions.DATA_PROP)
    try:
        inferred = onnx.shape_inference.infer_shapes(light, data_prop=data_prop)
    except (
        onnx.shape_inference.InferenceError,
        onnx.checker.ValidationError,
        ValueError,
        RuntimeError,
    ) as e:
        warn_user(f"onnx.shape_inference failed, its results are left out: {e}")
        return []
    return [*inferred.graph.value_info, *inferred.graph.output]


def _forget_long_vector(info: ValueInfoProto) -> None:
    """Makes the length of a vector unknown if it is too long to be a shape, because onnx may turn
    each of its elements into a dimension."""
    if not info.type.HasField("tensor_type"):
        return
    dims = info.type.tensor_type.shape.dim
    if len(dims) == 1 and dims[0].dim_value > MAX_CONTENT:
        dims[0].Clear()


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


def _import_function(graph: Graph, function: FunctionProto) -> None:
    graph.scope.is_function = True
    graph.origin = function
    _import_opsets(graph, function)
    for name in (*function.input, *function.output):
        graph.names.reserve(name)
    for name in function.input:
        graph.input_specs.append(IOSpec(name))
        graph.facts.refine(name, ResultFacts(), "an input")
    for name in function.output:
        graph.output_specs.append(IOSpec(name))
    graph.store.add_outputs(function.output)
    declared = {v.name: v for v in function.value_info}
    graph.declared.update(declared)
    import_nodes(graph, function.node, declared, {})
    check_defined(graph)
