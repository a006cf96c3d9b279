"""Tools of the tests of the builder: models as text, same results before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import ModelProto, TensorProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.graph_check import check_graph
from xbuilder.operators.opsets import ir_version_for
from xbuilder.runtimes.sessions import plain_session

SIZES = {"N": 3, "M": 4, "K": 2}


def parse(text: str, opset: int = 18, extra: str = "") -> ModelProto:
    """Parses a model; a text without header gets one."""
    text = text.strip()
    if not text.startswith("<"):
        header = f'<ir_version: {ir_version_for(opset)}, opset_import: ["": {opset}{extra}]>'
        text = f"{header}\n{text}"
    return onnx.parser.parse_model(text)


def functions_model(graph: str, *functions: str) -> ModelProto:
    """A model with functions; each one is `name <attributes> (inputs) => (outputs) { nodes }`."""
    text = f'<ir_version: 10, opset_import: ["": 18, "f": 1]>\n{graph}'
    for function in functions:
        text += f'\n<opset_import: ["": 18, "f": 1], domain: "f"> {function}'
    return parse(text)


def random_feeds(model: ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    """Random inputs, initializers that may be overridden are left out."""
    rng = np.random.default_rng(seed)
    known = {i.name for i in model.graph.initializer}
    feeds = {}
    for info in model.graph.input:
        if info.name in known:
            continue
        tensor = info.type.tensor_type
        shape = [
            SIZES.get(d.dim_param, 3) if d.dim_param else d.dim_value for d in tensor.shape.dim
        ]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if tensor.elem_type == TensorProto.BOOL:
            feeds[info.name] = rng.integers(0, 2, shape).astype(dtype)
        elif np.dtype(dtype).kind in "iu":
            feeds[info.name] = rng.integers(1, 5, shape).astype(dtype)
        else:
            feeds[info.name] = rng.standard_normal(shape).astype(dtype)
    return feeds


def run_onnxruntime(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """Runs a model without any optimization of onnxruntime."""
    return plain_session(model.SerializeToString()).run(None, dict(feeds))


def run_reference(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """Runs a model with the reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, dict(feeds))


def assert_same(
    before: ModelProto,
    after: ModelProto,
    feeds: Mapping[str, np.ndarray] | None = None,
    ort: bool = True,
) -> None:
    """Both models are valid and give the same results."""
    onnx.checker.check_model(after, full_check=False)
    run = run_onnxruntime if ort else run_reference
    for seed in range(2):
        inputs = random_feeds(before, seed) if feeds is None else feeds
        expected, got = run(before, inputs), run(after, inputs)
        assert len(expected) == len(got)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
            assert np.asarray(a).dtype == np.asarray(b).dtype


def optimized(
    model: ModelProto,
    feeds: Mapping[str, np.ndarray] | None = None,
    run: bool = True,
    ort: bool = True,
    infer: bool = True,
    inline: bool = True,
    **options: Any,
) -> ModelProto:
    """Optimizes a model, without patterns by default, and checks everything that must hold."""
    content = model.SerializeToString(deterministic=True)
    options.setdefault("patterns", None)
    builder = GraphBuilder(
        model, infer_shapes_options=infer, optimization_options=OptimizationOptions(**options)
    )
    after = builder.to_onnx(inline=inline)
    check_stores(builder)
    assert model.SerializeToString(deterministic=True) == content, "the model given was modified"
    if run:
        assert_same(model, after, feeds, ort)
    return after


def check_stores(builder: GraphBuilder) -> None:
    """A graph and its subgraphs are consistent, nothing is left of removed nodes."""
    check_graph(builder.graph)
    for child in builder.iter_subgraph_builders():
        check_graph(child.graph)


def op_types(model: Any) -> list[str]:
    """Types of the nodes of a model, a graph or a function; those of subgraphs come after."""
    nodes = model.graph.node if isinstance(model, ModelProto) else model.node
    types = [n.op_type for n in nodes]
    for node in nodes:
        for att in node.attribute:
            if att.type == onnx.AttributeProto.GRAPH:
                types.extend(op_types(att.g))
    return types


def initializer_names(model: ModelProto) -> list[str]:
    """Names of the initializers, sorted."""
    return sorted(i.name for i in model.graph.initializer)


#: an If whose branches capture names at several depths, and define one they read before
NESTED = parse(
    """
    agraph (float[2] x, bool c) => (float[2] y)
    {
        z = Neg(x)
        y = If (c) <
            then_branch = a () => (float[2] r) <float[2] k = {1.0, 2.0}>
            {
                t = Add(z, k)
                r = If (c) <
                    then_branch = d () => (float[2] u) { z2 = Neg(z) u = Add(z2, t) },
                    else_branch = e () => (float[2] v) { v = Add(x, t) }
                >
            },
            else_branch = b () => (float[2] s) { z = Exp(z) s = Neg(z) }
        >
    }
    """
).graph.node[1]
