"""Contexts built by hand, and the comparison of facts with real results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from xbuilder.dims import Constraints, Dim, evaluate, symbols
from xbuilder.facts.facts import ResultFacts
from xbuilder.nodes.making import make_node_proto
from xbuilder.nodes.record import NodeRecord
from xbuilder.shapes import ShapeContext, array_facts, get_shape_function
from xbuilder.shapes.context import FactSources
from xbuilder.shapes.moving.creation import type_of_array


def ints(*values: int) -> np.ndarray:
    """A vector of int64."""
    return np.array(values, dtype=np.int64)


def content(*values: Any) -> ResultFacts:
    """A vector of int64 whose content is followed."""
    return ResultFacts(TensorProto.INT64, (len(values),), None, tuple(values))


def scalar(value: Any) -> ResultFacts:
    """A scalar whose content is followed."""
    return ResultFacts(TensorProto.INT64, (), None, value)


class NewDims:
    """Counter of fresh symbols, they are recognised by their prefix."""

    prefix = "NEW"

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, hint: str = "") -> str:
        self.count += 1
        return f"{self.prefix}{self.count}_{hint}"


def python_attributes(node: NodeProto) -> dict[str, Any]:
    """Attributes of a node as python values, tensors as arrays."""
    result = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if attribute.type == attribute.TENSOR:
            value = numpy_helper.to_array(value)
        elif isinstance(value, bytes):
            value = value.decode("utf-8")
        elif isinstance(value, Sequence) and value and isinstance(value[0], bytes):
            value = [item.decode("utf-8") for item in value]
        elif not isinstance(value, (int, float, str)) and hasattr(value, "__iter__"):
            value = list(value)
        result[attribute.name] = value
    return result


def make_context(
    op_type: str,
    inputs: Sequence[ResultFacts | np.ndarray | None],
    attributes: Mapping[str, Any] | None = None,
    opset: int = 21,
    domain: str = "",
    n_outputs: int = 1,
    constraints: Constraints | None = None,
) -> ShapeContext:
    """Context of a node; an array is a constant, None a missing input."""
    names = tuple("" if item is None else f"x{i}" for i, item in enumerate(inputs))
    facts, constants = {}, {}
    for name, item in zip(names, inputs, strict=True):
        if isinstance(item, np.ndarray):
            constants[name] = item
            facts[name] = array_facts(item)
        elif item is not None:
            facts[name] = item
    node = make_node_proto(op_type, names, [f"y{i}" for i in range(n_outputs)], domain)
    sources = FactSources(
        facts.__getitem__,
        constants.get,
        lambda _: dict(attributes or {}),
        NewDims(),
        Constraints() if constraints is None else constraints,
    )
    return ShapeContext(NodeRecord(node, 0, 0), opset, sources)


def infer(op_type: str, inputs: Sequence[Any], n_outputs: int = 1, **kwargs: Any) -> list:
    """Runs the shape function of an operator, always returns one fact for each output."""
    ctx = make_context(op_type, inputs, n_outputs=n_outputs, **kwargs)
    return run(ctx)


def run(ctx: ShapeContext) -> list[ResultFacts]:
    """Runs the shape function on a context."""
    function = get_shape_function(ctx.domain, ctx.op_type, ctx.opset)
    assert function is not None, f"no function for {ctx.op_type!r}"
    answer = function(ctx)
    if answer is None:
        answer = []
    elif isinstance(answer, ResultFacts):
        answer = [answer]
    outputs = max(ctx.n_outputs, 1)
    assert len(answer) <= outputs, f"n_outputs is {outputs}, the function gives {answer}"
    return list(answer) + [ResultFacts()] * (ctx.n_outputs - len(answer))


def shape_of(op_type: str, inputs: Sequence[Any], **kwargs: Any) -> Any:
    """Shape of the first output."""
    return infer(op_type, inputs, **kwargs)[0].shape


def value_of(op_type: str, inputs: Sequence[Any], **kwargs: Any) -> Any:
    """Content of the first output."""
    return infer(op_type, inputs, **kwargs)[0].value


def is_fresh(dim: Dim) -> bool:
    """Whether a dimension depends on a fresh symbol."""
    return isinstance(dim, str) and any(s.startswith(NewDims.prefix) for s in symbols(dim))


def differences(
    facts: ResultFacts, real: Any, sizes: dict[str, int], strict: bool = False
) -> list[str]:
    """Compares facts with a real result.

    :param facts: the inferred facts
    :param real: array, list of arrays for a sequence, None for an empty optional
    :param sizes: size of every symbol, fresh symbols are bound to the first size they meet
    :param strict: unknown shapes and types are differences too
    :return: one message for each difference
    """
    if facts.optional is not None or real is None:
        return [] if real is None else differences(facts.optional or facts, real, sizes)
    if isinstance(real, list):
        if facts.sequence is None:
            return ["sequence expected"] if strict else []
        return [d for item in real for d in differences(facts.sequence, item, sizes)]
    real = numpy_helper.to_array(real) if isinstance(real, TensorProto) else np.asarray(real)
    result = _shape_differences(facts, real, sizes, strict)
    if facts.type and facts.type != type_of_array(real):
        result.append(f"type {facts.type} != {type_of_array(real)}")
    if strict and not facts.type:
        result.append("type is unknown")
    if facts.value is not None and not result:
        many = isinstance(facts.value, tuple)
        items = facts.value if many else (facts.value,)
        value = np.array([evaluate(v, sizes) for v in items], dtype=np.int64)
        if real.ndim != int(many) or not np.array_equal(value, real.reshape(-1)):
            result.append(f"value {facts.value} != {real}")
    return result


def _shape_differences(
    facts: ResultFacts, real: np.ndarray, sizes: dict[str, int], strict: bool
) -> list[str]:
    if facts.shape is None:
        if facts.rank is not None and facts.rank != real.ndim:
            return [f"rank {facts.rank} != {real.ndim}"]
        return ["shape is unknown"] if strict else []
    if len(facts.shape) != real.ndim:
        return [f"shape {facts.shape} != {real.shape}"]
    result = []
    for dim, size in zip(facts.shape, real.shape, strict=True):
        # first, another dimension may be an expression of it
        if is_fresh(dim) and dim in symbols(dim):
            sizes.setdefault(dim, size)
    for dim, size in zip(facts.shape, real.shape, strict=True):
        if strict and is_fresh(dim):
            result.append(f"{dim} is fresh in {facts.shape}")
        elif evaluate(dim, sizes) != size:
            result.append(f"shape {facts.shape} != {real.shape} ({dim})")
    return result


@dataclass(frozen=True)
class In:
    """An input with a symbolic shape and random content.

    :param shape: integers and expressions
    :param dtype: type of the elements
    :param high: integers are drawn in `[0, high[`
    """

    shape: tuple[Dim, ...]
    dtype: Any = np.float32
    high: int = 2

    def facts(self) -> ResultFacts:
        """The facts known before running."""
        return ResultFacts(helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)), self.shape)

    def draw(self, rng: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray:
        """A random array."""
        shape = tuple(evaluate(d, sizes) for d in self.shape)
        if np.dtype(self.dtype).kind == "f":
            return rng.random(shape).astype(self.dtype)
        return rng.integers(0, self.high, shape).astype(self.dtype)


def one_node_model(
    op_type: str,
    inputs: Sequence[In | np.ndarray | None],
    attributes: Mapping[str, Any],
    opset: int,
    domain: str,
    n_outputs: int,
) -> ModelProto:
    """Model with one node, arrays are initializers."""
    names = ["" if item is None else f"x{i}" for i, item in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op_type, names, outputs, domain=domain)
    for name, value in attributes.items():
        tensor = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        node.attribute.append(helper.make_attribute(name, tensor))
    declared = [
        helper.make_tensor_value_info(name, item.facts().type, item.shape)
        for name, item in zip(names, inputs, strict=True)
        if isinstance(item, In)
    ]
    constants = [
        numpy_helper.from_array(item, name)
        for name, item in zip(names, inputs, strict=True)
        if isinstance(item, np.ndarray)
    ]
    infos = [ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "one", declared, infos, constants)
    versions = {"": 21, domain: opset}
    opsets = [helper.make_opsetid(key, version) for key, version in versions.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check_runs(
    op_type: str,
    inputs: Sequence[In | np.ndarray | None],
    sizes: Sequence[Mapping[str, int]],
    expected: Sequence[tuple[Dim, ...]] | None = None,
    attributes: Mapping[str, Any] | None = None,
    opset: int = 21,
    domain: str = "",
    n_outputs: int = 1,
    reference: bool = False,
) -> list[ResultFacts]:
    """Runs a node at several sizes, every shape and type must be the inferred one.

    :param op_type: operator type
    :param inputs: arrays are constants, None is a missing input
    :param sizes: sizes of the symbols, one dictionary by run
    :param expected: expected shapes, None if the function gives new dimensions
    :param attributes: attributes
    :param opset: version of the domain
    :param domain: domain
    :param n_outputs: number of outputs
    :param reference: runs onnx's reference evaluator instead of onnxruntime
    :return: inferred facts
    """
    given = attributes or {}
    facts = infer(
        op_type,
        [item.facts() if isinstance(item, In) else item for item in inputs],
        n_outputs,
        attributes=given,
        opset=opset,
        domain=domain,
    )
    if expected is not None:
        assert [f.shape for f in facts] == list(expected)
    model = one_node_model(op_type, inputs, given, opset, domain, n_outputs)
    if reference:
        session: Any = ReferenceEvaluator(model)
    else:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    rng = np.random.default_rng(0)
    for row in sizes:
        feeds = {f"x{i}": x.draw(rng, row) for i, x in enumerate(inputs) if isinstance(x, In)}
        for i, real in enumerate(session.run(None, feeds)):
            found = differences(facts[i], real, dict(row), strict=expected is not None)
            assert not found, f"{op_type} output {i} with {row}: {found}"
    return facts


def propagate(model: ModelProto, inputs: Mapping[str, ResultFacts]) -> dict[str, ResultFacts]:
    """Applies the shape functions on a whole graph without subgraphs.

    :param model: model
    :param inputs: facts of the inputs
    :return: facts of every result
    """
    opset = {d.domain: d.version for d in model.opset_import}
    constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    facts = dict(inputs)
    facts.update({name: array_facts(array) for name, array in constants.items()})
    constraints, new_dim = Constraints(), NewDims()
    for node in model.graph.node:
        attributes = python_attributes(node)
        sources = FactSources(
            lambda name: facts.get(name, ResultFacts()),
            constants.get,
            lambda _, attributes=attributes: attributes,
            new_dim,
            constraints,
        )
        ctx = ShapeContext(NodeRecord(node, 0, 0), opset[node.domain], sources)
        if node.op_type == "Constant" and isinstance(attributes.get("value"), np.ndarray):
            constants[node.output[0]] = attributes["value"]
        facts.update(zip(node.output, run(ctx), strict=True))
    return facts
