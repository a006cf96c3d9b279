"""Wrong results seen in other tools (shared/spec/regressions.md): every set of patterns gives the
results of the original on each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xoptim.whole_models.regressions import F32, I64, SETS, check, count, optimize

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import (
    assert_same_outputs,
    model_from_text,
    run_onnxruntime,
    run_reference,
)

pytestmark = pytest.mark.parametrize("patterns", SETS)


RNG = np.random.default_rng(0)
#: name -> graph, inputs, results
RESULTS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "1, float to int to bool": (
        "agraph (float[a] X) => (bool[a] Y) { I = Cast<to=6>(X) Y = Cast<to=9>(I) }",
        {"X": F32([-0.2, -0.1, 0, 0.1, 0.2])},
        [False] * 5,
    ),
    "1, float through float16": (
        "agraph (float[a] X) => (float[a] Y) { H = Cast<to=10>(X) Y = Cast<to=1>(H) }",
        {"X": F32([1e-12, 123456.7])},
        F32([0, np.inf]),
    ),
    "1, an integer times one half": (
        """agraph (int64[a] X) => (int64[a] Y) <float half = {0.5}> {
        C = Cast<to=1>(X) M = Mul(C, half) Y = Cast<to=7>(M) }""",
        {"X": I64([2, 5, 8])},
        [1, 2, 4],
    ),
    "2, allowzero": (
        """agraph (float[z, 6, 2] X) => (float[u, v, w] Y)
        <int64[3] first = {3, 2, -1}, int64[3] second = {0, 0, 3}> {
        R = Reshape(X, first) Y = Reshape<allowzero=1>(R, second) }""",
        {"X": np.zeros((0, 6, 2), dtype=F32)},
        np.zeros((0, 0, 3)),
    ),
    "2, Squeeze twice": (
        """agraph (float[5, 7, 1, 1] X) => (float[5, 7] Y) <int64[1] last = {-1}> {
        S = Squeeze(X, last) Y = Squeeze(S, last) }""",
        {"X": np.arange(35, dtype=F32).reshape((5, 7, 1, 1))},
        np.arange(35).reshape((5, 7)),
    ),
    "4, LayerNormalization with a wider scale": (
        """agraph (float[1, 1] X) => (float[1, 2] Y)
        <int64[1] last = {-1}, float[1] two = {2.0}, float[1] eps = {0.001}, float[2] gamma = {2.0, 3.0}> {
        M = ReduceMean<keepdims=1>(X, last) D = Sub(X, M) P = Pow(D, two)
        V = ReduceMean<keepdims=1>(P, last) E = Add(V, eps) Q = Sqrt(E) N = Div(D, Q)
        Y = Mul(N, gamma) }""",
        {"X": F32([[3.0]])},
        [[0, 0]],
    ),
    "8, both constants are kept": (
        """agraph (float[a] X, float[a] Z) => (float[a] Y) <float two = {2.0}, float four = {4.0}> {
        A = Div(X, two) B = Mul(Z, four) Y = Add(A, B) }""",
        {"X": F32([1, 2]), "Z": F32([1, 3])},
        [4.5, 13],
    ),
    "12, rank 0 plus a vector of one zero": (
        "agraph (float X) => (float[1] Y) <float[1] zero = {0.0}> { Y = Add(X, zero) }",
        {"X": np.array(3, dtype=F32)},
        [3],
    ),
    "12, two constants, one is zero": (
        """agraph (float[2] X) => (float[2] Y) <float[2] five = {5.0, 6.0}, float[2] zero = {0.0, 0.0}> {
        S = Add(five, zero) Y = Mul(X, S) }""",
        {"X": F32([1, 2])},
        [5, 12],
    ),
    "12, BatchNormalization with momentum 1": (
        """agraph (float[4, 2] X) => (float[4, 2] Y)
        <float[2] s = {1.0, 2.0}, float[2] b = {0.5, 0.0}, float[2] m = {1.0, -1.0}, float[2] v = {4.0, 1.0}> {
        Y = BatchNormalization<momentum=1.0>(X, s, b, m, v) }""",
        {"X": RNG.standard_normal((4, 2)).astype(F32)},
        None,
    ),
    "13, RMSNormalization on a middle axis": (
        """<ir_version: 11, opset_import: ["" : 23, "com.microsoft": 1]>
        agraph (float[2, 3, 4] X) => (float[2, 3, 4] Y)
        <float two = {2.0}, float eps = {0.001}, float one = {1.0}, int64[1] middle = {1}> {
        P = Pow(X, two) M = ReduceMean<keepdims=1>(P, middle) E = Add(M, eps) S = Sqrt(E)
        R = Div(one, S) Y = Mul(X, R) }""",
        {"X": RNG.standard_normal((2, 3, 4)).astype(F32)},
        None,
    ),
    "13, 1 - x times infinity": (
        """agraph (float[a] X, float[a] Z) => (float[a] Y) <float one = {1.0}> {
        S = Sub(one, X) Y = Mul(S, Z) }""",
        {"X": F32([0.5, 2]), "Z": F32([np.inf, np.inf])},
        [np.inf, -np.inf],
    ),
    "15, an empty optional input": (
        "agraph (float[a] X) => (float[a] Y) <float high = {0.5}> { Y = Clip(X, , high) }",
        {"X": F32([-3, 3])},
        [-3, 0.5],
    ),
}


@pytest.mark.parametrize(("text", "feeds", "expected"), RESULTS.values(), ids=RESULTS)
def test_results(patterns: Any, text: str, feeds: dict[str, Any], expected: Any) -> None:
    _, (got,) = check(text, feeds, patterns)
    if expected is not None:
        np.testing.assert_array_equal(got, expected)
        assert got.shape == np.shape(expected)


# -- 3. shared weights


def _conv_bn_branches() -> str:
    def floats(n: int, start: int) -> str:
        return ", ".join(str((i * 7 + start) % 5 / 4 - 0.5) for i in range(n))

    constants = ", ".join(
        [
            f"float[2, 2, 1, 1] w = {{{floats(4, 1)}}}",
            *(
                f"float[2] {k}{i} = {{{floats(2, i + j)}}}"
                for i in (1, 2)
                for j, k in enumerate("sbm")
            ),
            "float[2] v1 = {0.5, 2.0}",
            "float[2] v2 = {1.5, 0.25}",
        ]
    )
    return f"""agraph (float[n, 2, h, k] X) => (float[n, 2, h, k] Y, float[n, 2, h, k] Z) <{constants}> {{
        C1 = Conv(X, w)
        Y = BatchNormalization(C1, s1, b1, m1, v1)
        C2 = Conv(X, w)
        Z = BatchNormalization(C2, s2, b2, m2, v2) }}"""


def test_3_two_branches_with_one_weight(patterns: Any) -> None:
    x = np.random.default_rng(0).standard_normal((2, 2, 3, 3)).astype(F32)
    _, (y, z) = check(_conv_bn_branches(), {"X": x}, patterns)
    assert np.abs(y - z).max() > 0.1


def test_3_function_called_twice(patterns: Any) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18, "local": 1]>
    agraph (float[n, 1, h, k] X) => (float[n, 1, h, k] Y, float[n, 1, h, k] Z)
    <float[1, 1, 1, 1] w = {2.0}, float[1] s = {3.0}, float[1] b = {1.0}, float[1] m = {0.5},
     float[1] v = {0.25}, float[1] t = {-1.0}> {
        Y = local.ConvBn(X, w, s, b, m, v)
        Z = local.ConvBn(X, w, t, b, m, v) }
    <domain: "local", opset_import: ["" : 18]>
    ConvBn (x, w, s, b, m, v) => (y) {
        c = Conv(x, w)
        y = BatchNormalization(c, s, b, m, v) }"""
    x = np.random.default_rng(0).standard_normal((1, 1, 3, 3)).astype(F32)
    check(model_from_text(text), {"X": x}, patterns)


