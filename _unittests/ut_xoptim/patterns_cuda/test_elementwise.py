"""Operators of one element at a time in one kernel; ExpandSwap and CastOpCast know them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns_cuda.cuda_ops import (
    check,
    check_refused,
    cuda_refusal_tests,
    cuda_rewrite_tests,
    only_on_cuda_test,
    parsed,
    spelled,
)

from xbuilder.operators.domains import CUDA_UNARY
from xoptim.testing import check_pattern

X = "g (float[a, b] x) => (float[a, b] y)"
C = "<float one = {1}, float zero = {0}, float c = {-2.5}>"


def _model(body: str, constants: str = "") -> str:
    return spelled(f"{X} {constants} {{ {body} }}")


REPLACED = _model("y = cuda.ReplaceZero <by = -2.5> (x)")
MODELS = {
    "MulSigmoid": {
        "one order": (_model("s = Sigmoid(x) y = Mul(x, s)"), _model("y = cuda.MulSigmoid(x)")),
        "the other": (_model("s = Sigmoid(x) y = Mul(s, x)"), _model("y = cuda.MulSigmoid(x)")),
    },
    "NegXplus1": {"1 - x": (_model("y = Sub(one, x)", C), _model("y = cuda.NegXplus1(x)"))},
    "ReplaceZero": {
        "Equal": (_model("e = Equal(x, zero) y = Where(e, c, x)", C), REPLACED),
        "Cast": (_model("e = Cast <to = 9> (x) y = Where(e, x, c)", C), REPLACED),
        "Not": (_model("e = Cast <to = 9> (x) n = Not(e) y = Where(n, c, x)", C), REPLACED),
    },
}
REFUSED = {
    "MulSigmoid": {
        "another result": (_model("n = Neg(x) s = Sigmoid(n) y = Mul(x, s)"), ""),
        "used elsewhere": (
            _model("s = Sigmoid(x) y = Mul(x, s)").replace("] y)", "] y, float[a, b] s)"),
            "used elsewhere",
        ),
    },
    "NegXplus1": {
        "another number": (_model("y = Sub(c, x)", C), "cannot be the constant 1"),
        "the other order": (_model("y = Sub(x, one)", C), "cannot be 1"),
        "wider": (_model("y = Sub(one, x)", C).replace("float one", "float[1,1,1] one"), "shape"),
    },
    "ReplaceZero": {
        # what is not zero would be replaced
        "the branches exchanged": (_model("e = Cast <to = 9> (x) y = Where(e, c, x)", C), ""),
        "another mask": (_model("n = Neg(x) e = Cast <to = 9> (n) y = Where(e, x, c)", C), ""),
        "several values": (
            _model("e = Equal(x, zero) y = Where(e, c, x)", C)
            .replace("float c = {-2.5}", "float[2] c = {1, 2}")
            .replace("[a, b]", "[a, 2]"),
            "",
        ),
    },
}
SPECIAL = np.array([[0, -0.0, np.nan], [np.inf, -np.inf, 2]], np.float32)


def _feeds(pattern: str, name: str, before: str) -> list[dict[str, np.ndarray]]:
    if name in ("Cast", "Not"):  # runtimes do not agree on NaN as a boolean
        return [{"x": np.nan_to_num(SPECIAL)}]
    return [{"x": SPECIAL}, {"x": SPECIAL[:0]}]


test_rewrites = pytest.mark.filterwarnings("ignore:overflow|invalid")(
    cuda_rewrite_tests(MODELS, _feeds)
)
test_refuses = cuda_refusal_tests(REFUSED)
test_only_on_cuda = only_on_cuda_test(MODELS)


@pytest.mark.parametrize("pattern", sorted(MODELS))
def test_only_floats(pattern: str) -> None:
    before = next(iter(MODELS[pattern].values()))[0]
    check_refused(before.replace("float", "double"), pattern, "not float nor float16")


@pytest.mark.parametrize("op_type", CUDA_UNARY)
def test_expand_goes_after(op_type: str) -> None:
    head = "g (float[1, 3] x) => (float[4, 3] y) <int64[2] s = {4, 1}>"
    by = "<by = 2.0>" if op_type == "ReplaceZero" else ""
    check(
        f"{head} {{ e = Expand(x, s) y = cuda.{op_type} {by} (e) }}",
        f"{head} {{ e = cuda.{op_type} {by} (x) y = Expand(e, s) }}",
        "ExpandSwap",
        [{"x": np.array([[1, 0, -2]], np.float32)}],
    )


def test_casts_around_one_operand() -> None:
    head = "g (float16[a] x) => (float16[a] y)"
    check(
        f"{head} {{ c = Cast <to = 1> (x) s = cuda.MulSigmoid(c) y = Cast <to = 10> (s) }}",
        f"{head} {{ y = cuda.MulSigmoid(x) }}",
        "CastOpCast",
        [{"x": np.array([1, 0, -2], np.float16)}],
        2e-3,
    )


@pytest.mark.parametrize("op_type", ["SoftmaxGrad", "SoftmaxGrad_13"])
def test_casts_around_a_gradient(op_type: str) -> None:
    """No runtime for inference has the kernel: the graphs are compared."""
    head = "g (float16[a] x, float16[a] z) => (float16[a] y)"
    check_pattern(
        f"{head} {{ c = Cast <to = 1> (x) d = Cast <to = 1> (z)"
        f"s = com.microsoft.{op_type} <axis = -1> (c, d) y = Cast <to = 10> (s) }}",
        f"{head} {{ y = com.microsoft.{op_type} <axis = -1> (x, z) }}",
        "CastOpCast",
        feeds=[],
    )


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(sorted(MODELS)),
    st.lists(st.sampled_from((0.0, -0.0, 1.0, -3.0, 1e-30)), min_size=1, max_size=4),
    st.sampled_from(("", "1", "1, 1")),
)
def test_shapes_of_scalars(pattern: str, values: list[float], shape: str) -> None:
    text = next(iter(MODELS[pattern].values()))[0]
    for name in ("one", "zero", "c"):
        text = text.replace(f"float {name} =", f"float{f'[{shape}]' if shape else ''} {name} =")
    check(text, None, pattern, [{"x": np.array([values], np.float32)}])
    assert parsed(text).graph.node
