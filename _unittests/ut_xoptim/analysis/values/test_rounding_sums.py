"""`(x + c) - c` rounds x when c is large: it stays, whatever is around."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.analysis.values.rounding_sums import ROUNDS, rounds
from xoptim.authoring.context import context_of
from xoptim.testing import (
    assert_same_outputs,
    model_from_text,
    optimizer_of,
    refusal_tests,
    run_onnxruntime,
)

X = "g (float[a, 4] x) => (float[a, 4] y)"
#: what is between 2**23 and 2**24 is an integer
MAGIC = 12582912
C = f"float c = {{{MAGIC}}}, float n = {{-{MAGIC}}}, float one = {{1}}, float minus = {{-1}}"
ROUNDING = [
    "s = Add(x, c) y = Sub(s, c)",
    "s = Add(c, x) y = Add(n, s)",
    "s = Sub(x, c) y = Sub(s, n)",
    "s = Sub(c, x) y = Sub(c, s)",
    "s = Sub(c, x) y = Add(n, s)",
]
KEPT = [
    "s = Add(x, one) y = Sub(s, one)",  # as any sum
    "s = Add(x, c) y = Add(s, c)",  # nothing is taken away
    "s = Add(x, c) y = Sub(s, one)",
    "s = Sub(c, x) y = Sub(n, s)",
    "s = Add(x, c) y = Mul(s, c)",
    "s = Add(x, x) y = Sub(s, s)",
]


def both(body: str, header: str = X, constants: str = C) -> list[bool]:
    """The answers for both nodes."""
    queries = optimizer_of(f"{header} <{constants}> {{ {body} }}")
    return [rounds(context_of(queries), node) for node in queries.iter_nodes()]


@pytest.mark.parametrize("body", ROUNDING)
def test_rounds(body: str) -> None:
    assert both(body) == [True, True]


@pytest.mark.parametrize("body", KEPT)
def test_does_not_round(body: str) -> None:
    assert both(body) == [False, False]


def test_one_number_of_many() -> None:
    constants = f"float[4] c = {{{MAGIC}, 1, 1, 1}}, float[4] d = {{{MAGIC}, 2, 2, 2}}"
    assert both("s = Add(x, c) y = Sub(s, d)", constants=constants) == [True, True]
    assert both("s = Add(x, c) y = Add(s, d)", constants=constants) == [False, False]


def test_fractions() -> None:
    """49152 + x is a multiple of 2**-8."""
    constants = "float c = {49152}"
    assert both("s = Add(x, c) y = Sub(s, c)", constants=constants) == [True, True]
    assert both("s = Add(x, c) y = Sub(s, c)", constants="float c = {96}") == [False, False]


def test_types() -> None:
    body = "s = Add(x, c) y = Sub(s, c)"
    double = X.replace("float", "double")
    assert both(body, double, f"double c = {{{MAGIC}}}") == [False, False]
    assert both(body, double, f"double c = {{{3 << 51}}}") == [True, True]
    # the text gives the bits: 26112 is 1536
    half = X.replace("float", "float16")
    assert both(body, half, "float16 c = {26112}") == [True, True]
    integers = X.replace("float", "int64")
    assert both(body, integers, f"int64 c = {{{MAGIC}}}") == [False, False]


def test_what_is_known() -> None:
    """A mask, something read elsewhere, other shapes."""
    masks = "float[4] c = {1, 2, 3, 4}, float[4] n = {-3e38, 0, 0, 0}"
    assert both("s = Add(x, c) y = Add(s, n)", constants=masks) == [False, False]
    read = X.replace("] y", "] y, float[a, 4] s")
    assert both("s = Add(x, c) y = Sub(s, c)", read) == [False, True]
    shapes = f"float[3] c = {{{MAGIC}, 1, 1}}, float[4] d = {{{MAGIC}, 1, 1, 1}}"
    assert both("s = Add(x, c) y = Sub(s, d)", "g (float[a, b] x) => (float[a, b] y)", shapes) == [
        False,
        False,
    ]


W = ", float[4, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}"
N = W + ", float[4] k = {1, 2, 3, 4}, float[4] z = {0, 0, 0, 0}"
V = ", float[4, 4, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}"
IMAGE = "g (float[a, 4, b] x) => (float[a, 4, b] y)"
REFUSED = {
    "SwitchOrderBinary": (f"{X} <{C}> {{ {ROUNDING[1]} }}", ROUNDS),
    "MatMulAdd": (f"{X} <{C}{W}> {{ m = MatMul(x, w) s = Add(m, c) y = Sub(s, c) }}", ROUNDS),
    "MatMulAffine": (f"{X} <{C}{N}> {{ m = Gemm(x, w, k) s = Add(m, c) y = Sub(s, c) }}", ROUNDS),
    "AffineMatMul": (f"{X} <{C}{W}> {{ s = Add(x, c) d = Sub(s, c) y = Gemm(d, w) }}", ROUNDS),
    "MatMulBiases": (
        f"{X} <{C}{N}> {{ s = Add(x, c) d = Add(n, s) m = MatMul(d, w) y = Add(m, k) }}",
        ROUNDS,
    ),
    "ConvAffine": (f"{IMAGE} <{C}{V}> {{ m = Conv(x, w) s = Add(m, c) y = Sub(s, c) }}", ROUNDS),
    "AffineConv": (f"{IMAGE} <{C}{V}> {{ s = Add(x, c) d = Sub(s, c) y = Conv(d, w) }}", ROUNDS),
    "BatchNormalizationAffine": (
        f"{IMAGE} <{C}{N}>{{ m = BatchNormalization(x, k, z, z, k) s = Add(m, c) y = Sub(s, c) }}",
        ROUNDS,
    ),
    "AffineBatchNormalization": (
        f"{IMAGE} <{C}{N}>{{ s = Add(x, c) d = Sub(s, c) y = BatchNormalization(d, k, z, z, k) }}",
        ROUNDS,
    ),
}
test_refuses = refusal_tests({name: {"rounds": case} for name, case in REFUSED.items()})


def check_same(text: str, selection: str, feeds: dict[str, np.ndarray]) -> None:
    """The same integers after the patterns of a set as before."""
    before = model_from_text(text)
    options = OptimizationOptions(patterns=selection)
    after = GraphBuilder(before, optimization_options=options).to_onnx()
    expected = run_onnxruntime(before, feeds)
    assert_same_outputs(expected, run_onnxruntime(after, feeds), 1e-5, 1e-4, selection)


@pytest.mark.parametrize("selection", ["default", "default+onnxruntime"])
@pytest.mark.parametrize("name", REFUSED)
def test_same_results(name: str, selection: str) -> None:
    text = REFUSED[name][0]
    shape = (2, 4, 3) if text.startswith(IMAGE) else (2, 4)
    x = np.random.default_rng(0).integers(-40, 40, shape).astype(np.float32) / 8 + np.float32(0.1)
    check_same(text, selection, {"x": x})


@settings(max_examples=60, deadline=None)
@given(
    step=st.integers(-2, 14),
    body=st.sampled_from([*ROUNDING, "m = MatMul(x, w) s = Add(m, c) y = Sub(s, c)"]),
    values=st.lists(st.floats(-8, 8, width=32), min_size=4, max_size=4),
)
def test_any_number(step: int, body: str, values: list[float]) -> None:
    """Integers, quarters...: values smaller than any sum are rounded."""
    number = float(3 << 22) / 2.0**step
    constants = f"float c = {{{number}}}, float n = {{-{number}}}{W}"
    feeds = {"x": np.array([values], dtype=np.float32)}
    check_same(f"{X} <{constants}> {{ {body} }}", "default", feeds)


@pytest.mark.parametrize(
    "body",
    [
        "k = Constant <value_ints = [2]> () r = ReduceSum <keepdims = 0> (x, k)"
        " l = Constant <value_ints = [1]> () y = ReduceSum <keepdims = 0> (r, l)",
        "t = Transpose <perm = [0, 2, 1]> (x) k = Constant <value_ints = [1, 2]> ()"
        " y = ReduceSum <keepdims = 0> (t, k)",
    ],
)
def test_large_integers_keep_their_order(body: str) -> None:
    """Large integers cancel each other in the order of the model, and in that of the result."""
    model = model_from_text(f"agraph (int64[a, 8, 9] x) => (int64[a] y) {{ {body} }}")
    options = OptimizationOptions(patterns="default")
    after = GraphBuilder(model, optimization_options=options).to_onnx()
    x = np.arange(5 * 8 * 9, dtype=np.int64).reshape(5, 8, 9)
    if "Transpose" in body:
        x[:, 3], x[:, 4] = 2**60, -(2**60)
    else:
        x[:, 3] = 0
        x[:, 3, 0], x[:, 3, 1] = 2**60, -(2**60)
    expected, got = (run_onnxruntime(m, {"x": x})[0] for m in (model, after))
    np.testing.assert_array_equal(expected, got)
