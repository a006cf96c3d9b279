"""Checks of what a file holds: validity, sizes, weights, what nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto

from xbuilder.errors import short_message
from xbuilder.files.tensor_sites import iter_tensor_sites
from xbuilder.nodes.functions import FunctionKey, function_key
from xbuilder.nodes.subgraphs import captured_names, subgraphs_of

from ..reports.model_summary import iterate_nodes
from ..reports.node_matching import Token
from ..reports.weight_contents import Weights
from .findings import CheckedModel, Finding, check, node_title, weight_name

#: a weight of fewer elements is not worth a remark
_SMALL = 1024
#: largest finite number of float16
_LARGEST_HALF = float(np.finfo(np.float16).max)
#: elements read at a time
_BLOCK = 1 << 22


@check
def checker(model: CheckedModel) -> Iterator[Finding]:
    """X001: the checker of onnx refuses the model."""
    try:
        onnx.checker.check_model(model.path or model.container.proto)
    except onnx.checker.ValidationError as e:
        advice = "other tools may refuse it, onnxruntime may still run it"
        yield Finding("X001", "", short_message(e), advice)


@check
def weights(model: CheckedModel) -> Iterator[Finding]:
    """X102, X104, X105: weights that are there twice, too large for float16, or wider than their
    values."""
    contents = Weights(model.container)
    seen: dict[Token, str] = {}
    for site in iter_tensor_sites(model.container.proto):
        tensor = site.tensor
        if tensor.data_type == TensorProto.STRING or np.prod(tensor.dims, initial=1) < _SMALL:
            continue
        array = model.container.array(tensor).reshape(-1)
        key = contents.token(tensor)
        if key in seen:
            first = seen[key]
            yield Finding("X102", weight_name(tensor), f"the same as {first}: {array.nbytes} bytes")
        seen.setdefault(key, weight_name(tensor))
        if tensor.data_type == TensorProto.INT64 and _fits_int32(array):
            message = f"its {array.size} values fit int32: half of its {array.nbytes} bytes"
            yield Finding("X105", weight_name(tensor), message)
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE):
            largest = _largest(array)
            if largest > _LARGEST_HALF:
                message = f"{largest:.6g} is infinite in float16"
                yield Finding("X104", weight_name(tensor), message, "keep it in float")


def _fits_int32(array: np.ndarray) -> bool:
    bounds = np.iinfo(np.int32)
    return bool(array.min() >= bounds.min and array.max() <= bounds.max)


def _largest(array: np.ndarray) -> float:
    """The largest finite absolute value, read by blocks."""
    largest = 0.0
    for start in range(0, array.size, _BLOCK):
        block = np.abs(array[start : start + _BLOCK])
        largest = max(largest, float(np.max(block, where=np.isfinite(block), initial=0)))
    return largest


@check
def unused(model: CheckedModel) -> Iterator[Finding]:
    """X106: inputs, weights, nodes and functions nothing reads."""
    proto = model.container.proto
    graph = proto.graph
    read = _read_names(graph)
    for info in graph.input:
        if info.name not in read:
            advice = "" if _is_weight(graph, info.name) else "it is part of the signature: kept"
            yield Finding("X106", f"input {info.name!r}", "nothing reads it", advice)
    for tensor in graph.initializer:
        if tensor.name not in read:
            yield Finding("X106", weight_name(tensor), "nothing reads it")
    for node in graph.node:
        if not read.intersection(node.output):
            yield Finding("X106", node_title(node), "nothing reads its results")
    called = {function_key(node) for node in iterate_nodes(proto)}
    for function in proto.functions:
        if _key(function) not in called:
            yield Finding("X106", f"function {function.name!r}", "nothing calls it")


def _key(function: FunctionProto) -> FunctionKey:
    call = NodeProto(op_type=function.name, domain=function.domain, overload=function.overload)
    return function_key(call)


def _is_weight(graph: GraphProto, name: str) -> bool:
    return any(tensor.name == name for tensor in graph.initializer)


def _read_names(graph: GraphProto) -> set[str]:
    """The names read by the nodes of a graph, its bodies, and its outputs."""
    read = {output.name for output in graph.output}
    for node in graph.node:
        read.update(node.input)
        for _, body in subgraphs_of(node):
            read.update(captured_names(body))
    return read - {""}
