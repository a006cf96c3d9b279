"""Wrong results seen in other tools (shared/spec/regressions.md): inner results that are needed
elsewhere, names, signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xoptim.regressions import F32, SETS, check, optimize

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import (
    model_from_text,
    run_onnxruntime,
    run_reference,
)

pytestmark = pytest.mark.parametrize("patterns", SETS)


# -- 14. an inner result of a fusion is needed elsewhere

_FUSIONS = {
    "layer_norm": """M = ReduceMean<keepdims=1>(X, last)
        D = Sub(X, M)
        P = Pow(D, two)
        V = ReduceMean<keepdims=1>(P, last)
        E = Add(V, eps)
        S = Sqrt(E)
        R = Div(D, S)""",
    "gelu_erf": """D = Div(X, root)
        V = Erf(D)
        A = Add(V, one)
        M = Mul(X, A)
        R = Mul(M, half)""",
    "gemm": "D = MatMul(X, W)\nR = Add(D, B)",
    "transposes": "D = Transpose<perm=[1, 0]>(X)\nR = Transpose<perm=[1, 0]>(D)",
    "reshapes": "D = Reshape(X, rank3)\nR = Reshape(D, rank2)",
    "squeezes": "D = Unsqueeze(X, zero)\nR = Squeeze(D, zero)",
    "casts": "D = Cast<to=11>(X)\nR = Cast<to=1>(D)",
    "nots": "G = Greater(X, one)\nD = Not(G)\nN = Not(D)\nR = Cast<to=1>(N)",
    "clips": "D = Clip(X, half)\nR = Clip(D, , one)",
    "where": "G = Greater(X, one)\nD = Not(G)\nR = Where(D, X, half)",
}
_CONSTANTS = """int64[1] last = {-1}, int64[1] zero = {0}, float two = {2.0}, float eps = {0.00001},
    float root = {1.4142135}, float one = {1.0}, float half = {0.5},
    float[4, 4] W = {1.0, 0.5, 0.25, 2.0, 3.0, 1.0, 0.5, 0.25, 2.0, 3.0, 1.0, 0.5, 0.25, 2.0, 3.0, 1.0},
    float[4] B = {1.0, 2.0, 3.0, 4.0}, int64[3] rank3 = {-1, 2, 2}, int64[2] rank2 = {-1, 4}"""


@pytest.mark.parametrize("use", ["output", "capture", "twice"])
@pytest.mark.parametrize("fusion", sorted(_FUSIONS))
def test_14_inner_results(patterns: Any, fusion: str, use: str) -> None:
    tail = {
        "output": "Y = Neg(R)",
        "twice": "Y = Neg(R)\nQ = Identity(D)\nK = Identity(Q)",
        "capture": """Y = Neg(R)
        K = If(flag) <
            then_branch = g1 () => (float kt) { kt = Identity(D) },
            else_branch = g2 () => (float ke) { ke = Identity(D) }
        >""",
    }[use]
    second = "D" if use == "output" else "K"
    text = f"""agraph (float[a, 4] X, bool flag) => (float[a, 4] Y, float[a, 4] {second}) <{_CONSTANTS}> {{
        {_FUSIONS[fusion]}
        {tail} }}"""
    model = model_from_text(text)
    builder = GraphBuilder(model, infer_shapes_options=True)
    elem_type = builder.get_type("D")
    rank = builder.get_rank("D")
    for graph in [model.graph, *(a.g for n in model.graph.node for a in n.attribute if a.g.output)]:
        for output in graph.output:
            if output.name != "Y":
                info = oh.make_tensor_value_info(output.name, elem_type, [None] * rank)
                output.CopyFrom(info)
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(F32)
    check(model, {"X": x, "flag": np.array(True)}, patterns)


# -- 15. names and signatures


def test_15_a_local_name_hides_an_outer_one(patterns: Any) -> None:
    then = oh.make_graph(
        [oh.make_node("Neg", ["X"], ["T"]), oh.make_node("Abs", ["T"], ["r"])],
        "then",
        [],
        [oh.make_tensor_value_info("r", TensorProto.FLOAT, ["a"])],
    )
    other = oh.make_graph(
        [oh.make_node("Exp", ["T"], ["s"])],
        "else",
        [],
        [oh.make_tensor_value_info("s", TensorProto.FLOAT, ["a"])],
    )
    graph = oh.make_graph(
        [
            oh.make_node("Identity", ["X"], ["T"]),
            oh.make_node("If", ["flag"], ["Y"], then_branch=then, else_branch=other),
        ],
        "hidden",
        [
            oh.make_tensor_value_info("X", TensorProto.FLOAT, ["a"]),
            oh.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [oh.make_tensor_value_info("Y", TensorProto.FLOAT, ["a"])],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    x = np.array([1, -2], dtype=F32)
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns, verifies=True),
    )
    optimized = builder.to_onnx()
    for flag in (True, False):
        (got,) = run_reference(optimized, {"X": x, "flag": np.array(flag)})
        np.testing.assert_allclose(got, np.abs(x) if flag else np.exp(x), rtol=1e-6)


def test_15_an_overridden_initializer(patterns: Any) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    agraph (float[a] X, float[1] shift = {0.0}) => (float[a] Y) { Y = Add(X, shift) }"""
    model = onnx.parser.parse_model(text)
    assert [i.name for i in model.graph.initializer] == ["shift"]
    optimized = optimize(model, patterns)
    feeds = {"X": np.array([1, 2], dtype=F32)}
    assert run_onnxruntime(optimized, feeds)[0].tolist() == [1, 2]
    feeds["shift"] = np.array([5], dtype=F32)
    assert run_onnxruntime(optimized, feeds)[0].tolist() == [6, 7]


def test_15_an_empty_optional_input(patterns: Any) -> None:
    text = """agraph (float[a] X) => (float[a] Y) <float high = {0.5}> { Y = Clip(X, , high) }"""
    check(text, {"X": np.array([-3, 3], dtype=F32)}, patterns)


def test_15_outputs_that_are_inputs_or_initializers(patterns: Any) -> None:
    text = """agraph (float[a] X) => (float[a] X, float[2] c, float[a] Y) <float[2] c = {1.0, 2.0}> {
        Y = Neg(X) }"""
    model = model_from_text(text)
    optimized = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns, verifies=True),
    ).to_onnx()
    assert [o.name for o in optimized.graph.output] == ["X", "c", "Y"]
    x, c, y = run_reference(optimized, {"X": np.array([1, 2], dtype=F32)})
    assert (x.tolist(), c.tolist(), y.tolist()) == ([1, 2], [1, 2], [-1, -2])


def test_15_order_names_and_dead_nodes(patterns: Any) -> None:
    nodes = [
        oh.make_node("Relu", ["T"], ["Y"], name="same"),
        oh.make_node("Neg", ["X"], ["T"], name="same"),
        oh.make_node("Exp", ["X"], ["dead"], name="same"),
    ]
    graph = oh.make_graph(
        nodes,
        "order",
        [oh.make_tensor_value_info("X", TensorProto.FLOAT, ["a"])],
        [oh.make_tensor_value_info("Y", TensorProto.FLOAT, ["a"])],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    optimized = optimize(model, patterns)
    assert [n.op_type for n in optimized.graph.node] == ["Neg", "Relu"]
    (got,) = run_onnxruntime(optimized, {"X": np.array([1, -2], dtype=F32)})
    assert got.tolist() == [0, 2]
