"""Operators of one element at a time go before what moves the elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbuilder.operators.op_traits import ELEMENTWISE_UNARY
from xoptim.catalogue.registry import all_patterns
from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5, 1.5, -2.5, 3], np.float32)
X = "g (float[a, b] x) => (float[b, a] y)"
BOXES = "g (float[a, b, c, d] x) => (float[a, c, b, d] y)"
MODELS = {
    "SwapUnary": {
        "Transpose": (
            f"{X} {{ t = Transpose(x) y = Sigmoid(t) }}",
            f"{X} {{ s = Sigmoid(x) y = Transpose(s) }}",
        ),
        "Reshape": (
            "g (float[a, 2] x, int64[k] s) => (float[c, d] y) { t = Reshape(x, s) y = Neg(t) }",
            "g (float[a, 2] x, int64[k] s) => (float[c, d] y) { t = Neg(x) y = Reshape(t, s) }",
            {
                "feeds": [
                    {"x": np.ones((3, 2), np.float32), "s": np.array([2, -1])},
                    {"x": np.ones((0, 2), np.float32), "s": np.array([0, 2])},
                ]
            },
        ),
        "Flatten": (
            "g (float[a, b, c] x) => (float[d, e] y) { t = Flatten<axis = 2>(x) y = Neg(t) }",
            "g (float[a, b, c] x) => (float[d, e] y) { t = Neg(x) y = Flatten<axis = 2>(t) }",
            {"sizes": {"a": 2, "b": 3, "c": 4, "d": 6, "e": 4}},
        ),
        "a chain": (
            f"{X} {{ t = Transpose <perm = [1, 0]> (x) n = Neg(t) y = Exp(n) }}",
            f"{X} {{ n = Neg(x) e = Exp(n) y = Transpose <perm = [1, 0]> (e) }}",
        ),
        "attributes and scalars": (
            "g (float[a, b] x, float low) => (float[b, a] y)"
            "{ t = Transpose(x) c = Clip(t, low) y = Elu <alpha = 2.0> (c) }",
            "g (float[a, b] x, float low) => (float[b, a] y)"
            "{ c = Clip(x, low) e = Elu <alpha = 2.0> (c) y = Transpose(e) }",
        ),
        "a type that is not wider": (
            "g (float[a, b] x) => (int32[b, a] y) { t = Transpose(x) y = Cast <to = 6> (t) }",
            "g (float[a, b] x) => (int32[b, a] y) { c = Cast <to = 6> (x) y = Transpose(c) }",
        ),
        "a predicate": (
            "g (float[a, b] x) => (bool[b, a] y) { t = Transpose(x) y = IsNaN(t) }",
            "g (float[a, b] x) => (bool[b, a] y) { c = IsNaN(x) y = Transpose(c) }",
        ),
    },
    "SoftmaxAxis": {
        "the Transpose is before": (
            f"{BOXES} {{ t = Transpose<perm = [0, 2, 1, 3]>(x) y = Softmax<axis = 1>(t) }}",
            f"{BOXES} {{ s = Softmax<axis = 2>(x) y = Transpose<perm = [0, 2, 1, 3]>(s) }}",
        ),
        "the Transpose is after": (
            f"{BOXES} {{ s = LogSoftmax<axis = 1>(x) y = Transpose<perm = [0, 2, 1, 3]>(s) }}",
            f"{BOXES} {{ t = Transpose<perm = [0, 2, 1, 3]>(x) y = LogSoftmax<axis = 2>(t) }}",
        ),
        "a cycle, a negative axis": (
            "g (float[a, b, c] x) => (float[b, c, a] y)"
            "{ t = Transpose<perm = [1, 2, 0]>(x) y = Hardmax<axis = -2>(t) }",
            "g (float[a, b, c] x) => (float[b, c, a] y)"
            "{ s = Hardmax<axis = 2>(x) y = Transpose<perm = [1, 2, 0]>(s) }",
        ),
        "a cycle, the Transpose is after": (
            "g (float[a, b, c] x) => (float[b, c, a] y)"
            "{ s = Softmax<axis = 0>(x) y = Transpose<perm = [1, 2, 0]>(s) }",
            "g (float[a, b, c] x) => (float[b, c, a] y)"
            "{ t = Transpose<perm = [1, 2, 0]>(x) y = Softmax<axis = 2>(t) }",
        ),
    },
    "RepeatedUnary": {
        f"{after} of {before}": (
            f"g (float[a] x) => (float[a] y) {{ t = {before}(x) y = {after}(t) }}",
            f"g (float[a] x) => (float[a] y) {{ y = {before}(x) }}",
            {"feeds": [{"x": SPECIAL}]},
        )
        for before, after in (
            *(
                pair
                for b in ("Abs", "Exp", "Relu", "Sigmoid", "Softmax", "Sqrt")
                for pair in ((b, "Abs"), (b, "Relu"))
            ),
            *(
                pair
                for b in ("Ceil", "Floor", "Round")
                for pair in ((b, "Ceil"), (b, "Floor"), (b, "Round"))
            ),
            ("Sign", "Sign"),
        )
    }
    | {
        "the first one is used elsewhere": (
            "g (float[a] x) => (float[a] y, float[a] z)"
            "{ t = Relu(x) u = Relu(t) y = Neg(u) z = Exp(t) }",
            "g (float[a] x) => (float[a] y, float[a] z) { t = Relu(x) y = Neg(t) z = Exp(t) }",
        ),
        "both are outputs": (
            "g (float[a] x) => (float[a] y, float[a] z) { y = Floor(x) z = Ceil(y) }",
            "g (float[a] x) => (float[a] y, float[a] z) { y = Floor(x) z = Identity(y) }",
        ),
        "of 16 bits": (
            "g (float16[a] x) => (float16[a] y) { t = Relu(x) y = Abs(t) }",
            "g (float16[a] x) => (float16[a] y) { y = Relu(x) }",
        ),
    },
}
REFUSED = {
    "SoftmaxAxis": {
        "the last axis": (
            f"{BOXES} {{ t = Transpose<perm = [0, 2, 1, 3]>(x) y = Softmax(t) }}",
            "the axis does not get closer to the end",
        ),
        "the axis gets farther": (
            f"{BOXES} {{ s = Softmax<axis = 2>(x) y = Transpose<perm = [0, 2, 1, 3]>(s) }}",
            "the axis does not get closer to the end",
        ),
        "used elsewhere": (
            f"{BOXES[:-1]}, float[a, c, b, d] t)"
            " { t = Transpose<perm = [0, 2, 1, 3]>(x) y = Softmax<axis = 1>(t) }",
            "an inner result is used elsewhere",
        ),
        "an unknown rank": (
            "g (float x) => (float y) { t = Transpose(x) y = Softmax<axis = 1>(t) }",
            "the permutation is not known|the axis is not known",
        ),
    },
    "RepeatedUnary": {
        "negative values": (
            "g (float[a] x) => (float[a] y) { t = Tanh(x) y = Relu(t) }",
            "what comes before may give other values",
        ),
        "not whole": (
            "g (float[a] x) => (float[a] y) { t = Relu(x) y = Ceil(t) }",
            "what comes before may give other values",
        ),
        "a sign of something else": (
            "g (float[a] x) => (float[a] y) { t = Abs(x) y = Sign(t) }",
            "what comes before may give other values",
        ),
        "another domain": (
            "g (float[a] x) => (float[a] y) { t = toy.Relu(x) y = Relu(t) }",
            "what comes before may give other values",
        ),
        "integers": (
            "g (int64[a] x) => (int64[a] y) { t = Abs(x) y = Relu(t) }",
            "the type is not a float",
        ),
    },
    "SwapUnary": {
        "used elsewhere": (
            "g (float[a, b] x) => (float[b, a] y, float[b, a] z)"
            "{ t = Transpose(x) y = Neg(t) z = Abs(t) }",
            "used elsewhere",
        ),
        "an output": (
            "g (float[a, b] x) => (float[b, a] y, float[b, a] t) { t = Transpose(x) y = Neg(t) }",
            "used elsewhere",
        ),
        "a constant": (
            "g (float[2] x) => (float[1, 2] y, float[2] z)"
            "<float[2] c = {1, 2}, int64[2] s = {1, 2}> { t = Reshape(c, s) y = Neg(t) z = Abs(x) }",
            "what is moved is constant",
        ),
        "a wider type": (
            "g (float[a, b] x) => (double[b, a] y) { t = Transpose(x) y = Cast <to = 11> (t) }",
            "the new type is wider",
        ),
        "a type with few kernels": (
            "g (float[a, b] x) => (bfloat16[b, a] y) { t = Transpose(x) y = Cast <to = 16> (t) }",
            "runtimes may not move this type",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)

#: operators that look like unary ones: they have an axis, or one parameter for each channel
WITH_AN_AXIS = ("Softmax", "LogSoftmax", "Hardmax", "PRelu", "QuantizeLinear", "BitShift", "CumSum")


@pytest.mark.parametrize("op_type", WITH_AN_AXIS)
def test_an_axis_or_a_parameter_is_not_moved(op_type: str) -> None:
    assert op_type not in ELEMENTWISE_UNARY
    assert op_type not in all_patterns()["SwapUnary"].roots


def test_a_bound_that_is_reshaped_is_not_what_moves() -> None:
    """The Reshape gives the bound of Clip, not what is clipped; the Neg after it still moves."""
    text = """g (float[a, b] x, float[1] m) => (float[b, a] y) <int64[0] none = {}> {
        low = Reshape(m, none) t = Transpose(x) y = Clip(t, low)
    }"""
    check_pattern(
        text,
        """g (float[a, b] x, float[1] m) => (float[b, a] y) <int64[0] none = {}> {
            low = Reshape(m, none) c = Clip(x, low) y = Transpose(c)
        }""",
        "SwapUnary",
    )
    alone = (
        text.replace("t = Transpose(x) ", "")
        .replace("Clip(t", "Clip(x")
        .replace("[b, a]", "[a, b]")
    )
    with pytest.raises(AssertionError, match="no pattern"):
        check_pattern(alone, None, "SwapUnary")


UNARY = ("Neg", "Abs", "Relu", "Sigmoid", "Exp", "IsNaN")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(UNARY), min_size=1, max_size=2),
    st.permutations((0, 1, 2)),
    st.sampled_from(((2, 3, 1), (0, 1, 4), (1, 1, 1))),
)
def test_special_values_move(ops: list[str], perm: list[int], shape: tuple[int, ...]) -> None:
    """Infinities, NaN, dimensions 0 and 1."""
    body = "t = Transpose <perm = {}> (x) ".format(str(list(perm)).replace("'", ""))
    last = "t"
    for i, op_type in enumerate(ops):
        if last.startswith("IsNaN"):
            break
        body += f"{op_type}{i} = {op_type}({last}) "
        last = f"{op_type}{i}"
    kind = "bool" if last.startswith("IsNaN") else "float"
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1.5, -2], np.float32)
    x = np.resize(values, shape)
    text = f"g (float[a, b, c] x) => ({kind}[d, e, f] {last}) {{ {body} }}"
    check_pattern(text, None, "SwapUnary", feeds=[{"x": x}])
