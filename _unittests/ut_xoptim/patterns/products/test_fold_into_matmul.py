"""Products and sums by constants after MatMul and Gemm, big weights, names, random chains."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from hypothesis import strategies as st
from onnx import TensorProto
from ut_xoptim.patterns.products.folding_chains import chain_tests
from ut_xoptim.patterns.products.product_texts import BN, LM, NO_BIAS, NORM, NORM0, B, H, K, L, S, W

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    optimizer_of,
    refusal_tests,
    rewrite_tests,
)

#: what gathers the rows
ROWS, Z = "g (float[a, 3, 2] x) => (float[b, 2] y)", "int64[2] z = {-1, 2}"
MODELS = {
    "MatMulReshapeNormalization": {
        "a product": (
            f"{ROWS} <{W}, {Z}, {NORM}> {{ c1 = MatMul(x, w) r = Reshape(c1, z)"
            f" y = {BN}(r, s, o, m, v) }}",
            f"{ROWS} <float[2, 2] w = {{2, -2, 6, -4}}, {Z}, float[2] o = {{-1, 2.5}}>"
            "{ c1 = MatMul(x, w) c2 = Add(c1, o) y = Reshape(c2, z) }",
        ),
        "Flatten": (
            f"{ROWS} <{W}, {NORM}> {{ c1 = MatMul(x, w) r = Flatten<axis = 2>(c1)"
            f" y = {BN}(r, s, o, m, v) }}",
            f"{ROWS} <float[2, 2] w = {{2, -2, 6, -4}}, float[2] o = {{-1, 2.5}}>"
            "{ c1 = MatMul(x, w) c2 = Add(c1, o) y = Flatten<axis = 2>(c2) }",
        ),
        "Squeeze": (
            f"g (float[a, 1, 2] x) => (float[a, 2] y) <{W}, int64[1] z = {{1}}, {NORM}>"
            f"{{ c1 = MatMul(x, w) r = Squeeze(c1, z) y = {BN}(r, s, o, m, v) }}",
            "g (float[a, 1, 2] x) => (float[a, 2] y) <float[2, 2] w = {2, -2, 6, -4},"
            " int64[1] z = {1}, float[2] o = {-1, 2.5}>"
            "{ c1 = MatMul(x, w) c2 = Add(c1, o) y = Squeeze(c2, z) }",
        ),
        "a product and its bias": (
            f"{ROWS} <{W}, {B}, {Z}, {NORM}> {{ c1 = MatMul(x, w) c2 = Add(b, c1)"
            f" r = Reshape(c2, z) y = {BN}(r, s, o, m, v) }}",
            f"{ROWS} <float[2, 2] w = {{2, -2, 6, -4}}, {Z}, float[2] o = {{1, 3.5}}>"
            "{ c1 = MatMul(x, w) c2 = Add(c1, o) y = Reshape(c2, z) }",
        ),
    },
    "MatMulAffine": {
        "the opposite": (
            """g (float[a, 2] x) => (float[a, 2] y) <float[2, 2] w = {1, 2, 3, 4}> {
                m = MatMul(x, w)
                y = Neg(m)
            }""",
            """g (float[a, 2] x) => (float[a, 2] y) <float[2, 2] w = {-1, -2, -3, -4}> {
                y = MatMul(x, w)
            }""",
        ),
        "Gemm and a product": (
            f"{H} <{W}, {B}, {K}> {{ c1 = Gemm(x, w, b) y = Mul(c1, k) }}",
            f"{H} <float[2, 2] w = {{2, 8, 6, 16}}, float[2] b = {{2, -4}}>{{ y = Gemm(x, w, b) }}",
        ),
        "transB, alpha, beta": (
            f"{H} <{W}, {B}, float[1, 2] k = {{2, 4}}>"
            "{ c1 = Gemm<transB=1, alpha=2.0, beta=3.0>(x, w, b) y = Div(c1, k) }",
            f"{H} <float[2, 2] w = {{0.5, 1, 0.75, 1}}, float[2] b = {{1.5, -0.75}}>"
            "{ y = Gemm<transB=1, alpha=2.0>(x, w, b) }",
        ),
        "transA": (
            "g (float[2, a] x) => (float[a, 2] y)"
            f" <{W}, {B}, {K}> {{ c1 = Gemm<transA=1>(x, w, b) y = Sub(c1, k) }}",
            "g (float[2, a] x) => (float[a, 2] y)"
            f" <{W}, float[2] b = {{-1, -5}}> {{ y = Gemm<transA=1>(x, w, b) }}",
        ),
        "Gemm and one number": (
            f"{H} <{W}, {B}, float k = {{4}}>"
            "{ c1 = Gemm<alpha=0.5, beta=2.0>(x, w, b) y = Mul(c1, k) }",
            f"{H} <{W}, float[2] b = {{8, -8}}> {{ y = Gemm<alpha=2.0>(x, w, b) }}",
        ),
        "the weight comes first": (
            f"{L} <{W}, float[2, 1] k = {{2, 4}}> {{ c1 = MatMul(w, x) y = Mul(c1, k) }}",
            f"{L} <float[2, 2] w = {{2, 4, 12, 16}}> {{ y = MatMul(w, x) }}",
        ),
        "the weight comes first, subtracted": (
            f"{LM} <{W}, float[2, 1] k = {{2, 4}}> {{ c1 = MatMul(w, x) y = Sub(c1, k) }}",
            f"{LM} <{W}, float[2, 1] k = {{-2, -4}}> {{ y = Gemm(w, x, k) }}",
        ),
        "the weight comes first, BatchNormalization": (
            f"{L} <{W}, {NORM0}> {{ c1 = MatMul(w, x) y = {BN}(c1, s, o, m, v) }}",
            f"{L} <float[2, 2] w = {{2, 4, -3, -4}}> {{ y = MatMul(w, x) }}",
        ),
        "the weight comes first, transA": (
            f"{LM} <{W}, float[2, 1] b = {{1, -1}}, float[2, 1] k = {{2, 4}}>"
            "{ c1 = Gemm<transA=1, alpha=0.5>(w, x, b) y = Div(c1, k) }",
            f"{LM} <float[2, 2] w = {{0.5, 0.5, 1.5, 1}}, float[2, 1] b = {{0.5, -0.25}}>"
            "{ y = Gemm<transA=1, alpha=0.5>(w, x, b) }",
        ),
        "Gemm without bias": (
            f"{H} <{W}, {K}> {{ c1 = Gemm(x, w) y = Mul(k, c1) }}",
            f"{H} <float[2, 2] w = {{2, 8, 6, 16}}> {{ y = Gemm(x, w) }}",
        ),
        "a bias of one number": (
            f"{H} <{W}, float b = {{1}}, {K}> {{ c1 = Gemm(x, w, b) y = Add(c1, k) }}",
            f"{H} <{W}, float[2] b = {{3, 5}}> {{ y = Gemm(x, w, b) }}",
        ),
        "Gemm without bias and one number": (
            f"{H} <{W}, float k = {{4}}> {{ c1 = Gemm(x, w) y = Mul(c1, k) }}",
            f"{H} <{W}> {{ y = Gemm<alpha=4.0>(x, w) }}",
        ),
        "Gemm of a result whose rank is not known": (
            f"g (float[] x) => (float[a, 2] y) <{W}, {B}, {K}>{{ c1 = Gemm(x, w, b) y = Sub(c1, k) }}",
            f"g (float[] x) => (float[a, 2] y) <{W}, float[2] b = {{-1, -5}}> {{ y = Gemm(x, w, b) }}",
            {"feeds": [{"x": np.ones((3, 2), np.float32)}]},
        ),
        "Gemm and BatchNormalization": (
            f"{H} <{W}, {B}, {NORM}> {{ c1 = Gemm(x, w, b) y = {BN}(c1, s, o, m, v) }}",
            f"{H} <float[2, 2] w = {{2, -2, 6, -4}}, float[2] b = {{1, 3.5}}>"
            "{ y = Gemm(x, w, b) }",
        ),
        "MatMul and BatchNormalization": (
            f"{H} <{W}, {NORM}> {{ c1 = MatMul(x, w) y = {BN}(c1, s, o, m, v) }}",
            f"{H} <float[2, 2] w = {{2, -2, 6, -4}}, float[2] b = {{-1, 2.5}}>"
            "{ y = Gemm(x, w, b) }",
        ),
        "MatMul subtracted": (
            f"{H} <{W}, {K}> {{ c1 = MatMul(x, w) y = Sub(k, c1) }}",
            f"{H} <{W}, {K}> {{ y = Gemm<alpha=-1.0>(x, w, k) }}",
        ),
        "MatMul minus a constant": (
            f"{H} <{W}, {K}> {{ c1 = MatMul(x, w) y = Sub(c1, k) }}",
            f"{H} <{W}, float[2] k = {{-2, -4}}> {{ y = Gemm(x, w, k) }}",
        ),
        "MatMul of any rank": (
            f"g (float[] x) => (float[] y) <{W}, {K}> {{ c1 = MatMul(x, w) y = Mul(c1, k) }}",
            "g (float[] x) => (float[] y) <float[2, 2] w = {2, 8, 6, 16}> { y = MatMul(x, w) }",
            {"feeds": [{"x": np.ones((3, 2, 2), np.float32)}, {"x": np.ones(2, np.float32)}]},
        ),
        "a stack of matrices": (
            "g (float[2, b, 2] x) => (float[2, b, 2] y)"
            " <float[2, 2, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[1, 1, 2] k = {2, 4}>"
            "{ c1 = MatMul(x, w) y = Div(c1, k) }",
            "g (float[2, b, 2] x) => (float[2, b, 2] y)"
            " <float[2, 2, 2] w = {0.5, 0.5, 1.5, 1, 2.5, 1.5, 3.5, 2}> { y = MatMul(x, w) }",
        ),
    },
    "MatMulAddMul": {
        "one number": (
            f"{S} <{W}, {B}, float k = {{2}}>"
            "{ c1 = MatMul(x, w) c2 = Add(c1, b) y = Mul(c2, k) }",
            f"{S} <float[2, 2] w = {{2, 4, 6, 8}}, float[2] b = {{2, -2}}>"
            "{ c1 = MatMul(x, w) y = Add(c1, b) }",
        ),
        "one for each row": (
            f"{L} <{W}, float[2, 1] b = {{1, -1}}, float[2, 1] k = {{2, 4}}>"
            "{ c1 = MatMul(w, x) c2 = Add(c1, b) y = Mul(c2, k) }",
            f"{L} <float[2, 2] w = {{2, 4, 12, 16}}, float[2, 1] b = {{2, -4}}>"
            "{ c1 = MatMul(w, x) y = Add(c1, b) }",
        ),
        "one for each column": (
            f"{S} <{W}, {B}, {K}> {{ c1 = MatMul(x, w) c2 = Add(b, c1) y = Div(c2, k) }}",
            f"{S} <float[2, 2] w = {{0.5, 0.5, 1.5, 1}}, float[2] b = {{0.5, -0.25}}>"
            "{ c1 = MatMul(x, w) y = Add(c1, b) }",
        ),
    },
}

NEAR_MISSES = {
    "MatMulReshapeNormalization": {
        "no Reshape": (
            f"{H} <{W}, {NORM}> {{ c1 = MatMul(x, w) r = Neg(c1) y = {BN}(r, s, o, m, v) }}",
            "no .*Reshape.* before",
        ),
        "no product": (
            f"{ROWS} <{Z}, {NORM}> {{ c1 = Neg(x) r = Reshape(c1, z) y = {BN}(r, s, o, m, v) }}",
            "no MatMul before",
        ),
        "used elsewhere": (
            f"{ROWS[:-1]}, float[b, 2] r) <{W}, {Z}, {NORM}>"
            f"{{ c1 = MatMul(x, w) r = Reshape(c1, z) y = {BN}(r, s, o, m, v) }}",
            "an inner result is used elsewhere",
        ),
        "other columns": (
            f"g (float[1, 2, 3] x) => (float[b, 2] y) <float[3, 3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}},"
            f" {Z}, {NORM}> {{ c1 = MatMul(x, w) r = Reshape(c1, z) y = {BN}(r, s, o, m, v) }}",
            "the Reshape does not keep the columns",
        ),
        "the weight comes first": (
            f"g (float[2, 2] x) => (float[b, 2] y) <{W}, {Z}, {NORM}>"
            f"{{ c1 = MatMul(w, x) r = Reshape(c1, z) y = {BN}(r, s, o, m, v) }}",
            "the Reshape does not keep the columns",
        ),
        "the columns are squeezed": (
            "g (float[a, 2, 3] x) => (float[a, 2] y) <float[3, 1] w = {1, 2, 3}, "
            f"int64[1] z = {{2}}, {NORM}>"
            f"{{ c1 = MatMul(x, w) r = Squeeze(c1, z) y = {BN}(r, s, o, m, v) }}",
            "the Reshape does not keep the columns",
        ),
        "three dimensions": (
            f"g (float[a, 2] x) => (float[b, 2, 1] y) <{W}, int64[3] z = {{-1, 2, 1}}, {NORM}>"
            f"{{ c1 = MatMul(x, w) r = Reshape(c1, z) y = {BN}(r, s, o, m, v) }}",
            "the Reshape does not keep the columns",
        ),
        "a sum that is not constant": (
            "g (float[a, 3, 2] x, float[2] k) => (float[b, 2] y)"
            f"<{W}, {Z}, {NORM}> {{ c1 = MatMul(x, w) c2 = Add(c1, k) r = Reshape(c2, z)"
            f" y = {BN}(r, s, o, m, v) }}",
            "the other operand is not constant",
        ),
    },
    "MatMulAffine": {
        "not constant": (
            f"g (float[a, 2] x, float[2] k) => (float[a, 2] y) <{W}>"
            "{ c1 = MatMul(x, w) y = Mul(c1, k) }",
            "the other operand is not constant",
        ),
        "used elsewhere": (
            f"g (float[a, 2] x) => (float[a, 2] y, float[a, 2] c1) <{W}, {K}>"
            "{ c1 = MatMul(x, w) y = Mul(c1, k) }",
            "the product is used elsewhere",
        ),
        "a sum": (
            f"{H} <{W}, {K}> {{ c1 = MatMul(x, w) y = Add(c1, k) }}",
            "it is a sum, MatMulAdd makes a Gemm",
        ),
        "no matrices": (f"{S} <{W}, {K}> {{ c1 = MatMul(x, w) y = Sub(c1, k) }}", NO_BIAS),
        "rows": (
            f"g (float[2, 2] x) => (float[2, 2] y) <{W}, float[2, 1] k = {{1, 2}}>"
            "{ c1 = MatMul(x, w) y = Mul(c1, k) }",
            "does not have one value for each channel",
        ),
        "channels in the middle": (
            f"g (float[a, 2, 2] x) => (float[a, 2, 2] y) <{W}, {NORM}>"
            f"{{ c1 = MatMul(x, w) y = {BN}(c1, s, o, m, v) }}",
            "BatchNormalization has channels of its own",
        ),
        "a parameter": (
            f"g (float[a, 2] x, float[2] z) => (float[a, 2] y) <{W}, {NORM}>"
            f"{{ c1 = MatMul(z, w) y = {BN}(x, s, o, c1, v) }}",
            "the result is a parameter",
        ),
        "a vector": (
            "g (float[a, 2] x) => (float[a] y) <float[2] w = {1, 2}, float k = {2}>"
            "{ c1 = MatMul(x, w) y = Mul(c1, k) }",
            "the weight is a vector",
        ),
        "a weight that is not constant": (
            "g (float[a, 2] x, float[2, 2] w) => (float[a, 2] y) <float k = {2}>"
            "{ c1 = MatMul(x, w) y = Mul(c1, k) }",
            "the weight is not constant",
        ),
        "integers": (
            "g (int64[a, 2] x) => (int64[a, 2] y)"
            " <int64[2, 2] w = {1, 2, 3, 4}, int64 k = {2}> { c1 = MatMul(x, w) y = Mul(c1, k) }",
            "the type of the weight is not a float type",
        ),
        "integers subtracted": (
            "g (int64[a, 2] x) => (int64[a, 2] y)"
            " <int64[2, 2] w = {1, 2, 3, 4}, int64 k = {2}> { c1 = MatMul(x, w) y = Sub(c1, k) }",
            "the type is not a known float type",
        ),
        "integers divided by zero": (
            "g (int64[a, 2] x) => (int64[a, 2] y)"
            " <int64[2, 2] w = {1, 2, 3, 4}, int64 k = {0}> { c1 = MatMul(x, w) y = Div(c1, k) }",
            "divided by zero",
        ),
        "a bias of one row after the weight": (
            f"g (float[2, 2] x) => (float[2, 2] y) <{W}, {B}, float[2, 1] k = {{1, 2}}>"
            "{ c1 = Gemm(w, x, b) y = Mul(c1, k) }",
            "the bias is not one column",
        ),
        "columns after the weight": (
            f"g (float[2, 2] x) => (float[2, 2] y) <{W}, {K}>{{ c1 = MatMul(w, x) y = Mul(c1, k) }}",
            "does not have one value for each channel",
        ),
        "a vector after the weight": (
            f"g (float[2] x) => (float[2] y) <{W}, {K}>{{ c1 = MatMul(w, x) y = Mul(c1, k) }}",
            "the second operand is a vector",
        ),
        "a rank that is not known after the weight": (
            f"g (float[] x) => (float[] y) <{W}, float k = {{2}}> "
            "{ c1 = MatMul(w, x) y = Mul(c1, k) }",
            "the rank of the second operand is not known",
        ),
        "a bias of one column": (
            f"g (float[2, 2] x) => (float[2, 2] y) <{W}, float[2, 1] b = {{1, 2}}, {K}>"
            "{ c1 = Gemm(x, w, b) y = Mul(c1, k) }",
            "the bias is not one row",
        ),
        "a bias that is not constant": (
            f"g (float[a, 2] x, float[2] b) => (float[a, 2] y) <{W}, {K}>"
            "{ c1 = Gemm(x, w, b) y = Mul(c1, k) }",
            "the bias is not constant",
        ),
        "underflow": (
            f"{H} <{W}, float k = {{1e-39}}> {{ c1 = MatMul(x, w) y = Mul(c1, k) }}",
            "the new weight is too small",
        ),
    },
    "MatMulAddMul": {
        "no MatMul": (
            f"{S} <{B}, {K}> {{ c2 = Add(x, b) y = Mul(c2, k) }}",
            "no MatMul before",
        ),
        "an output": (
            f"g (float[a, b, 2] x) => (float[a, b, 2] y, float[a, b, 2] c2) <{W}, {B}, {K}>"
            "{ c1 = MatMul(x, w) c2 = Add(c1, b) y = Mul(c2, k) }",
            "an inner result is used elsewhere",
        ),
        "the sum is not constant": (
            f"g (float[a, b, 2] x, float[2] b) => (float[a, b, 2] y) <{W}, {K}>"
            "{ c1 = MatMul(x, w) c2 = Add(c1, b) y = Mul(c2, k) }",
            "the other operand is not constant",
        ),
        "the factor is not constant": (
            f"g (float[a, b, 2] x, float[2] k) => (float[a, b, 2] y) <{W}, {B}>"
            "{ c1 = MatMul(x, w) c2 = Add(c1, b) y = Mul(c2, k) }",
            "the other operand is not constant",
        ),
        "a constant divided": (
            f"{S} <{W}, {B}, {K}> {{ c1 = MatMul(x, w) c2 = Add(c1, b) y = Div(k, c2) }}",
            "a constant is divided",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)
test_refuses = refusal_tests(NEAR_MISSES)


def big_model(size: int = 40) -> onnx.ModelProto:
    """MatMul then Mul by one number for each column, with a weight above the budget of a fold."""
    rng = np.random.default_rng(0)
    tensors = {"w": rng.standard_normal((size, size)), "k": rng.random(size) + 1}
    graph = oh.make_graph(
        [oh.make_node("MatMul", ["x", "w"], ["c"]), oh.make_node("Mul", ["c", "k"], ["y"])],
        "g",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b", size])],
        [oh.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b", size])],
        [onh.from_array(v.astype(np.float32), n) for n, v in tensors.items()],
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


def test_big_weight():
    model = check_pattern(big_model(), None, "MatMulAffine", atol=1e-4, rtol=1e-4)
    assert [n.op_type for n in model.graph.node] == ["MatMul"]


def test_big_weight_used_twice():
    """A tied weight would be in the file twice: it is more than the folds of the model may add."""
    model = big_model(130)
    model.graph.node.add(op_type="MatMul", input=["x", "w"], output=["z"])
    model.graph.output.append(oh.make_tensor_value_info("z", TensorProto.FLOAT, ["a", "b", 130]))
    optimizer = optimizer_of(model, ["MatMulAffine"])
    (pattern,) = optimizer.patterns
    (reason,) = [optimizer.explain(pattern, n) for n in optimizer.iter_roots(pattern)]
    assert "the weight is used elsewhere, the model would grow" in reason


def test_big_weight_used_twice_that_stays():
    """A scale of ones leaves the weight as it is."""
    model = big_model(130)
    model.graph.node[1].CopyFrom(
        oh.make_node("BatchNormalization", ["c", "one", "k", "k", "one"], ["y"], epsilon=0.0)
    )
    model.graph.initializer.append(onh.from_array(np.ones(130, np.float32), "one"))
    for info in (model.graph.input[0], model.graph.output[0]):
        del info.type.tensor_type.shape.dim[1]
    model.graph.node.add(op_type="MatMul", input=["x", "w"], output=["z"])
    model.graph.output.append(oh.make_tensor_value_info("z", TensorProto.FLOAT, ["a", 130]))
    got = check_pattern(model, None, "MatMulAffine", atol=1e-4, rtol=1e-4)
    assert [(n.op_type, n.input[1]) for n in got.graph.node] == [("MatMul", "w")] * 2


@pytest.mark.parametrize(
    ("pattern", "nodes", "names"),
    [
        ("MatMulAffine", "c1 = Gemm(x, w, b) y = Mul(c1, k)", {"w", "b"}),
        ("MatMulAffine", "c1 = Gemm(x, w) y = Sub(c1, k)", {"w", "k"}),
        ("AffineMatMul", "c1 = Add(x, k) y = Gemm(c1, w, b)", {"w", "b"}),
        ("AffineMatMul", "c1 = Add(x, k) y = Gemm(c1, w)", {"w", "k"}),
    ],
)
def test_names_of_what_is_made(pattern: str, nodes: str, names: set[str]):
    """A new constant has the name of the one it is made of."""
    model = model_from_text(f"{H} <{W}, {B}, {K}> {{ {nodes} }}")
    got = optimize_with(model, [pattern])[0]
    assert {i.name for i in got.graph.initializer} == names


def test_big_weight_transposed_before():
    """The bytes leave the file with the weight that is transposed."""
    model = big_model()
    model.graph.node.insert(0, oh.make_node("Transpose", ["u"], ["w"], perm=[1, 0]))
    model.graph.initializer[0].name = "u"
    got = check_pattern(model, None, "MatMulAffine", atol=1e-4, rtol=1e-4)
    assert [n.op_type for n in got.graph.node] == ["MatMul"]


@pytest.mark.parametrize("opset", [9, 11])
def test_old_gemm_keeps_its_bias(opset: int):
    """The bias of Gemm is optional since opset 11."""
    text = f"{H} <{W}, {K}, float[2] b = {{0, 0}}> {{ c1 = Gemm(x, w, b) y = Mul(c1, k) }}"
    got = optimize_with(model_from_text(text, opset), ["MatMulAffine"])[0]
    (node,) = got.graph.node
    assert (node.op_type, len(node.input)) == ("Gemm", 3)


# -- chains of products and sums around MatMul and Gemm, made at random

FOLDS = [
    "AffineMatMul",
    "MatMulAddMul",
    "MatMulAffine",
    "MatMulBiases",
    "MatMulReshapeNormalization",
]
_LAST = 4
_SHAPES = [(), (1,), (1, 1), ("N",), (1, "N"), (1, 1, "N"), (3, 1), (1, 1, 1)]
#: the weight comes first: channels are the last axis but one, another one follows
_ROWS = [(), (1,), (1, 1), ("N", 1), (1, "N", 1), (_LAST,), (1, 1, 1)]


@st.composite
def chains(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A product with products, sums and normalizations by constants around it."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    # onnxruntime leaves the result of a product as it is when the inner dimension is null
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    gemm, turned, left = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    shape = draw(st.sampled_from([(3, rows), (1, rows), (2, 3, rows), (rows,)]))
    if left:
        shape = draw(st.sampled_from([(rows, _LAST), (2, rows, _LAST)]))
    if gemm:
        shape = (rows, _LAST) if left else (3, rows)
    tensors: dict[str, np.ndarray] = {}
    nodes: list[onnx.NodeProto] = []

    def affine(name: str, size: int) -> str:
        for _ in range(draw(st.integers(0, 3))):
            i, op = len(nodes), draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "BN"]))
            inputs, new = [name, f"k{i}"], f"r{i}"
            if op == "BN":
                inputs = [name, *(f"k{i}_{j}" for j in range(4))]
                channels = _LAST if left and len(shape) == 2 else size
                tensors.update((n, rng.random(channels) + 0.5) for n in inputs[1:])
                op = "BatchNormalization"
            else:
                dims = draw(st.sampled_from(_ROWS if left else _SHAPES))
                dims = tuple(size if d == "N" else d for d in dims)
                tensors[f"k{i}"] = (rng.random(dims) + 0.5) * rng.choice([-1, 1], dims)
                if draw(st.booleans()):
                    inputs.reverse()
            nodes.append(oh.make_node(op, inputs, [new]))
            name = new
        return name

    x = affine("x", rows)
    if gemm:
        tensors["w"] = rng.standard_normal((columns, rows) if turned != left else (rows, columns))
        biases = [(columns,), (1, columns), (3, 1)] if not left else [(columns, 1), (_LAST,)]
        bias = draw(st.sampled_from([None, (), (1,), *biases]))
        if bias is not None:
            tensors["b"] = rng.standard_normal(bias)
        inputs = [*(("w", x) if left else (x, "w")), *(["b"] if bias is not None else [])]
        side = {("transA" if left else "transB"): int(turned)}
        alpha = draw(st.sampled_from([1.0, 0.5]))
        nodes.append(oh.make_node("Gemm", inputs, ["c"], alpha=alpha, beta=2.0, **side))
    else:
        sides = (columns, rows) if left else (rows, columns)
        tensors["w"] = rng.standard_normal((*((2,) if turned else ()), *sides))
        nodes.append(oh.make_node("MatMul", ["w", x] if left else [x, "w"], ["c"]))
    last = affine("c", columns)
    nodes.append(oh.make_node("Identity", [last], ["y"]))
    outputs = {"y", *draw(st.sets(st.sampled_from([n.output[0] for n in nodes]), max_size=1))}
    dims: list[str | int] = [f"d{i}" for i in range(len(shape) - 1)]
    dims.insert(len(dims) - left, rows)
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [oh.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in sorted(outputs)],
        [onh.from_array(np.asarray(v, dtype=np.float32), n) for n, v in tensors.items()],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    return model, {"x": rng.standard_normal(shape).astype(np.float32)}


test_any_chain, test_many_chains = chain_tests(chains(), FOLDS)
