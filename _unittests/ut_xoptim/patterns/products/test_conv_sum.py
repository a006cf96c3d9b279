"""Sums of convolutions of the same data."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

H = "g (float[a, 2, b] x) => (float[a, 2, b] y)"
#: 2 channels in and out, kernels of 3 and of 1
W = "float[2, 2, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[2] b = {1, -1}"
V = "float[2, 2, 1] v = {1, 2, 3, 4}, float[2] c = {3, 0}"
#: scale 2 and -1 after the deviations 2 and 4, shift -1 and 2.5
NORM = "float[2] s = {4, -4}, float[2] o = {1, 0.5}, float[2] m = {1, 2}, float[2] d = {4, 16}"
P = "pads = [1, 1]"
BN = "BatchNormalization<epsilon = 0.0>(x, s, o, m, d)"
SUM = "float[2, 2, 3] w = {1, 3, 3, 4, 7, 6, 7, 11, 9, 10, 15, 12}"
MODELS = {
    "ConvSum": {
        "a small kernel inside of a big one": (
            f"{H} <{W}, {V}> {{ p = Conv<{P}>(x, w, b) q = Conv(x, v, c) y = Add(p, q) }}",
            f"{H} <{SUM}, float[2] b = {{4, -1}}> {{ y = Conv<{P}>(x, w, b) }}",
        ),
        "a difference, the big one on the right": (
            f"{H} <{W}, {V}> {{ p = Conv<{P}>(x, w, b) q = Conv(x, v) y = Sub(q, p) }}",
            f"{H} <float[2, 2, 3] w = {{-1, -1, -3, -4, -3, -6, -7, -5, -9, -10, -7, -12}},"
            f" float[2] b = {{-1, 1}}> {{ y = Conv<{P}>(x, w, b) }}",
        ),
        "a normalization": (
            f"{H} <{V}, {NORM}> {{ p = Conv(x, v, c) q = {BN} y = Add(q, p) }}",
            f"{H} <float[2, 2, 1] v = {{3, 2, 3, 3}}, float[2] c = {{2, 2.5}}>"
            "{ y = Conv(x, v, c) }",
        ),
        "a normalization that is subtracted": (
            f"{H} <{V}, {NORM}> {{ p = Conv(x, v) q = {BN} y = Sub(p, q) }}",
            f"{H} <float[2, 2, 1] v = {{-1, 2, 3, 5}}, float[2] o = {{1, -2.5}}>"
            "{ y = Conv(x, v, o) }",
        ),
        "the data, one channel in each group": (
            f"{H} <float[2, 1, 3] w = {{1, 2, 3, 4, 5, 6}}>"
            f"{{ p = Conv<{P}, group = 2>(x, w) y = Add(x, p) }}",
            f"{H} <float[2, 1, 3] w = {{1, 3, 3, 4, 6, 6}}> {{ y = Conv<{P}, group = 2>(x, w) }}",
        ),
        "dilations, one padding bigger": (
            "g (float[a, 1, b] x) => (float[a, 1, c] y) <float[1, 1, 3] w = {1, 2, 3},"
            " float[1, 1, 2] v = {1, 2}> { p = Conv<pads = [2, 1], dilations = [2]>(x, w)"
            " q = Conv<pads = [0, 1], dilations = [2]>(x, v) y = Add(p, q) }",
            "g (float[a, 1, b] x) => (float[a, 1, c] y) <float[1, 1, 3] w = {1, 3, 5}>"
            "{ y = Conv<pads = [2, 1], dilations = [2]>(x, w) }",
            {"sizes": [{"a": 2, "b": 5, "c": 4}, {"a": 1, "b": 8, "c": 7}]},
        ),
    }
}
_SUM = "y = Add(p, q) }"
REFUSED = {
    "ConvSum": {
        "no convolution": (f"{H} {{ n = Neg(x) y = Add(n, x) }}", "no Conv before"),
        "one result twice": (
            f"{H} <{V}> {{ p = Conv(x, v) y = Add(p, p) }}",
            "one result is added to itself",
        ),
        "used elsewhere": (
            f"{H[:-1]}, float[a, 2, b] p) <{W}, {V}> {{ p = Conv<{P}>(x, w) q = Conv(x, v) {_SUM}",
            "what is added is used elsewhere",
        ),
        "other data": (
            "g (float[a, 2, b] x, float[a, 2, b] z) => (float[a, 2, b] y)"
            f"<{W}, {V}> {{ p = Conv<{P}>(x, w) q = Conv(z, v) {_SUM}",
            "no convolution of the same data",
        ),
        "something else": (
            f"{H} <{V}> {{ p = Conv(x, v) q = Neg(x) {_SUM}",
            "no convolution of the same data",
        ),
        "other strides": (
            "g (float[a, 2, 1] x) => (float[a, 2, 1] y)"
            f"<{W}, {V}> {{ p = Conv<{P}>(x, w) q = Conv<strides = [2]>(x, v) {_SUM}",
            "no convolution of the same data",
        ),
        "a padding that is not written": (
            f'{H} <{W}, {V}> {{ p = Conv<auto_pad = "SAME_UPPER">(x, w) q = Conv(x, v) {_SUM}',
            "the padding is not written",
        ),
        "a result that is broadcast": (
            "g (float[a, 2, 1] x) => (float[a, 2, 3] y)"
            f"<{W}, {V}> {{ p = Conv<pads = [2, 2]>(x, w) q = Conv(x, v) {_SUM}",
            "a kernel is not inside of the other one",
        ),
        "another place": (
            f"{H} <{W}, float[2, 2, 2] v = {{1, 2, 3, 4, 5, 6, 7, 8}}>"
            f"{{ p = Conv<{P}>(x, w) q = Conv<pads = [2, -1]>(x, v) {_SUM}",
            "the padding removes elements",
        ),
        "before the first element": (
            "g (float[a, 2, b] x) => (float[a, 2, b] y)"
            f"<{W}> {{ p = Conv<pads = [0, 0]>(x, w) y = Sub(x, p) }}",
            "a kernel is not inside of the other one",
        ),
        "after the last element": (
            "g (float[a, 2, b] x) => (float[a, 2, b] y)"
            "<float[2, 2, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}>"
            "{ p = Conv<pads = [2, 0]>(x, w) y = Sub(x, p) }",
            "a kernel is not inside of the other one",
        ),
        "other channels": (
            "g (float[a, 2, b] x) => (float[a, 2, b] y)"
            f"<{W}, float[1, 2, 1] v = {{1, 2}}> {{ p = Conv<{P}>(x, w) q = Conv(x, v) {_SUM}",
            "do not have the same channels",
        ),
        "strides and the data": (
            "g (float[a, 2, 1] x) => (float[a, 2, 1] y)"
            f"<{V}> {{ p = Conv<strides = [2]>(x, v) y = Add(p, x) }}",
            "the convolution has strides",
        ),
        "the number of channels changes": (
            "g (float[a, 1, b] x) => (float[a, 2, b] y)"
            "<float[2, 1, 1] v = {1, 2}> { p = Conv(x, v) y = Add(p, x) }",
            "changes the number of channels",
        ),
        "a weight that is not constant": (
            "g (float[a, 2, b] x, float[2, 2, 1] v) => (float[a, 2, b] y)"
            "{ p = Conv(x, v) y = Add(p, x) }",
            "the weight is not constant",
        ),
        "a bias that is not constant": (
            "g (float[a, 2, b] x, float[2] c) => (float[a, 2, b] y)"
            "<float[2, 2, 1] v = {1, 2, 3, 4}> { p = Conv(x, v, c) y = Add(p, x) }",
            "the bias is not constant",
        ),
        "a weight that overflows": (
            f"{H} <float[2, 2, 1] v = {{3e38, 0, 0, 0}}, float[2, 2, 1] w = {{3e38, 0, 0, 0}}>"
            f"{{ p = Conv(x, v) q = Conv(x, w) {_SUM}",
            "the new weight is not finite",
        ),
        "training": (
            f"{H} <{V}, {NORM}> {{ p = Conv(x, v)"
            f" q, r, t = BatchNormalization<training_mode = 1>(x, s, o, m, d) {_SUM}",
            "BatchNormalization is training",
        ),
    }
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)
test_refuses = refusal_tests(REFUSED)


def test_broadcasting_of_opset_6() -> None:
    text = MODELS["ConvSum"]["the data, one channel in each group"][0]
    check_no_match(text, "ConvSum", "needs opset 7", opset=6)


def branches(channels: int, group: int, kernel: int, dtype: type, rank: int) -> ModelProto:
    """x, its normalization, a small and a big convolution, added."""
    rng = np.random.default_rng(channels + kernel)

    def some(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / 4).astype(dtype)

    values = {
        "w": some(channels, channels // group, *(kernel,) * rank),
        "v": some(channels, channels // group, *(1,) * rank),
        "b": some(channels),
        **{name: some(channels) for name in "som"},
        "d": np.abs(some(channels)) + 1,
    }
    kind = oh.np_dtype_to_tensor_dtype(np.dtype(dtype))
    dims = ["n", channels, *(f"d{i}" for i in range(rank))]
    nodes = [
        oh.make_node("Conv", ["x", "w", "b"], ["p"], group=group, pads=[kernel // 2] * 2 * rank),
        oh.make_node("Conv", ["x", "v"], ["q"], group=group),
        oh.make_node("BatchNormalization", ["x", *"somd"], ["r"]),
        oh.make_node("Add", ["r", "q"], ["t"]),
        oh.make_node("Add", ["t", "p"], ["u"]),
        oh.make_node("Add", ["x", "u"], ["y"]),
    ]
    graph = oh.make_graph(
        nodes,
        "branches",
        [oh.make_tensor_value_info("x", kind, dims)],
        [oh.make_tensor_value_info("y", kind, dims)],
        [onh.from_array(value.astype(dtype), name) for name, value in values.items()],
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=10)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(((1, 1), (2, 1), (4, 2), (4, 4))),
    st.sampled_from((1, 3, 5)),
    st.sampled_from((np.float32, np.float64)),
    st.sampled_from((1, 2)),
)
def test_every_branch(channels: tuple[int, int], kernel: int, dtype: type, rank: int) -> None:
    model = branches(*channels, kernel, dtype, rank)
    digits = 1e-5 if dtype == np.float32 else 1e-11  # of the default epsilon, a float
    got = check_pattern(
        model, None, "ConvSum", atol=digits, rtol=digits, runtime=dtype == np.float32
    )
    assert [node.op_type for node in got.graph.node] == ["Conv"]


def test_a_big_weight_is_computed_when_it_is_written() -> None:
    got = check_pattern(branches(96, 1, 3, np.float32, 1), None, "ConvSum", atol=1e-4, rtol=1e-4)
    assert [node.op_type for node in got.graph.node] == ["Conv"]
    assert {t.name for t in got.graph.initializer} == {"w", "b"}


@pytest.mark.parametrize("index", [0, 1])
def test_a_weight_used_elsewhere_is_kept(index: int) -> None:
    """The model would grow."""
    model = branches(256, 1, 3, np.float32, 1)
    name = "wv"[index]
    model.graph.node.append(oh.make_node("Shape", [name], ["shape"]))
    model.graph.node.append(oh.make_node("Neg", [name], ["z"]))
    model.graph.output.append(oh.make_tensor_value_info("z", TensorProto.FLOAT, None))
    del model.graph.node[2:6]
    model.graph.node.append(oh.make_node("Add", ["p", "q"], ["y"]))
    check_no_match(model, "ConvSum", "the model would grow")
