"""Reductions beside operators that work on the same elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns.rounding_errors import HALVES, TYPES, difference, numbers

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

INT = "g (int64[3, b] x) => (int64[p, q] v, int64[p, q] i)"
ONE = "int64[1] k = {1}"
MODELS = {
    "TopOfOne": {
        "a value and its place": (
            "g (int64[1] x) => (int64[1] v, int64[1] i) <int64[1] k = {1}> { v, i = TopK(x, k) }",
            "g (int64[1] x) => (int64[1] v, int64[1] i) <int64[1] z = {0}>"
            "{ v = Identity(x) i = Identity(z) }",
        ),
        "the place alone, another axis": (
            "g (float[2, 1, 3] x) => (int64[2, 1, 3] i) <int64[1] k = {1}>"
            "{ v, i = TopK<axis = 1, largest = 0>(x, k) }",
            "g (float[2, 1, 3] x) => (int64[2, 1, 3] i) <int64[2, 1, 3] z = {0, 0, 0, 0, 0, 0}>"
            "{ i = Identity(z) }",
        ),
    },
    "ReduceArgTopK": {
        "the largest": (
            f"{INT} <int64[1] a = {{0}}>{{ v = ReduceMax(x, a) i = ArgMax <axis = 0> (x) }}",
            f"{INT} <{ONE}> {{ v, i = TopK <axis = 0, largest = 1> (x, k) }}",
        ),
        "the smallest, an axis that is missing": (
            f"{INT} <int64[1] a = {{0}}>{{ i = ArgMin(x) v = ReduceMin <keepdims = 1> (x, a) }}",
            f"{INT} <{ONE}> {{ v, i = TopK <axis = 0, largest = 0> (x, k) }}",
        ),
        "a negative axis, dimensions removed": (
            "g (int64[b, 3] x) => (int64[b] v, int64[b] i) <int64[1] a = {1}>"
            "{ v = ReduceMax <keepdims = 0> (x, a) i = ArgMax <axis = -1, keepdims = 0> (x) }",
            "g (int64[b, 3] x) => (int64[b] v, int64[b] i) <int64[1] k = {1}, int64[1] a = {1}>"
            "{ w, j = TopK <axis = 1, largest = 1> (x, k) v = Squeeze(w, a) i = Squeeze(j, a) }",
        ),
        "axes as an attribute": (
            f"{INT} {{ v = ReduceMax <axes = [0]> (x) i = ArgMax <axis = 0> (x) }}",
            f"{INT} <{ONE}> {{ v, i = TopK <axis = 0, largest = 1> (x, k) }}",
            {"opset": 13},
        ),
    },
    "ReduceSumNormalize": {
        "the gradient of Softmax": (
            "g (float16[a, b] x, float16[a, b] z) => (float16[a, b] y) <int64[1] l = {-1}> {"
            "c = Cast <to = 1> (x) s = ReduceSum <keepdims = 1> (c, l) f = Cast <to = 1> (z)"
            "m = Mul(f, s) d = Sub(c, m) y = Cast <to = 10> (d) }",
            "g (float16[a, b] x, float16[a, b] z) => (float16[a, b] y) <int64[1] l = {-1}> {"
            "s = ReduceSum <keepdims = 1> (x, l) m = Mul(s, z) y = Sub(x, m) }",
            {"atol": 2e-2, "rtol": 2e-2, "runtime": False},
        ),
        "another factor": (
            "g (float16[a, b] x, float[a, b] f) => (float16[a, b] y) <int64[1] l = {-1}> {"
            "c = Cast <to = 1> (x) s = ReduceSum <keepdims = 1> (c, l)"
            "m = Mul(s, f) d = Sub(c, m) y = Cast <to = 10> (d) }",
            "g (float16[a, b] x, float[a, b] f) => (float16[a, b] y) <int64[1] l = {-1}> {"
            "s = ReduceSum <keepdims = 1> (x, l) z = Cast <to = 10> (f)"
            "m = Mul(s, z) y = Sub(x, m) }",
            {"atol": 2e-2, "rtol": 2e-2, "runtime": False},
        ),
    },
}
_SUM = MODELS["ReduceSumNormalize"]["another factor"][0]
_MAX = MODELS["ReduceArgTopK"]["the largest"][0]
REFUSED = {
    "TopOfOne": {
        "two elements": (
            "g (int64[2] x) => (int64[1] v) <int64[1] k = {1}> { v, i = TopK(x, k) }",
            "the dimension is not 1",
        ),
        "nothing": (
            "g (int64[1] x) => (int64[0] v) <int64[1] k = {0}> { v, i = TopK(x, k) }",
            "the number of elements is not 1",
        ),
        "a symbol": (
            "g (int64[a, 1] x) => (int64[a, 1] v, int64[a, 1] i) <int64[1] k = {1}>"
            "{ v, i = TopK<axis = 1>(x, k) }",
            "a shape is not static",
        ),
    },
    "ReduceArgTopK": {
        "alone": ("g (int64[3] x) => (int64[1] y) { y = ArgMax(x) }", "no reduction of the same"),
        "ReduceMin beside ArgMax": (_MAX.replace("ReduceMax", "ReduceMin"), "no reduction of the"),
        "another axis": (_MAX.replace("{0}", "{1}"), "another axis"),
        "another keepdims": (
            _MAX.replace("ArgMax <", "ArgMax <keepdims = 0, ").replace("[p, q] i", "[q] i"),
            "another keepdims",
        ),
        "all the axes": (_MAX.replace("(x, a)", "(x)"), "another axis"),
        "the last of equal values": (
            _MAX.replace("ArgMax <", "ArgMax <select_last_index = 1, "),
            "the last of equal values",
        ),
        "a dimension that may be null": (_MAX.replace("[3, b]", "[c, b]"), "may be null"),
        "floats": (
            _MAX.replace("int64[3, b] x", "float[3, b] x").replace(
                "int64[p, q] v", "float[p, q] v"
            ),
            "not int32 nor int64",
        ),
    },
    "ReduceSumNormalize": {
        "a mask": (
            _SUM.replace("Cast <to = 1> (x)", "Cast <to = 1> (w)")
            .replace("c = Cast", "e = Cast <to = 9> (x) w = Where(e, x, low) c = Cast")
            .replace("> {", ", float16 low = {64511}> {", 1),
            "infinities, or huge numbers",
        ),
        "narrowed": (
            _SUM.replace("float16[", "double[").replace("to = 10", "to = 11"),
            "x is not widened",
        ),
        "another type after": (
            _SUM.replace("to = 10", "to = 11").replace("float16[a, b] y", "double[a, b] y"),
            "is not the type before",
        ),
        "bfloat16 before opset 13": (
            _SUM.replace("float16", "bfloat16")
            .replace("to = 10", "to = 16")
            .replace("(c, l)", "(c)")
            .replace("keepdims", "axes = [-1], keepdims"),
            "the operator does not know bfloat16",
            {"opset": 12},
        ),
        "the sum is an output": (
            _SUM.replace("] y", "] y, float[a, c] s", 1),
            "used elsewhere",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_select_last_index_of_the_reduction_is_not_read() -> None:
    """The attribute belongs to ArgMax: refused there, whatever the node beside is."""
    check_no_match(
        _MAX.replace("ArgMax <", "ArgMax <select_last_index = 1, "), "ReduceArgTopK", "the last"
    )


def test_floats_when_asked() -> None:
    """Ties and infinities are the same; only NaN differ from one runtime to another."""
    text = _MAX.replace("int64[3, b] x", "float[3, b] x").replace("int64[p, q] v", "float[p, q] v")
    x = np.array([[1, -np.inf, 2, 0], [1, np.inf, 2, -0.0], [0, np.inf, 3, 0]], np.float32)
    result = check_pattern(text, None, "ReduceArgTopK(floats=True)", feeds=[{"x": x}])
    assert [n.op_type for n in result.graph.node] == ["TopK"]


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(("Max", "Min")),
    st.integers(-3, 2),
    st.booleans(),
    st.sampled_from(((2, 3, 1), (1, 4, 2), (3, 1, 0))),
)
def test_ties_and_empty(name: str, axis: int, keeps: bool, shape: tuple[int, ...]) -> None:
    """Equal values, dimensions 0 and 1, negative axes."""
    if 0 in shape:  # onnxruntime keeps the dimension of an empty tensor, whatever keepdims says
        axis, keeps = 0, True
    x = np.resize(np.array([2, 1, 2, 2, 1]), shape).astype(np.int32)
    dims = [str(d) if i == axis % 3 else f"d{i}" for i, d in enumerate(shape)]
    out = "[p, q, r]" if keeps else "[p, q]"
    text = f"""g (int32[{", ".join(dims)}] x) => (int32{out} v, int64{out} i) <int64[1] a = {{{axis}}}> {{
        v = Reduce{name} <keepdims = {int(keeps)}> (x, a)
        i = Arg{name} <axis = {axis}, keepdims = {int(keeps)}> (x)
    }}"""
    check_pattern(text, None, "ReduceArgTopK", feeds=[{"x": x}])


# -- the largest errors that the docstrings tell, measured


@pytest.mark.parametrize("kind", HALVES)
def test_reduce_sum_normalize(kind: str) -> None:
    text = f"""g ({kind}[a, 50] x, {kind}[a, 1] z) => ({kind}[a, 50] y) <int64[1] l = {{-1}}> {{
        c = Cast<to = 1>(x) s = ReduceSum<keepdims = 1>(c, l) f = Cast<to = 1>(z)
        m = Mul(f, s) d = Sub(c, m) y = Cast<to = {TYPES[kind]}>(d) }}"""
    x = numbers(kind, 0, -2, 0).reshape(-1, 50)
    z = numbers(kind, 1, -1, 0)[: len(x)].reshape(-1, 1)
    error, _ = difference(text, "ReduceSumNormalize", {"x": x, "z": z})
    wide = np.abs(x.astype(np.float64))
    total = wide.sum(axis=1, keepdims=True) * np.abs(z.astype(np.float64))
    assert (error <= 53 * 5e-4 * HALVES[kind] * (wide + total)).all()
