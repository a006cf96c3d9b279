"""Infers the types and shapes of the results of a node: by a shape function, else by onnx."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto, TypeProto

from ..constants.content import tensor_facts
from ..dims import Shape, prod
from ..errors import (
    ExternalDataError,
    FactError,
    InvalidModelError,
    UnknownAttributeError,
    short_message,
)
from ..facts.facts import MAX_RANK, ResultFacts
from ..graph.graph import Graph
from ..nodes.attributes import attributes_of, find_attribute
from ..nodes.record import NodeRecord
from ..nodes.subgraphs import may_own_graph
from ..nodes.value_infos import facts_from_type, facts_to_type
from ..operators.op_schemas import schema_of
from ..shapes.checked_facts import ShapeResultError, checked_facts
from ..shapes.common import INT32_MAX, INT64_MAX, MAX_CONTENT
from ..shapes.context import FactSources, ShapeContext
from ..shapes.registry import RewriteResult, ShapeFunction, find_shape_function, function_name
from ..support.user_warnings import warn_user
from .registry import NodeFacts


def infer_node(graph: Graph, record: NodeRecord, sources: FactSources | None = None) -> NodeFacts:
    """The facts of every output, None if nothing is known. The graph does not change.

    :param graph: gives the facts of the inputs
    :param record: the node
    :param sources: facts the shape function reads, all those of the graph by default
    :raises ExternalDataError: an attribute is in another file which cannot be trusted or found
    """
    opset = graph.scope.opsets.get(record.domain, 1)
    function, is_users = find_shape_function(record.domain, record.op_type, opset)
    answer: RewriteResult | NodeFacts = None
    if function is not None:
        try:
            answer = function(ShapeContext(record, opset, sources or graph.sources))
            if is_users:
                answer = checked_facts(answer, len(record.outputs))
        except UnknownAttributeError:  # not the fault of the function
            return _infer_external(graph, record) if sources is None else None
        except ExternalDataError:
            raise
        except ShapeResultError as error:
            answer = None
            _warn_failure(function, record, str(error))
        except Exception as error:
            _warn_failure(function, record, f"it raises {type(error).__name__}: {error}")
    if answer is None:
        answer = _infer_with_onnx(graph, record)
    if isinstance(answer, ResultFacts):
        if answer.shape is not None and 0 <= answer.type <= INT32_MAX and _can_be(answer.shape):
            return [answer]
        return [_possible(record, answer)]
    return [f if f is None else _possible(record, f) for f in answer or ()] or None


@lru_cache(maxsize=1 << 12)
def _can_be(shape: Shape) -> bool:
    """Whether a tensor may have this shape: few dimensions, and each fits in 64 bits."""
    too_long = any(isinstance(dim, int) and dim > INT64_MAX for dim in shape)
    return len(shape) <= MAX_RANK and not too_long


def _infer_external(graph: Graph, record: NodeRecord) -> NodeFacts:
    """Infers a node as :func:`infer_node` does, when an attribute is a tensor of another file."""
    read, proto = graph.constants.read_tensor, graph.store.proto(record)
    value = find_attribute(proto, "value")
    if record.key == ("", "Constant") and value is not None:
        return [tensor_facts(value.t, lambda: read(value.t))]
    sources = graph.sources._replace(attributes=lambda _: attributes_of(proto, read))
    return infer_node(graph, record, sources)


def _possible(record: NodeRecord, facts: ResultFacts) -> ResultFacts:
    """The facts, without the shape if no tensor has such a rank or dimension.

    :raises InvalidModelError: an attribute names an element type that does not exist
    """
    if not 0 <= facts.type <= INT32_MAX:
        raise InvalidModelError(
            f"Node {record!r} gives elements of type {facts.type}, which no version of ONNX has; "
            "the model is not valid."
        )
    rank = facts.known_rank()
    if rank is not None and rank > MAX_RANK:
        return ResultFacts(facts.type)
    if facts.shape is not None and not _can_be(facts.shape):
        return ResultFacts(facts.type, None, rank)
    return facts


def refine_results(graph: Graph, record: NodeRecord, inferred: NodeFacts) -> None:
    """Refines the facts of the outputs of a node.

    :raises FactError: they contradict known facts; it is only a warning if they come from a
        function of the user
    """
    if inferred is None:
        return
    for name, facts in zip(record.outputs, inferred, strict=False):
        if not name or facts is None:
            continue
        try:
            graph.facts.refine(name, facts, record)
        except FactError as error:
            opset = graph.scope.opsets.get(record.domain, 1)
            function, is_users = find_shape_function(record.domain, record.op_type, opset)
            if function is None or not is_users:
                raise
            _warn_failure(function, record, str(error))


def _is_long(facts: ResultFacts) -> bool:
    """Whether a vector is too long for the inference of onnx, which turns each of its elements into
    a dimension."""
    shape = facts.shape
    integers = facts.type in (TensorProto.INT64, TensorProto.INT32)
    if not integers or shape is None or len(shape) != 1:
        return False
    return isinstance(shape[0], int) and shape[0] > MAX_CONTENT


def _input_types(graph: Graph, record: NodeRecord) -> dict[str, TypeProto] | None:
    types: dict[str, TypeProto] = {}
    for name in record.inputs:
        if name and name not in types:
            proto = facts_to_type(graph.facts[name], lambda d: True)
            if proto is None or _is_long(graph.facts[name]):
                return None
            types[name] = proto
    return types


def _input_data(graph: Graph, record: NodeRecord) -> dict[str, TensorProto]:
    data: dict[str, TensorProto] = {}
    for name in record.inputs:
        shape = graph.facts[name].shape if name else None
        if shape is None:
            continue
        size = prod(shape)
        if isinstance(size, int) and size <= 64 and graph.constants.is_constant(name):
            value = graph.constants.value(name)
            if value is not None:
                data[name] = onnx.numpy_helper.from_array(np.asarray(value, order="C"))
    return data


#: errors of the inference of onnx
_ERRORS = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    ValueError,
    RuntimeError,
)


def refusal_of_onnx(graph: Graph, record: NodeRecord) -> str:
    """The reason why the inference of onnx refuses a node, as a session does when it loads a model:
    a rank, a size, an attribute. Empty if it infers the node, or does not know enough.

    :param graph: gives the facts of the inputs
    :param record: the node
    """
    if may_own_graph(record.op_type, record.domain):
        return ""  # its bodies may read what the inference is not given
    try:
        _onnx_results(graph, record)
    except _ERRORS as error:
        message = short_message(error).rpartition("] ")[2].strip()
        # onnxruntime casts to types that came after the definition
        return "" if message.startswith("output has unsupported type") else message
    return ""


def _onnx_results(graph: Graph, record: NodeRecord) -> dict[str, TypeProto] | None:
    opset = graph.opsets.get(record.domain)
    schema = None if opset is None else schema_of(record.op_type, record.domain, opset)
    types = None if schema is None else _input_types(graph, record)
    if schema is None or types is None:
        return None
    return onnx.shape_inference.infer_node_outputs(
        schema,
        graph.store.proto(record),
        types,
        _input_data(graph, record),
        opset_imports=[oh.make_opsetid(d, v) for d, v in graph.opsets.items()],
    )


def _infer_with_onnx(graph: Graph, record: NodeRecord) -> NodeFacts:
    try:
        results = _onnx_results(graph, record)
    except _ERRORS:
        return None
    if results is None:
        return None
    dims = graph.dimensions
    return [
        facts_from_type(results[o], dims.new, dims.normalize) if o in results else None
        for o in record.outputs
    ]


def _warn_failure(function: ShapeFunction, record: NodeRecord, reason: str) -> None:
    warn_user(
        f"The shape function {function_name(function)!r} of node {record!s} is ignored: {reason}"
    )
