"""Products and sums by constants around a convolution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from hypothesis import strategies as st
from onnx import TensorProto
from ut_xoptim.patterns.products.conv_models import ANY, BN, GROUPED, NORM, B, D, H, T, W
from ut_xoptim.patterns.products.folding_chains import chain_tests

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    optimizer_of,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

MODELS = {
    "ConvAffine": {
        "BatchNormalization": (
            f"{H} <{W}, {B}, {NORM}> {{ c1 = Conv(x, w, b) y = {BN}(c1, s, o, m, v) }}",
            f"{H} <float[2, 2, 1, 1] w = {{2, 4, -3, -4}}, float[2] b = {{1, 3.5}}>"
            "{ y = Conv(x, w, b) }",
        ),
        "one number": (
            f"{H} <{W}, {B}, float k = {{2}}> {{ c1 = Conv(x, w, b) y = Mul(c1, k) }}",
            f"{H} <float[2, 2, 1, 1] w = {{2, 4, 6, 8}}, float[2] b = {{2, -2}}>"
            "{ y = Conv(x, w, b) }",
        ),
        "the opposite": (
            f"{H} <{W}, {B}> {{ c1 = Conv(x, w, b) y = Neg(c1) }}",
            f"{H} <float[2, 2, 1, 1] w = {{-1, -2, -3, -4}}, float[2] b = {{-1, 1}}>"
            "{ y = Conv(x, w, b) }",
        ),
        "a constant before": (
            f"{H} <{W}, float[1, 1, 1, 1] k = {{2}}> {{ c1 = Conv(x, w) y = Mul(k, c1) }}",
            f"{H} <float[2, 2, 1, 1] w = {{2, 4, 6, 8}}> {{ y = Conv(x, w) }}",
        ),
        "one factor for each channel": (
            f"{H} <{W}, float[1, 2, 1, 1] k = {{2, 0}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            f"{H} <float[2, 2, 1, 1] w = {{2, 4, 0, 0}}> {{ y = Conv(x, w) }}",
        ),
        "divided": (
            f"{H} <{W}, {B}, float[2, 1, 1] k = {{2, 4}}> {{ c1 = Conv(x, w, b) y = Div(c1, k) }}",
            f"{H} <float[2, 2, 1, 1] w = {{0.5, 1, 0.75, 1}}, float[2] b = {{0.5, -0.25}}>"
            "{ y = Conv(x, w, b) }",
        ),
        "a missing bias": (
            f"{ANY} <{W}, float[2, 1, 1] k = {{2, 4}}>"
            "{ c1 = Conv<pads=[1, 1, 1, 1]>(x, w) y = Add(k, c1) }",
            f"{ANY} <{W}, float[2] b = {{2, 4}}> {{ y = Conv<pads=[1, 1, 1, 1]>(x, w, b) }}",
        ),
        "a bias that becomes null": (
            f"{H} <{W}, {B}, float[2, 1, 1] k = {{1, -1}}> {{ c1 = Conv(x, w, b) y = Sub(c1, k) }}",
            f"{H} <{W}> {{ y = Conv(x, w) }}",
        ),
        "subtracted from a constant": (
            f"{H} <{W}, {B}, float k = {{3}}> {{ c1 = Conv(x, w, b) y = Sub(k, c1) }}",
            f"{H} <float[2, 2, 1, 1] w = {{-1, -2, -3, -4}}, float[2] b = {{2, 4}}>"
            "{ y = Conv(x, w, b) }",
        ),
        "a weight of any value": (
            "g (float[a, 2, b, c] x, float[3, 2, 1, 1] w) => (float[a, 3, b, c] y)"
            " <float[3, 1, 1] k = {1, 2, 3}> { c1 = Conv(x, w) y = Add(c1, k) }",
            "g (float[a, 2, b, c] x, float[3, 2, 1, 1] w) => (float[a, 3, b, c] y)"
            " <float[3] k = {1, 2, 3}> { y = Conv(x, w, k) }",
        ),
        "a chain": (
            f"{H} <{W}, {NORM}, float[2, 1, 1] k = {{2, 1}}, float t = {{1}}>"
            f"{{ c1 = Conv(x, w) c2 = {BN}(c1, s, o, m, v) c3 = Mul(c2, k) c4 = Add(c3, t)"
            "  y = Div(c4, k) }",
            f"{H} <float[2, 2, 1, 1] w = {{2, 4, -3, -4}}, float[2] b = {{-0.5, 3.5}}>"
            "{ y = Conv(x, w, b) }",
        ),
        "groups": (
            f"{H} <{D}, float[2, 1, 1] k = {{2, 4}}>{{ c1 = Conv<group=2>(x, w) y = Mul(c1, k) }}",
            f"{H} <float[2, 1, 1, 1] w = {{2, 8}}> {{ y = Conv<group=2>(x, w) }}",
        ),
        "one dimension": (
            "g (float[a, 1, b] x) => (float[a, 2, d] y) <float[2, 1, 2] w = {1, 2, 3, 4},"
            " float[2, 1] k = {2, 4}> { c1 = Conv(x, w) y = Mul(c1, k) }",
            "g (float[a, 1, b] x) => (float[a, 2, d] y) <float[2, 1, 2] w = {2, 4, 12, 16}>"
            "{ y = Conv(x, w) }",
        ),
        "ConvTranspose": (
            f"{ANY} <{W}, {B}, float[2, 1, 1] k = {{2, 4}}>"
            "{ c1 = ConvTranspose<strides=[2, 2]>(x, w, b) y = Mul(c1, k) }",
            f"{ANY} <float[2, 2, 1, 1] w = {{2, 8, 6, 16}}, float[2] b = {{2, -4}}>"
            "{ y = ConvTranspose<strides=[2, 2]>(x, w, b) }",
        ),
        "groups of ConvTranspose": (
            f"{T} <float[2, 2, 1, 1] w = {{1, 1, 1, 1}}, float[4, 1, 1] k = {{1, 2, 3, 4}}>"
            "{ c1 = ConvTranspose<group=2>(x, w) y = Mul(c1, k) }",
            f"{T} <float[2, 2, 1, 1] w = {{1, 2, 3, 4}}> {{ y = ConvTranspose<group=2>(x, w) }}",
            GROUPED,
        ),
        "inputs and groups of ConvTranspose": (
            "g (float[a, 4, b] x) => (float[a, 2, b] y)"
            " <float[4, 1, 1] w = {1, 1, 1, 1}, float[2, 1] k = {2, 3}>"
            "{ c1 = ConvTranspose<group=2>(x, w) y = Mul(c1, k) }",
            "g (float[a, 4, b] x) => (float[a, 2, b] y) <float[4, 1, 1] w = {2, 2, 3, 3}>"
            "{ y = ConvTranspose<group=2>(x, w) }",
            GROUPED,
        ),
        "a small weight used twice": (
            "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y, float[a, 2, b, c] z)"
            f" <{W}, float k = {{2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) z = Conv(x, w) }}",
            "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y, float[a, 2, b, c] z)"
            f" <{W}, float[2, 2, 1, 1] u = {{2, 4, 6, 8}}> {{ y = Conv(x, u) z = Conv(x, w) }}",
        ),
    },
    "AffineConv": {
        "the opposite": (
            f"{H} <{W}> {{ n = Neg(x) y = Conv(n, w) }}",
            f"{H} <float[2, 2, 1, 1] w = {{-1, -2, -3, -4}}> {{ y = Conv(x, w) }}",
        ),
        "a factor for each channel": (
            f"{ANY} <{W}, {B}, float[2, 1, 1] k = {{2, 4}}>"
            "{ c1 = Mul(x, k) y = Conv<pads=[1, 1, 1, 1]>(c1, w, b) }",
            f"{ANY} <float[2, 2, 1, 1] w = {{2, 8, 6, 16}}, {B}>"
            "{ y = Conv<pads=[1, 1, 1, 1]>(x, w, b) }",
        ),
        "one factor, a bias that is computed": (
            "g (float[a, 2, b, c] x, float[2] b) => (float[a, 2, b, c] y)"
            f" <{W}, float k = {{2}}> {{ c1 = Div(x, k) y = Conv(c1, w, b) }}",
            "g (float[a, 2, b, c] x, float[2] b) => (float[a, 2, b, c] y)"
            " <float[2, 2, 1, 1] w = {0.5, 1, 1.5, 2}> { y = Conv(x, w, b) }",
        ),
        "a sum": (
            f"{H} <{W}, {B}, float[2, 1, 1] k = {{2, 4}}> {{ c1 = Add(k, x) y = Conv(c1, w, b) }}",
            f"{H} <{W}, float[2] b = {{11, 21}}> {{ y = Conv(x, w, b) }}",
        ),
        "a sum, VALID": (
            f'{H} <{W}, float k = {{1}}>{{ c1 = Sub(x, k) y = Conv<auto_pad="VALID">(c1, w) }}',
            f'{H} <{W}, float[2] b = {{-3, -7}}> {{ y = Conv<auto_pad="VALID">(x, w, b) }}',
        ),
        "BatchNormalization": (
            f"{H} <{W}, {NORM}> {{ c1 = {BN}(x, s, o, m, v) y = Conv(c1, w) }}",
            f"{H} <float[2, 2, 1, 1] w = {{2, -2, 6, -4}}, float[2] b = {{4, 7}}>"
            "{ y = Conv(x, w, b) }",
        ),
        "groups": (
            f"{H} <{D}, float[2, 1, 1] k = {{2, 4}}, float[2, 1, 1] t = {{1, 3}}>"
            "{ c1 = Mul(x, k) c2 = Add(c1, t) y = Conv<group=2>(c2, w) }",
            f"{H} <float[2, 1, 1, 1] w = {{2, 8}}, float[2] b = {{1, 6}}>"
            "{ y = Conv<group=2>(x, w, b) }",
        ),
        "ConvTranspose": (
            f"{ANY} <{W}, float[2, 1, 1] k = {{2, 4}}>"
            "{ c1 = Mul(x, k) y = ConvTranspose<strides=[2, 2]>(c1, w) }",
            f"{ANY} <float[2, 2, 1, 1] w = {{2, 4, 12, 16}}>"
            "{ y = ConvTranspose<strides=[2, 2]>(x, w) }",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)


#: more bytes than the folds of a small model may add, even in float16
BIG = (17000, 2, 1, 1)


def big_model(weight: onnx.NodeProto | None = None, elem_type: int = TensorProto.FLOAT):
    """Conv then Mul by one number for each channel, with a weight above the budget of the folds."""
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)
    rng = np.random.default_rng(0)
    initializers = [onh.from_array((1 + rng.random((BIG[0], 1, 1))).astype(dtype), "k")]
    if weight is None:
        initializers.append(onh.from_array(rng.standard_normal(BIG).astype(dtype), "w"))
    nodes = [oh.make_node("Conv", ["x", "w"], ["c"]), oh.make_node("Mul", ["c", "k"], ["y"])]
    graph = oh.make_graph(
        [*([] if weight is None else [weight]), *nodes],
        "g",
        [oh.make_tensor_value_info("x", elem_type, ["a", 2, "b", "c"])],
        [oh.make_tensor_value_info("y", elem_type, ["a", BIG[0], "b", "c"])],
        initializers,
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


def reason_of(model: onnx.ModelProto, pattern: str = "ConvAffine") -> str:
    """Why a pattern refuses the only root that it has in a model."""
    optimizer = optimizer_of(model, [pattern])
    (cls,) = optimizer.patterns
    (reason,) = [optimizer.explain(cls, n) for n in optimizer.iter_roots(cls)]
    return reason


def test_big_weight():
    model = check_pattern(big_model(), None, "ConvAffine", atol=1e-5, rtol=1e-5)
    assert [n.op_type for n in model.graph.node] == ["Conv"]


def test_big_weight_used_twice():
    """It would be in the file twice."""
    model = big_model()
    model.graph.node.add(op_type="Identity", input=["w"], output=["z"])
    model.graph.output.append(oh.make_tensor_value_info("z", TensorProto.FLOAT, BIG))
    assert "used elsewhere, the model would grow" in reason_of(model)


def test_big_weight_is_an_output():
    model = big_model()
    model.graph.output.append(oh.make_tensor_value_info("w", TensorProto.FLOAT, BIG))
    assert "used elsewhere, the model would grow" in reason_of(model)


def test_weight_made_by_a_node():
    """One number becomes a weight: the file would grow, unless the weight is small."""
    value = onh.from_array(np.array([0.5], dtype=np.float32))
    made = oh.make_node("ConstantOfShape", ["s"], ["w"], value=value)
    model = big_model(made)
    model.graph.initializer.append(onh.from_array(np.array(BIG), "s"))
    assert "the weight is computed, the model would grow" in reason_of(model)
    before = (
        f"{H} <int64[4] s = {{2, 2, 1, 1}}, float[2, 1, 1] k = {{2, 4}}>"
        "{ w = ConstantOfShape<value = float[1] {1}>(s) c1 = Conv(x, w) y = Mul(c1, k) }"
    )
    after = f"{H} <float[2, 2, 1, 1] w = {{2, 2, 4, 4}}> {{ y = Conv(x, w) }}"
    check_pattern(before, after, "ConvAffine", atol=1e-5, rtol=1e-5)


def test_weight_of_a_constant_node():
    """The bytes leave the file with the Constant."""
    made = oh.make_node("Constant", [], ["w"], value=onh.from_array(np.ones(BIG, np.float32)))
    model = check_pattern(big_model(made), None, "ConvAffine", atol=1e-5, rtol=1e-5)
    assert [n.op_type for n in model.graph.node] == ["Conv"]


def test_budget():
    """Nothing is folded once the budget of the model is spent."""
    optimizer = optimizer_of(big_model(), ["ConvAffine"])
    optimizer.graph.constants.budget.spent_bytes = 1 << 40
    (pattern,) = optimizer.patterns
    (reason,) = [optimizer.explain(pattern, n) for n in optimizer.iter_roots(pattern)]
    assert "the budget of bytes computed for the model is spent" in reason


def test_external_weight(tmp_path: Path):
    """A weight in another file is read, and the model saved without it."""
    model = big_model()
    path = tmp_path / "model.onnx"
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    onnx.save_model(
        copy, path, save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    options = OptimizationOptions(patterns="ConvAffine")
    builder = GraphBuilder(str(path), infer_shapes_options=True, optimization_options=options)
    got = builder.to_onnx()
    assert [n.op_type for n in got.graph.node] == ["Conv"]
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 2, 3, 3)).astype(np.float32)}
    (expected,), (found,) = run_onnxruntime(model, feeds), run_onnxruntime(got, feeds)
    np.testing.assert_allclose(expected, found, rtol=1e-5, atol=1e-5)


def test_quantized_weight():
    """The runtime needs to know that the weight is quantized."""
    text = (
        f"{H} <int8[2, 2, 1, 1] q = {{1, 2, 3, 4}}, float t = {{0.5}}, float k = {{2}}>"
        "{ w = DequantizeLinear(q, t) c1 = Conv(x, w) y = Mul(c1, k) }"
    )
    assert "the weight is not constant" in reason_of(model_from_text(text))


@pytest.mark.parametrize("spatial", [0, 1])
def test_old_batch_normalization(spatial: int):
    """Opset 7 and 8 have one scale for each element when spatial is null."""
    text = (
        f"{H} <{W}, {NORM}> {{ c1 = Conv(x, w)"
        f"  y = BatchNormalization<epsilon=0.0, spatial={spatial}>(c1, s, o, m, v) }}"
    )
    model = model_from_text(text, 8)
    if spatial:
        got = optimize_with(model, ["ConvAffine"])[0]
        assert [n.op_type for n in got.graph.node] == ["Conv"]
    else:
        assert "one scale for each element" in reason_of(model)


def test_statistics_of_an_old_batch_normalization():
    """It has five results before opset 14: it is training."""
    text = (
        f"{H} <{W}, {NORM}> {{ c1 = Conv(x, w)"
        "  y, p, q, r, t = BatchNormalization(c1, s, o, m, v) }"
    )
    assert "is training" in reason_of(model_from_text(text, 9))


def test_old_broadcasting():
    """Before opset 7 an attribute says how operands are broadcast."""
    text = f"{H} <{W}, float k = {{2}}> {{ c1 = Conv(x, w) y = Mul<broadcast=1>(c1, k) }}"
    got = optimize_with(model_from_text(text, 6), ["ConvAffine", "AffineConv"])[0]
    assert [n.op_type for n in got.graph.node] == ["Conv", "Mul"]


@pytest.mark.parametrize(
    "elem_type", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE]
)
def test_rounded_once(elem_type: int):
    """The product of the weights is the closest value of the type to the exact one."""
    model = big_model(elem_type=elem_type)
    got = optimize_with(model, ["ConvAffine"])[0]
    (node,) = got.graph.node
    before = {i.name: onh.to_array(i) for i in model.graph.initializer}
    after = {i.name: onh.to_array(i) for i in got.graph.initializer}
    longer = np.longdouble if elem_type == TensorProto.DOUBLE else np.float64
    exact = before["w"].astype(longer) * before["k"].astype(longer)[..., None]
    np.testing.assert_array_equal(after[node.input[1]], exact.astype(before["w"].dtype))
    assert node.op_type == "Conv" and node.input[1] == "w"


def test_float16_overflow():
    model = big_model(elem_type=TensorProto.FLOAT16)
    model.graph.initializer[0].CopyFrom(onh.from_array(np.array(6e4, np.float16), "k"))
    assert "the new weight is not finite" in reason_of(model)
    model.graph.initializer[0].CopyFrom(onh.from_array(np.array(1e-6, np.float16), "k"))
    assert "the new weight is too small" in reason_of(model)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_special_values(value: float):
    """They would spread to all the channels a weight feeds."""
    model = big_model()
    model.graph.initializer[0].CopyFrom(onh.from_array(np.array(value, np.float32), "k"))
    assert "the other operand is not finite" in reason_of(model)
    model = big_model()
    weight = onh.to_array(model.graph.initializer[1]).copy()
    weight[0, 0] = value
    model.graph.initializer[1].CopyFrom(onh.from_array(weight, "w"))
    assert "the new weight is not finite" in reason_of(model)


def test_in_a_subgraph():
    """The weight of the outer graph may be read by another branch: a big one stays."""
    inner = oh.make_graph(
        [oh.make_node("Conv", ["x", "w"], ["c"]), oh.make_node("Mul", ["c", "k"], ["r"])],
        "then",
        [],
        [oh.make_tensor_value_info("r", TensorProto.FLOAT, ["a", BIG[0], "b", "c"])],
    )
    model = big_model()
    other = onnx.GraphProto.FromString(inner.SerializeToString())
    del model.graph.node[:]
    model.graph.input.append(oh.make_tensor_value_info("i", TensorProto.BOOL, []))
    node = oh.make_node("If", ["i"], ["y"], then_branch=inner, else_branch=other)
    model.graph.node.append(node)
    options = OptimizationOptions(patterns="ConvAffine")
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    bodies = [a.g for a in builder.to_onnx().graph.node[0].attribute]
    assert [[n.op_type for n in body.node] for body in bodies] == [["Conv", "Mul"]] * 2


@pytest.mark.parametrize("owner", ["Conv", "BatchNormalization"])
def test_attributes_of_a_function_are_unknown(owner: str):
    ones = oh.make_tensor("value", TensorProto.FLOAT, [2], [1, 1])
    weight = oh.make_tensor("value", TensorProto.FLOAT, [2, 2, 1, 1], [1, 2, 3, 4])
    nodes = [
        oh.make_node("Constant", [], ["k"], value=ones),
        oh.make_node("Constant", [], ["w"], value=weight),
        oh.make_node("Conv", ["x", "w"], ["c"]),
        oh.make_node("BatchNormalization", ["c", "k", "k", "k", "k"], ["y"]),
    ]
    name, kind = ("group", "INT") if owner == "Conv" else ("epsilon", "FLOAT")
    (node,) = [n for n in nodes if n.op_type == owner]
    node.attribute.add(
        name=name, ref_attr_name=name, type=onnx.AttributeProto.AttributeType.Value(kind)
    )
    opsets = [oh.make_opsetid("", 18)]
    function = oh.make_function("local", "f", ["x"], ["y"], nodes, opsets, [name])
    builder = GraphBuilder(function, infer_shapes_options=True)
    optimizer = GraphBuilderPatternOptimization(builder, ["ConvAffine"])
    (pattern,) = optimizer.patterns
    reasons = [optimizer.explain(pattern, n) for n in optimizer.iter_roots(pattern)]
    assert [f"refers to '{name}'" in r for r in reasons] == [True]


FOLDS = ["ConvAffine", "AffineConv"]
_SHAPES = [(), (1,), (1, 1, 1), (1, 1, 1, 1), ("C", 1, 1), (1, "C", 1, 1), ("C", 1), (1, 1, 2)]


@st.composite
def chains(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A convolution with products, sums and normalizations by constants around it."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    group = draw(st.integers(1, 2))
    n_in, n_out = (group * draw(st.integers(1, 2)) for _ in range(2))
    turned, bias = draw(st.booleans()), draw(st.booleans())
    kernel = draw(st.sampled_from([(1, 1), (2, 2)]))
    shape = (n_in, n_out // group, *kernel) if turned else (n_out, n_in // group, *kernel)
    dtype = draw(st.sampled_from([np.float32, np.float32, np.float64]))
    tensors: dict[str, np.ndarray] = {"w": rng.standard_normal(shape)}
    if bias:
        tensors["b"] = rng.standard_normal(n_out)
    nodes: list[onnx.NodeProto] = []

    def affine(name: str, size: int, zeros: bool) -> str:
        for _ in range(draw(st.integers(0, 3))):
            i, op = len(nodes), draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "BN"]))
            inputs, new = [name, f"k{i}"], f"r{i}"
            if op == "BN":
                inputs = [name, *(f"k{i}_{j}" for j in range(4))]
                tensors.update((n, rng.random(size) + 0.5) for n in inputs[1:])
                op = "BatchNormalization"
            else:
                dims = draw(st.sampled_from(_SHAPES))
                dims = tuple(size if d == "C" else d for d in dims)
                tensors[f"k{i}"] = (rng.random(dims) + 0.5) * rng.choice([-1, 1], dims)
                # paddings give zeros, whose sign is not kept: nothing is divided by them
                if draw(st.booleans()) and (op != "Div" or not zeros):
                    inputs.reverse()
            nodes.append(oh.make_node(op, inputs, [new]))
            name = new
        return name

    x = affine("x", n_in, zeros=False)
    conv = oh.make_node(
        "ConvTranspose" if turned else "Conv",
        [x, "w", *(["b"] if bias else [])],
        ["c"],
        group=group,
        pads=draw(st.sampled_from([[0] * 4, [0, 1, 1, 0]])),
    )
    nodes.append(conv)
    last = affine("c", n_out, zeros=True)
    nodes.append(oh.make_node("Identity", [last], ["y"]))
    outputs = {"y", *draw(st.sets(st.sampled_from([n.output[0] for n in nodes]), max_size=1))}
    elem_type = oh.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("x", elem_type, ["a", n_in, "b", "c"])],
        [oh.make_tensor_value_info(n, elem_type, None) for n in sorted(outputs)],
        [onh.from_array(np.asarray(v, dtype=dtype), n) for n, v in tensors.items()],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    batch = draw(st.integers(0, 2))
    return model, {"x": rng.standard_normal((batch, n_in, 2, 2)).astype(dtype)}


test_any_chain, test_many_chains = chain_tests(chains(), FOLDS)


# -- products and sums by constants around a convolution: what is refused

BN_K = f"{H} <{W}, {NORM}> {{ c1 = Conv(x, w) "

NEAR_MISSES = {
    "ConvAffine": {
        "not constant": (
            f"g (float[a, 2, b, c] x, float[2, 1, 1] k) => (float[a, 2, b, c] y) <{W}>"
            "{ c1 = Conv(x, w) y = Mul(c1, k) }",
            "the other operand is not constant",
        ),
        "an input with a default value": (
            "g (float[a, 2, b, c] x, float[2, 1, 1] k) => (float[a, 2, b, c] y)"
            f" <{W}, float[2, 1, 1] k = {{1, 2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "the other operand is not constant",
        ),
        "no convolution": (f"{H} <float k = {{2}}> {{ y = Mul(x, k) }}", "no Conv or .* before"),
        "twice": (f"{H} <{W}> {{ c1 = Conv(x, w) y = Add(c1, c1) }}", "used elsewhere"),
        "used elsewhere": (
            "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y, float[a, 2, b, c] z)"
            f" <{W}, float k = {{2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) z = Abs(c1) }}",
            "the result of the convolution is used elsewhere",
        ),
        "an output": (
            "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y, float[a, 2, b, c] c1)"
            f" <{W}, float k = {{2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "the result of the convolution is used elsewhere",
        ),
        "another axis": (
            f"g (float[a, 2, 2, 2] x) => (float[a, 2, 2, 2] y) <{W}, float[2] k = {{1, 2}}>"
            "{ c1 = Conv(x, w) y = Mul(c1, k) }",
            "does not have one value for each channel",
        ),
        "more dimensions": (
            f"g (float[a, 2, b, c] x) => (float[1, a, 2, b, c] y)"
            f" <{W}, float[1, 1, 1, 1, 1] k = {{2}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "does not have one value for each channel",
        ),
        "one channel which becomes two": (
            "g (float[a, 1, b] x) => (float[a, 2, b] y)"
            " <float[1, 1, 1] w = {2}, float[2, 1] k = {1, 2}> { c1 = Conv(x, w) y = Mul(c1, k) }",
            "does not have one value for each channel",
        ),
        "divided by zero": (
            f"{H} <{W}, float[2, 1, 1] k = {{2, 0}}> {{ c1 = Conv(x, w) y = Div(c1, k) }}",
            "divided by zero",
        ),
        "a constant divided": (
            f"{H} <{W}, float k = {{2}}> {{ c1 = Conv(x, w) y = Div(k, c1) }}",
            "a constant is divided",
        ),
        "a bias that is not constant": (
            f"g (float[a, 2, b, c] x, float[2] b) => (float[a, 2, b, c] y) <{W}, float k = {{2}}>"
            "{ c1 = Conv(x, w, b) y = Mul(c1, k) }",
            "the bias is not constant",
        ),
        "a weight that is not constant": (
            "g (float[a, 2, b, c] x, float[2, 2, 1, 1] w) => (float[a, 2, b, c] y)"
            " <float k = {2}> { c1 = Conv(x, w) y = Mul(c1, k) }",
            "the weight is not constant",
        ),
        "a weight of any shape": (
            "g (float[a, 2, b, c] x, float[M, 2, 1, 1] w) => (float[a, M, b, c] y)"
            " <float k = {2}> { c1 = Conv(x, w) y = Add(c1, k) }",
            "the shape of the weight is not static",
        ),
        "overflow": (
            f"{H} <{W}, float k = {{3e38}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "the new weight is not finite",
        ),
        "underflow": (
            f"{H} <{W}, float k = {{1e-39}}> {{ c1 = Conv(x, w) y = Mul(c1, k) }}",
            "the new weight is too small",
        ),
        "a bias that overflows": (
            f"{H} <{W}, float[2] b = {{3e38, 0}}, float k = {{3e38}}>"
            "{ c1 = Conv(x, w, b) y = Add(c1, k) }",
            "the new bias is not finite",
        ),
        "training": (
            f"g (float[a, 2, b, c] x) => (float[a, 2, b, c] y) <{W}, {NORM}> {{ c1 = Conv(x, w)"
            "  y, p, q = BatchNormalization<training_mode=1>(c1, s, o, m, v) }",
            "is training",
        ),
        "parameters that are not constant": (
            f"g (float[a, 2, b, c] x, float[2] z) => (float[a, 2, b, c] y) <{W}, {NORM}>"
            f"{{ c1 = Conv(x, w) y = {BN}(c1, z, o, m, v) }}",
            "a parameter of BatchNormalization is not constant",
        ),
        "a negative variance": (
            f"{BN_K} n = Neg(v) y = {BN}(c1, s, o, m, n) }}",
            "a variance is not positive",
        ),
    },
    "AffineConv": {
        "the half of a Gelu": (
            f"{H} <{W}, float one = {{1}}, float half = {{0.5}}> {{ e = Erf(x) s = Add(e, one)"
            " m = Mul(x, s) c1 = Mul(m, half) y = Conv(c1, w) }",
            "it is a part of a Gelu",
        ),
        "nothing before": (f"{H} <{W}> {{ y = Conv(x, w) }}", "no .* before"),
        "used elsewhere": (
            "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y, float[a, 2, b, c] z)"
            f" <{W}, float k = {{2}}> {{ c1 = Mul(x, k) y = Conv(c1, w) z = Abs(c1) }}",
            "what the convolution reads is used elsewhere",
        ),
        "a sum and padding": (
            f"{ANY} <{W}, float k = {{2}}>{{ c1 = Add(x, k) y = Conv<pads=[1, 0, 0, 0]>(c1, w) }}",
            "the padding is not what is added",
        ),
        "a sum and automatic padding": (
            f"{ANY} <{W}, float k = {{2}}>"
            '{ c1 = Add(x, k) y = Conv<auto_pad="SAME_UPPER">(c1, w) }',
            "the padding is not what is added",
        ),
        "a sum and ConvTranspose": (
            f"{ANY} <{W}, float k = {{2}}> {{ c1 = Add(x, k) y = ConvTranspose(c1, w) }}",
            "the padding is not what is added",
        ),
        "a constant that broadcasts": (
            "g (float[a, 1, b, c] x) => (float[a, 2, b, c] y)"
            f" <{W}, float[2, 1, 1] k = {{1, 2}}> {{ c1 = Mul(x, k) y = Conv(c1, w) }}",
            "the number of channels of the operand is not known",
        ),
        "unknown channels": (
            "g (float[a, n, b, c] x) => (float[a, 2, b, c] y)"
            f" <{W}, float[2, 1, 1] k = {{1, 2}}> {{ c1 = Mul(x, k) y = Conv(c1, w) }}",
            "the number of channels of the operand is not known",
        ),
        "a constant that adds dimensions": (
            "g (float[2, b, c] x) => (float[1, 2, b, c] y)"
            f" <{W}, float[1, 1, 1, 1] k = {{2}}> {{ c1 = Mul(x, k) y = Conv(c1, w) }}",
            "the rank of the operand",
        ),
        "an unknown rank": (
            f"g (float[] x) => (float[a, 2, b, c] y) <{W}, float[1] k = {{2}}>"
            "{ c1 = Mul(x, k) y = Conv(c1, w) }",
            "the rank of the operand",
        ),
        "a bias that is not constant": (
            f"g (float[a, 2, b, c] x, float[2] b) => (float[a, 2, b, c] y) <{W}, float k = {{2}}>"
            "{ c1 = Add(x, k) y = Conv(c1, w, b) }",
            "the bias is not constant",
        ),
        "not constant": (
            f"g (float[a, 2, b, c] x, float[2, 1, 1] k) => (float[a, 2, b, c] y) <{W}>"
            "{ c1 = Mul(x, k) y = Conv(c1, w) }",
            "the other operand is not constant",
        ),
    },
}


test_refuses = refusal_tests(NEAR_MISSES)