# -- 5, 6, 7


def test_5_split_to_sequence_of_uneven_parts(patterns: Any) -> None:
    text = """agraph (float[1, 84, 8] X) => (float[1, p, 8] Y, float[1, q, 8] Z)
    <int64 size = {50}, int64 zero = {0}, int64 one = {1}> {
        S = SplitToSequence<axis=-2>(X, size)
        Y = SequenceAt(S, zero)
        Z = SequenceAt(S, one) }"""
    x = np.random.default_rng(0).standard_normal((1, 84, 8)).astype(F32)
    _, (y, z) = check(text, {"X": x}, patterns)
    assert y.shape == (1, 50, 8) and z.shape == (1, 34, 8)


@pytest.mark.parametrize("shape", ["a, b", "?, ?"])
def test_6_slices_that_are_not_neutral(patterns: Any, shape: str) -> None:
    names = shape.replace("?", "")
    text = f"""agraph (float[{shape if "?" not in shape else "u, v"}] X) => (float[p, q] Y, float[r, s] Z)
    <int64[1] last = {{-1}}, int64[1] least = {{-9223372036854775807}}, int64[1] zero = {{0}},
     int64[1] one = {{1}}, int64[1] most = {{9223372036854775807}}> {{
        Y = Slice(X, last, least, zero, last)
        Z = Slice(X, one, most, one) }}"""
    model = model_from_text(text)
    if not names.strip(", "):
        for d in model.graph.input[0].type.tensor_type.shape.dim:
            d.ClearField("dim_param")
    x = np.arange(12, dtype=F32).reshape((3, 4))
    _, (y, z) = check(model, {"X": x}, patterns)
    np.testing.assert_array_equal(y, x[::-1])
    np.testing.assert_array_equal(z, x[:, 1:])


