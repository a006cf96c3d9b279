"""MatMul and Gemm with what is next to them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.patterns.products.matmul import MatMulAddPattern
from xoptim.testing import (
    check_no_match,
    check_pattern,
    compare_models,
    model_from_text,
    refusal_tests,
    rewrite_tests,
)

XY = "g (float[a, b] x, float[b, c] k) => (float[a, c] y)"
W34 = "float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}"
XW = "g (float[a, 3] x) => (float[a, 4] y)"
B4 = "float[4] b = {1, 2, 3, 4}"
#: accumulation in another order
CLOSE = {"atol": 1e-5, "rtol": 1e-5}

MODELS = {
    "TransposeMatMul": {
        "left": (
            "g (float[b, a] x, float[b, c] k) => (float[a, c] y)"
            "{ t = Transpose<perm=[1, 0]>(x) y = MatMul(t, k) }",
            "g (float[b, a] x, float[b, c] k) => (float[a, c] y) { y = Gemm<transA=1>(x, k) }",
        ),
        "right, no permutation": (
            "g (float[a, b] x, float[c, b] k) => (float[a, c] y)"
            "{ t = Transpose(k) y = MatMul(x, t) }",
            "g (float[a, b] x, float[c, b] k) => (float[a, c] y) { y = Gemm<transB=1>(x, k) }",
        ),
        "both": (
            "g (double[b, a] x, double[c, b] k) => (double[a, c] y)"
            "{ s = Transpose<perm=[1, 0]>(x) t = Transpose<perm=[1, 0]>(k) y = MatMul(s, t) }",
            "g (double[b, a] x, double[c, b] k) => (double[a, c] y)"
            "{ y = Gemm<transA=1, transB=1>(x, k) }",
        ),
        "a constant on the left, transposed twice": (
            f"g (float[4, c] k) => (float[3, c] y) <{W34}>"
            "{ t = Transpose(w) y = Gemm<transA=1>(t, k) }",
            f"g (float[4, c] k) => (float[3, c] y) <{W34}> {{ y = Gemm(w, k) }}",
        ),
        "the same Transpose twice": (
            "g (float[3, 3] x) => (float[3, 3] y) { t = Transpose(x) y = MatMul(t, t) }",
            "g (float[3, 3] x) => (float[3, 3] y) { y = Gemm<transA=1, transB=1>(x, x) }",
        ),
        "Gemm": (
            "g (float[b, a] x, float[c, b] k, float[c] z) => (float[a, c] y)"
            "{ s = Transpose(x) t = Transpose(k) y = Gemm<alpha=2.0, beta=0.5,"
            " transA=0>(s, t, z) }",
            "g (float[b, a] x, float[c, b] k, float[c] z) => (float[a, c] y)"
            "{ y = Gemm<alpha=2.0, beta=0.5, transA=1, transB=1>(x, k, z) }",
        ),
        "Gemm already transposed": (
            "g (float[a, b] x, float[b, c] k) => (float[a, c] y)"
            "{ t = Transpose(k) y = Gemm<transB=1>(x, t) }",
            "g (float[a, b] x, float[b, c] k) => (float[a, c] y) { y = Gemm(x, k) }",
        ),
        "a constant weight": (
            "g (float[a, 2] x) => (float[a, 3] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}>"
            "{ t = Transpose(w) y = MatMul(x, t) }",
            "g (float[a, 2] x) => (float[a, 3] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}>"
            "{ y = Gemm<transB=1>(x, w) }",
        ),
        "the Transpose is read elsewhere": (
            "g (float[b, a] x, float[b, c] k) => (float[a, c] y, float[a, b] z)"
            "{ t = Transpose(x) y = MatMul(t, k) z = Neg(t) }",
            "g (float[b, a] x, float[b, c] k) => (float[a, c] y, float[a, b] z)"
            "{ t = Transpose(x) y = Gemm<transA=1>(x, k) z = Neg(t) }",
        ),
        "the Transpose is an output": (
            "g (float[b, a] x, float[b, c] k) => (float[a, c] y, float[a, b] t)"
            "{ t = Transpose(x) y = MatMul(t, k) }",
            "g (float[b, a] x, float[b, c] k) => (float[a, c] y, float[a, b] t)"
            "{ t = Transpose(x) y = Gemm<transA=1>(x, k) }",
        ),
        "the Transpose is the bias as well": (
            "g (float[3, 3] x, float[3, 3] k) => (float[3, 3] y)"
            "{ t = Transpose(x) y = Gemm(t, k, t) }",
            "g (float[3, 3] x, float[3, 3] k) => (float[3, 3] y)"
            "{ t = Transpose(x) y = Gemm<transA=1>(x, k, t) }",
        ),
        "two products share a Transpose": (
            "g (float[b, a] x, float[b, c] k) => (float[a, c] y, float[a, c] z)"
            "{ t = Transpose(x) y = MatMul(t, k) n = Neg(k) z = MatMul(t, n) }",
            "g (float[b, a] x, float[b, c] k) => (float[a, c] y, float[a, c] z)"
            "{ y = Gemm<transA=1>(x, k) n = Neg(k) z = Gemm<transA=1>(x, n) }",
        ),
    },
    "MatMulAdd": {
        "a vector": (
            f"{XW} <{W34}, {B4}> {{ m = MatMul(x, w) y = Add(m, b) }}",
            f"{XW} <{W34}, {B4}> {{ y = Gemm(x, w, b) }}",
        ),
        "the bias first": (
            f"{XW} <{W34}, {B4}> {{ m = MatMul(x, w) y = Add(b, m) }}",
            f"{XW} <{W34}, {B4}> {{ y = Gemm(x, w, b) }}",
        ),
        "a scalar": (
            f"{XW} <{W34}, float b = {{1}}> {{ m = MatMul(x, w) y = Add(m, b) }}",
            f"{XW} <{W34}, float b = {{1}}> {{ y = Gemm(x, w, b) }}",
        ),
        "a row": (
            f"{XW} <{W34}, float[1, 4] b = {{1, 2, 3, 4}}> {{ m = MatMul(x, w) y = Add(m, b) }}",
            f"{XW} <{W34}, float[1, 4] b = {{1, 2, 3, 4}}> {{ y = Gemm(x, w, b) }}",
        ),
        "a column, a matrix, symbolic dimensions": (
            "g (float[a, b] x, float[b, c] k, float[a, 1] u, float[a, c] v) => (float[a, c] y,"
            "  float[a, c] z) { m = MatMul(x, k) y = Add(m, u) n = MatMul(x, k) z = Add(v, n) }",
            "g (float[a, b] x, float[b, c] k, float[a, 1] u, float[a, c] v) => (float[a, c] y,"
            "  float[a, c] z) { y = Gemm(x, k, u) z = Gemm(x, k, v) }",
        ),
        "a bias computed after the product": (
            "g (float[a, b] x, float[b, c] k, float[c] u) => (float[a, c] y)"
            "{ m = MatMul(x, k) v = Neg(u) y = Add(m, v) }",
            "g (float[a, b] x, float[b, c] k, float[c] u) => (float[a, c] y)"
            "{ v = Neg(u) y = Gemm(x, k, v) }",
        ),
        "Gemm without bias": (
            "g (float[b, a] x, float[b, c] k, float[c] u) => (float[a, c] y)"
            "{ m = Gemm<alpha=2.0, beta=3.0, transA=1>(x, k) y = Add(u, m) }",
            "g (float[b, a] x, float[b, c] k, float[c] u) => (float[a, c] y)"
            "{ y = Gemm<alpha=2.0, transA=1>(x, k, u) }",
        ),
    },
    "GemmTranspose": {
        "with a bias": (
            f"{XW} <{W34}, {B4}> {{ y = Gemm<alpha=0.5>(x, w, b) }}",
            f"{XW} <{W34}, {B4}> {{ t = Transpose<perm=[1, 0]>(w) y = Gemm<alpha=0.5,"
            f" transB=1>(x, t, b) }}",
        ),
        "without bias": (
            f"{XW} <{W34}> {{ y = Gemm(x, w) }}",
            f"{XW} <{W34}> {{ t = Transpose<perm=[1, 0]>(w) y = Gemm<transB=1>(x, t) }}",
        ),
    },
}

NEAR_MISSES = {
    "TransposeMatMul": {
        "nothing transposed": (f"{XY} {{ y = MatMul(x, k) }}", "no operand is transposed"),
        "integers": (
            "g (int64[b, a] x, int64[b, c] k) => (int64[a, c] y)"
            "{ t = Transpose(x) y = MatMul(t, k) }",
            "not a known float type",
        ),
        "rank 3": (
            "g (float[b, a, d] x, float[b, a, c] k) => (float[b, d, c] y)"
            "{ t = Transpose<perm=[0, 2, 1]>(x) y = MatMul(t, k) }",
            "not known to be a matrix",
        ),
        "rank 3 on the other side": (
            "g (float[b, a] x, float[d, b, c] k) => (float[d, a, c] y)"
            "{ t = Transpose(x) y = MatMul(t, k) }",
            "not known to be a matrix",
        ),
        "a permutation that moves nothing": (
            "g (float[a, b] x, float[b, c] k) => (float[a, c] y)"
            "{ t = Transpose<perm=[0, 1]>(x) y = MatMul(t, k) }",
            "no operand is a matrix to transpose",
        ),
        "a constant that was transposed": (
            f"{XW} <{W34}> {{ t = Transpose<perm=[1, 0]>(w) y = Gemm<transB=1>(x, t) }}",
            "no operand is a matrix to transpose",
        ),
        "an elementwise product": (
            "g (float[a, a] x, float[a, a] k) => (float[a, a] y)"
            "{ t = Transpose(x) m = Mul(k, t) y = MatMul(m, k) }",
            "no operand is transposed",
        ),
    },
    "MatMulAdd": {
        "no Add": (f"{XY} {{ m = MatMul(x, k) y = Neg(m) }}", "does not go to one Add only"),
        "two consumers": (
            "g (float[a, b] x, float[b, c] k, float[c] u) => (float[a, c] y, float[a, c] z)"
            "{ m = MatMul(x, k) y = Add(m, u) z = Neg(m) }",
            "does not go to one Add only",
        ),
        "the product is an output": (
            "g (float[a, b] x, float[b, c] k, float[c] u) => (float[a, c] y, float[a, c] m)"
            "{ m = MatMul(x, k) y = Add(m, u) }",
            "does not go to one Add only",
        ),
        "the product twice": (
            f"{XY} {{ m = MatMul(x, k) y = Add(m, m) }}",
            "does not go to one Add only",
        ),
        "the product is captured": (
            "g (float[a, b] x, float[b, c] k, float[c] u, bool d) => (float[a, c] y, float[a, c] z)"
            "{ m = MatMul(x, k) y = Add(m, u) z = If(d) <"
            "  then_branch = g1 () => (float[a, c] o1) { o1 = Neg(m) },"
            "  else_branch = g2 () => (float[a, c] o2) { o2 = Abs(m) } > }",
            "does not go to one Add only",
        ),
        "a bias already": (
            "g (float[a, b] x, float[b, c] k, float[c] u) => (float[a, c] y)"
            "{ m = Gemm(x, k, u) y = Add(m, u) }",
            "Gemm already has a bias",
        ),
        "integers": (
            "g (int64[a, b] x, int64[b, c] k, int64[c] u) => (int64[a, c] y)"
            "{ m = MatMul(x, k) y = Add(m, u) }",
            "not a known float type",
        ),
        "rank 3": (
            "g (float[d, a, b] x, float[b, c] k, float[c] u) => (float[d, a, c] y)"
            "{ m = MatMul(x, k) y = Add(m, u) }",
            "not known to be a matrix",
        ),
        "a vector times a matrix": (
            "g (float[b] x, float[b, c] k, float[c] u) => (float[c] y)"
            "{ m = MatMul(x, k) y = Add(m, u) }",
            "not known to be a matrix",
        ),
        "a bias of rank 3": (
            "g (float[a, b] x, float[b, c] k, float[1, 1, c] u) => (float[1, a, c] y)"
            "{ m = MatMul(x, k) y = Add(m, u) }",
            "the bias is not proven",
        ),
        "a bias that widens the product": (
            "g (float[a, b] x, float[b, 1] k, float[3] u) => (float[a, 3] y)"
            "{ m = MatMul(x, k) y = Add(m, u) }",
            "the bias is not proven",
        ),
        "a bias of unknown size": (
            "g (float[a, b] x, float[b, c] k, float[d] u) => (float[a, e] y)"
            "{ m = MatMul(x, k) y = Add(m, u) }",
            "the bias is not proven",
        ),
    },
    "GemmTranspose": {
        "an input": (f"{XY} {{ y = Gemm(x, k) }}", "the weight is not constant"),
        "beta": (
            f"{XW} <{W34}, {B4}> {{ y = Gemm<beta=2.0>(x, w, b) }}",
            "beta is 2.0, 1 is expected",
        ),
        "transposed": (
            f"g (float[a, 4] x) => (float[a, 3] y) <{W34}> {{ y = Gemm<transB=1>(x, w) }}",
            "transB is 1, 0 is expected",
        ),
        "a shared weight": (
            f"g (float[a, 3] x) => (float[a, 4] y) <{W34}>"
            "{ u = Gemm(x, w) n = Neg(x) v = Gemm(n, w) y = Sub(u, v) }",
            "the weight is used elsewhere",
        ),
    },
}


test_rewrites = rewrite_tests(MODELS, **CLOSE)


test_refuses = refusal_tests(NEAR_MISSES)


def test_gemm_needs_a_bias_before_opset_11():
    text, after = MODELS["TransposeMatMul"]["left"]
    check_no_match(text, "TransposeMatMul", "before opset 11", opset=10)
    check_pattern(text, after, "TransposeMatMul", opset=11, **CLOSE)
    check_pattern(*MODELS["MatMulAdd"]["a vector"], "MatMulAdd", opset=7, **CLOSE)
    head = "g (float[b, a] x, float[b, c] k, float[c] u) => (float[a, c] y)"
    text = f"{head} {{ t = Transpose(x) y = Gemm(t, k, u) }}"
    after = f"{head} {{ y = Gemm<transA=1>(x, k, u) }}"
    check_pattern(text, after, "TransposeMatMul", opset=9, **CLOSE)


@pytest.mark.parametrize("sizes", [{"a": 0, "b": 2, "c": 3}, {"a": 1, "b": 0, "c": 1}])
@pytest.mark.parametrize(
    "pattern,name",
    [("TransposeMatMul", "both"), ("MatMulAdd", "a column, a matrix, symbolic dimensions")],
)
def test_empty_matrices(pattern: str, name: str, sizes: dict[str, int]):
    check_pattern(*MODELS[pattern][name], pattern, sizes=sizes)


@pytest.mark.parametrize("name", ["float16", "double"])
def test_other_float_types(name: str):
    header = "g (float[a, 3] x, float[3, 4] w, float[4] b) => (float[a, 4] y)"
    before = f"{header} {{ m = MatMul(x, w) y = Add(b, m) }}".replace("float", name)
    after = f"{header} {{ y = Gemm(x, w, b) }}".replace("float", name)
    close = {"atol": 1e-2, "rtol": 1e-2} if name == "float16" else CLOSE
    check_pattern(before, after, "MatMulAdd", **close)


X3 = "g (float[a, 2, 3] x) => (float[a, 2, 4] y)"
RESHAPED = {
    "dynamic": (
        f"{X3} <{W34}, {B4}> {{ m = MatMul(x, w) y = Add(m, b) }}",
        f"{X3} <{W34}, {B4}, int64[2] s = {{-1, 3}}, int64[3] t = {{-1, 2, 4}}>"
        "{ r = Reshape(x, s) z = Gemm(r, w, b) y = Reshape(z, t) }",
    ),
    "static": (
        f"g (float[5, 2, 3] x) => (float[5, 2, 4] y) <{W34}, float b = {{1}}>"
        "{ m = MatMul(x, w) y = Add(b, m) }",
        f"g (float[5, 2, 3] x) => (float[5, 2, 4] y) <{W34}, float b = {{1}},"
        "  int64[2] s = {-1, 3}, int64[3] t = {5, 2, 4}>"
        "{ r = Reshape(x, s) z = Gemm(r, w, b) y = Reshape(z, t) }",
    ),
}
NOT_RESHAPED = {
    "two dynamic dimensions": (
        f"g (float[a, c, 3] x) => (float[a, c, 4] y) <{W34}, {B4}>"
        "{ m = MatMul(x, w) y = Add(m, b) }",
        "not known to be a matrix",
    ),
    "a bias of rank 2": (
        f"{X3} <{W34}, float[2, 4] b = {{1, 2, 3, 4, 5, 6, 7, 8}}>"
        "{ m = MatMul(x, w) y = Add(m, b) }",
        "the bias is not proven",
    ),
    "matrices on the right": (
        "g (float[2, 5, 3] x, float[2, 3, 4] w) => (float[2, 5, 4] y)"
        f" <{B4}> {{ m = MatMul(x, w) y = Add(m, b) }}",
        "not known to be a matrix",
    ),
    "a last dimension that is not known": (
        f"g (float[2, 5, k] x) => (float[2, 5, 4] y) <{W34}, {B4}>"
        "{ m = MatMul(x, w) y = Add(m, b) }",
        "not known to be a matrix",
    ),
    "a vector on the right": (
        "g (float[2, 4, 3] x, float[3] w) => (float[2, 4] y)"
        f" <{B4}> {{ m = MatMul(x, w) y = Add(m, b) }}",
        "not known to be a matrix",
    ),
    "an empty dimension": (
        f"g (float[0, a, 3] x) => (float[0, a, 4] y) <{W34}, {B4}>"
        "{ m = MatMul(x, w) y = Add(m, b) }",
        "not known to be a matrix",
    ),
}


@pytest.mark.parametrize("name", RESHAPED)
def test_allow_reshape(name: str):
    check_pattern(*RESHAPED[name], [MatMulAddPattern(allow_reshape=True)], **CLOSE)
    check_no_match(RESHAPED[name][0], "MatMulAdd", "not known to be a matrix")


def test_allow_reshape_keeps_matrices_and_empty_batches():
    pattern = [MatMulAddPattern(allow_reshape=True)]
    check_pattern(*MODELS["MatMulAdd"]["a vector"], pattern, **CLOSE)
    check_pattern(*RESHAPED["dynamic"], pattern, sizes={"a": 0})


test_allow_reshape_refuses = refusal_tests({"MatMulAdd(allow_reshape=True)": NOT_RESHAPED})


def test_a_big_weight_is_not_written_again():
    """Above a megabyte."""
    model = model_from_text("g (float[a, 1024] x) => (float[a, 257] y) { y = Gemm(x, w) }")
    weight = np.zeros((1024, 257), dtype=np.float32)
    model.graph.initializer.append(onh.from_array(weight, "w"))
    check_no_match(model, "GemmTranspose", "the weight is big, or in another file")


def test_attributes_of_a_function_are_unknown():
    from xoptim.catalogue.selection import get_pattern
    from xoptim.engine.optimizer import GraphBuilderPatternOptimization

    gemm = oh.make_node("Gemm", ["x", "w"], ["m"])
    gemm.attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    nodes = [gemm, oh.make_node("Add", ["m", "b"], ["y"])]
    function = oh.make_function(
        "local", "f", ["x", "w", "b"], ["y"], nodes, [oh.make_opsetid("", 18)], ["alpha"]
    )
    builder = GraphBuilder(function)
    for name, shape in (("x", (2, 3)), ("w", (3, 4)), ("b", (4,)), ("m", (2, 4))):
        builder.set_type(name, 1)
        builder.set_shape(name, shape)
    optimizer = GraphBuilderPatternOptimization(builder, ["MatMulAdd"])
    pattern = get_pattern("MatMulAdd")
    reasons = [optimizer.explain(pattern, n) for n in optimizer.iter_roots(pattern)]
    assert ["'alpha' of Gemm refers to" in r for r in reasons] == [True]


def _mlp(batch: int | str) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    info = oh.make_tensor_value_info
    weights = {"w1": (8, 16), "b1": (16,), "w2": (16, 4), "b2": (4,)}
    return oh.make_model(
        oh.make_graph(
            [
                oh.make_node("MatMul", ["x", "w1"], ["m1"]),
                oh.make_node("Add", ["m1", "b1"], ["a1"]),
                oh.make_node("Relu", ["a1"], ["r1"]),
                oh.make_node("MatMul", ["r1", "w2"], ["m2"]),
                oh.make_node("Add", ["b2", "m2"], ["y"]),
            ],
            "mlp",
            [info("x", 1, [batch, 8])],
            [info("y", 1, [batch, 4])],
            [
                onnx.numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n)
                for n, s in weights.items()
            ],
        ),
        opset_imports=[oh.make_opsetid("", 18)],
        ir_version=9,
    )


@pytest.mark.parametrize("batch", [3, "batch"])
def test_a_perceptron_becomes_two_gemm(batch: int | str):
    model = _mlp(batch)
    options = OptimizationOptions(patterns="default", verifies=True)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    result = builder.to_onnx()
    assert [n.op_type for n in result.graph.node] == ["Gemm", "Relu", "Gemm"]
    feeds = [{"x": np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)}]
    compare_models(model, result, feeds, **CLOSE)


def test_transposing_a_weight_and_back_does_not_loop():
    """TransposeMatMul and GemmTranspose do opposite things, no warning says the engine gave up."""
    import warnings

    text = f"{XW} <{W34}, {B4}> {{ m = MatMul(x, w) y = Add(m, b) }}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = check_pattern(text, None, "TransposeMatMul,GemmTranspose,MatMulAdd", **CLOSE)
    assert [n.op_type for n in result.graph.node] == ["Transpose", "Gemm"]


def test_no_shape_is_no():
    model = model_from_text(f"{XW} <{W34}, {B4}> {{ m = MatMul(x, w) y = Add(m, b) }}")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    check_no_match(model, "MatMulAdd", "not known to be a matrix")