@pytest.mark.parametrize(
    "pool",
    [
        "MaxPool<kernel_shape=[2, 2]>",
        "AveragePool<kernel_shape=[2, 2], count_include_pad=0>",
        "AveragePool<kernel_shape=[2, 2], count_include_pad=1>",
        "AveragePool<kernel_shape=[2, 2], count_include_pad=0, pads=[1, 1, 1, 1]>",
    ],
)
def test_7_pad_before_a_pool(patterns: Any, pool: str) -> None:
    text = f"""agraph (float[1, 1, 3, 3] X) => (float[1, 1, p, q] Y)
    <int64[8] pads = {{0, 0, 1, 1, 0, 0, 1, 1}}> {{
        P = Pad(X, pads)
        Y = {pool}(P) }}"""
    x = -1 - np.arange(9, dtype=F32).reshape((1, 1, 3, 3))
    check(text, {"X": x}, patterns)


# -- 9, 10


@pytest.mark.parametrize("rows", [1, 2])
def test_9_the_right_shape_is_read(patterns: Any, rows: int) -> None:
    text = """agraph (float[s, 3] state, float[a, 3] x) => (float[p, 3] y, float[q, 3] z)
    <int64 zero = {0}, int64 one = {1}> {
        xs = Shape(x)
        width = Gather(xs, one)
        shift = Cast<to=1>(width)
        moved = Add(x, shift)
        y = Concat<axis=0>(state, moved)
        ss = Shape(state)
        height = Gather(ss, zero)
        single = Equal(height, one)
        z = If(single) <
            then_branch = g1 () => (float[t, 3] zt) { zt = Neg(state) },
            else_branch = g2 () => (float[u, 3] ze) { ze = Abs(state) }
        > }"""
    rng = np.random.default_rng(0)
    feeds = {
        "state": rng.standard_normal((rows, 3)).astype(F32),
        "x": rng.standard_normal((2, 3)).astype(F32),
    }
    check(text, feeds, patterns)


@pytest.mark.parametrize(
    "body",
    [
        "M = Gemm<alpha=2.0, beta=0.5>(X, W, B)\nY = Add(M, B)",
        "T = Transpose<perm=[1, 0]>(W)\nY = Gemm<alpha=2.0, beta=0.5, transB=1>(X, T, B)",
        "Y = Gemm<alpha=0.5>(X, W)",
        "M = Gemm<alpha=3.0>(X, W)\nY = Mul(M, two)",
        "A = Mul(X, two)\nC = Mul(Z, four)\nY = Div(A, C)",
        "A = Div(X, two)\nC = Div(Z, four)\nY = Mul(A, C)",
        "A = Div(two, X)\nC = Mul(Z, four)\nY = Mul(A, C)",
        "T = Transpose<perm=[1, 0]>(Z)\nY = Mul(X, T)",
        "S = Reshape(X, flat)\nR = Gemm<alpha=2.0>(S, W)\nY = Reshape(R, square)",
    ],
)
def test_10_factors(patterns: Any, body: str) -> None:
    text = f"""agraph (float[4, 4] X, float[4, 4] Z) => (float[4, 4] Y)
    <float[4, 4] W = {{{", ".join(str(i / 8) for i in range(16))}}}, float[4] B = {{1.0, 2.0, 3.0, 4.0}},
     float two = {{2.0}}, float four = {{4.0}}, int64[2] flat = {{-1, 4}}, int64[2] square = {{4, 4}}> {{
        {body} }}"""
    rng = np.random.default_rng(0)
    feeds = {"X": rng.standard_normal((4, 4)).astype(F32), "Z": 1 + rng.random((4, 4), dtype=F32)}
    check(text, feeds, patterns)


def test_10_integer_product_and_sum(patterns: Any) -> None:
    text = """agraph (int64[2, 2] X, int64[2, 2] W) => (int64[2, 2] Y) <int64[2] b = {1, 2}> {
        M = MatMul(X, W)
        Y = Add(M, b) }"""
    feeds = {"X": np.array([[1, 2], [3, 4]]), "W": np.array([[5, 6], [7, 8]])}
    optimized, _ = check(text, feeds, patterns)
    assert count(optimized, "Gemm") == 0


# -- 11. what has an axis, what is random


@pytest.mark.parametrize(
    "body",
    [
        "T = Transpose<perm=[1, 0]>(X)\nY = Softmax<axis=1>(T)",
        "U = Unsqueeze(X, one)\nE = Expand(U, wide)\nY = Softmax<axis=1>(E)",
        "R = Reshape(X, flat)\nY = PRelu(R, slope)",
        "T = Transpose<perm=[1, 0]>(X)\nY = PRelu(T, slope3)",
        "C = Concat<axis=0>(X, X)\nY = Softmax<axis=0>(C)",
    ],
)
def test_11_operators_with_an_axis(patterns: Any, body: str) -> None:
    text = f"""agraph (float[3, 4] X) => (float Y)
    <int64[1] one = {{1}}, int64[3] wide = {{3, 2, 4}}, int64[2] flat = {{4, 3}},
     float[3] slope = {{0.1, 0.2, 0.3}}, float[3] slope3 = {{0.5, 0.25, 2.0}}> {{
        {body} }}"""
    model = model_from_text(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(F32)
    optimized = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns, verifies=True),
    ).to_onnx()
    assert_same_outputs(
        run_onnxruntime(model, {"X": x}), run_onnxruntime(optimized, {"X": x}), 1e-6, 1e-6, body
    )


@pytest.mark.parametrize("training", ["true", "unknown"])
def test_11_training_dropout_stays(patterns: Any, training: str) -> None:
    name = "yes" if training == "true" else "mode"
    text = f"""agraph (float[8, 8] X, bool mode) => (float[8, 8] Y)
    <float ratio = {{0.5}}, bool yes = {{1}}> {{
        D = Dropout(X, ratio, {name})
        Y = Neg(D) }}"""
    assert count(optimize(model_from_text(text), patterns), "Dropout") == 1


def test_11_two_random_results_stay_two(patterns: Any) -> None:
    text = """agraph (float[8, 8] X) => (float[8, 8] Y) {
        A = RandomUniformLike(X)
        B = RandomUniformLike(X)
        Y = Sub(A, B) }"""
    optimized = optimize(model_from_text(text), patterns)
    assert count(optimized, "RandomUniformLike") == 2


# -- 13


def test_13_layer_normalization_without_epsilon_on_a_constant_row(patterns: Any) -> None:
    text = """agraph (float[2, 3] X) => (float[2, 3] Y) <int64[1] last = {-1}, float two = {2.0}> {
        M = ReduceMean<keepdims=1>(X, last)
        D = Sub(X, M)
        P = Pow(D, two)
        V = ReduceMean<keepdims=1>(P, last)
        S = Sqrt(V)
        Y = Div(D, S) }"""
    x = np.array([[1, 1, 1], [1, 2, 3]], dtype=F32)
    _, (got,) = check(text, {"X": x}, patterns)
    assert np.isnan(got[0]).all()


# -- wrong results seen in other tools (shared/spec/regressions.md): inner results that are
# needed elsewhere, names, signatures

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
    optimized = optimize(model, patterns)
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


def test_15_outputs_that_are_inputs_or_initializers(patterns: Any) -> None:
    text = """agraph (float[a] X) => (float[a] X, float[2] c, float[a] Y) <float[2] c = {1.0, 2.0}> {
        Y = Neg(X) }"""
    model = model_from_text(text)
    optimized = optimize(model, patterns)
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
