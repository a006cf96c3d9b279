"""Matrices that are made, turned or moved in one kernel."""

from __future__ import annotations

import operator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns_cuda.cuda_ops import (
    check,
    check_refused,
    cuda_refusal_tests,
    cuda_rewrite_tests,
    only_on_cuda_test,
    spelled,
)

T = "g (float[n] x) => (float[p, q] y)"
C = (
    "<int64 zero = {0}, int64 one = {1}, int64[1] axis = {1}, float a = {2}, float b = {-3},"
    "int64[2] column = {-1, 1}, int64[1] first = {0}, float[2] two = {2, 3}>"
)
SIZE = "d = Shape(x) n = Squeeze(d, first) r = Range(zero, n, one)"
SQUARE = "d = Shape(x) n = Squeeze(d, first) u = Unsqueeze(n, first) s = Concat <axis = 0> (u, u)"


def _tri(condition: str) -> str:
    return f"{T} {C} {{ {SIZE} {condition} y = Where(k, a, b) }}"


def _made(low: float, diagonal: float, high: float) -> str:
    values = f"float[3] v = {{{low}, {diagonal}, {high}}}"
    return spelled(
        f"{T} <int64[1] first = {{0}}, {values}> {{ {SQUARE} y = cuda.TriMatrix(s, v) }}"
    )


COLUMN = "c = Unsqueeze(r, axis)"
SHIFTED = "s1 = Add(r, one) c = Reshape(s1, column)"
HALVES = "g (float[a, 6] x) => (float[a, 6] y)"
FP16 = "g (float[a, b] x) => (float16[b, a] y)"
FP32 = "g (float16[a, b] x) => (float[b, a] y)"
MODELS = {
    "TriMatrix": {
        "column + 1": (_tri(f"{SHIFTED} k = Less(r, c)"), _made(2, 2, -3)),
        "above": (_tri(f"{COLUMN} k = Less(r, c)"), _made(2, -3, -3)),
        "the column first": (_tri(f"{COLUMN} k = GreaterOrEqual(c, r)"), _made(2, 2, -3)),
        "LessOrEqual": (_tri(f"{COLUMN} k = LessOrEqual(c, r)"), _made(-3, 2, 2)),
        "row + 1": (_tri(f"{COLUMN} q1 = Add(one, r) k = Greater(q1, c)"), _made(-3, 2, 2)),
    },
    "SimpleRotary": {
        "right": (
            f"{HALVES} {{ a1, b1 = Split <axis = -1, num_outputs = 2> (x) n = Neg(b1)"
            "y = Concat <axis = -1> (n, a1) }",
            spelled(
                f'{HALVES} <int64[2] s = {{3, 3}}> {{ y = cuda.Rotary <side = "right"> (x, s) }}'
            ),
        ),
        "left": (
            f"{HALVES} <int64[2] s = {{3, 3}}> {{ a1, b1 = Split <axis = 1> (x, s) n = Neg(a1)"
            "y = Concat <axis = 1> (b1, n) }",
            spelled(
                f'{HALVES} <int64[2] s = {{3, 3}}> {{ y = cuda.Rotary <side = "left"> (x, s) }}'
            ),
        ),
    },
    "TransposeCast": {
        "float16": (
            f"{FP16} {{ t = Transpose(x) y = Cast <to = 10> (t) }}",
            spelled(f"{FP16} {{ y = cuda.Transpose2DCastFP16(x) }}"),
        ),
        "float": (
            f"{FP32} {{ t = Transpose <perm = [1, 0]> (x) y = Cast <to = 1> (t) }}",
            spelled(f"{FP32} {{ y = cuda.Transpose2DCastFP32(x) }}"),
        ),
        "Cast first": (
            f"{FP16} {{ t = Cast <to = 10> (x) y = Transpose(t) }}",
            spelled(f"{FP16} {{ y = cuda.Transpose2DCastFP16(x) }}"),
        ),
    },
}
_RIGHT = MODELS["SimpleRotary"]["right"][0]
_LESS = MODELS["TriMatrix"]["above"][0]
REFUSED = {
    "TriMatrix": {
        "two rows": (_tri("k = Less(r, r)"), "not one row and one column"),
        "two diagonals above": (
            _tri(f"t1 = Add(r, one) t2 = Add(t1, one) {COLUMN} k = Less(t2, c)"),
            "the limit is not the diagonal",
        ),
        "another start": (_LESS.replace("Range(zero", "Range(one"), "does not go from 0"),
        "another step": (
            _LESS.replace("zero = {0}, int64 one = {1}", "zero = {0}, int64 one = {2}"),
            "does not go from 0",
        ),
        "another limit": (
            _tri("m = Add(n, one) o = Range(zero, m, one) c = Unsqueeze(o, axis) k = Less(r, c)"),
            "does not go from 0",
        ),
        "several values": (
            _LESS.replace("Where(k, a, b)", "Where(k, a, two)").replace("[n] x", "[2] x"),
            "not scalar constants",
        ),
        "an added result": (
            _tri("t1 = Add(r, n) c = Unsqueeze(t1, axis) k = Less(r, c)"),
            "not a scalar constant",
        ),
        "any limit": (
            _LESS.replace("d = Shape(x) n = Squeeze(d, first)", "").replace(
                "(float[n] x)", "(int64 n)"
            ),
            "neither a constant nor a dimension",
        ),
        "no comparison": (_LESS.replace("k = Less(r, c)", "l = Less(r, c) k = Not(l)"), ""),
    },
    "SimpleRotary": {
        "uneven": (
            f"{HALVES} <int64[2] s = {{2, 4}}> {{ a1, b1 = Split <axis = 1> (x, s) n = Neg(b1)"
            "y = Concat <axis = 1> (n, a1) }",
            "the halves may not have the same size",
        ),
        "unknown halves": (
            _RIGHT.replace("[a, 6]", "[a, b]"),
            "the halves may not have the same size",
        ),
        "another axis": (
            _RIGHT.replace("axis = -1, num", "axis = 0, num"),
            "the axis is not the last one",
        ),
        "another axis of Concat": (
            _RIGHT.replace("Concat <axis = -1>", "Concat <axis = 0>").replace(
                "(float[a, 6] y)", "(float[c, 3] y)"
            ),
            "the axis is not the last one",
        ),
        "halves in their order": (_RIGHT.replace("(n, a1)", "(a1, n)"), "does not exchange"),
        "a half is used elsewhere": (
            _RIGHT.replace("6] y)", "6] y, float[a, 3] a1)"),
            "used elsewhere",
        ),
        "three": (
            _RIGHT.replace("a1, b1 =", "a1, b1, c1 =").replace(
                "num_outputs = 2", "num_outputs = 3"
            ),
            "not two halves",
        ),
    },
    "TransposeCast": {
        "no Cast": (f"{FP32} {{ y = Transpose(x) }}".replace("float[b", "float16[b"), "no Cast"),
        "three dimensions": (
            f"{FP16} {{ t = Transpose(x) y = Cast <to = 10> (t) }}".replace(
                "[a, b]", "[a, b, c]"
            ).replace("[b, a]", "[c, b, a]"),
            "not the transposition of a matrix",
        ),
        "double": (
            f"{FP16} {{ t = Transpose(x) y = Cast <to = 11> (t) }}".replace("float16", "double"),
            "the types are not float and float16",
        ),
        "the Cast is used elsewhere": (
            f"{FP16} {{ t = Cast <to = 10> (x) y = Transpose(t) }}".replace(
                "] y)", "] y, float16[a, b] t)"
            ),
            "used elsewhere",
        ),
    },
}


def _feeds(pattern: str, before: str, n: int) -> dict[str, np.ndarray]:
    shape = (n,) if pattern == "TriMatrix" else (n, 6)
    dtype = np.float16 if before.startswith("g (float16") else np.float32
    return {"x": np.random.default_rng(n).standard_normal(shape).astype(dtype)}


test_rewrites = cuda_rewrite_tests(
    MODELS, lambda pattern, name, before: [_feeds(pattern, before, n) for n in (4, 1, 0)]
)
test_refuses = cuda_refusal_tests(REFUSED)
test_only_on_cuda = only_on_cuda_test(MODELS)


def test_a_constant_limit() -> None:
    before = _LESS.replace("d = Shape(x) n = Squeeze(d, first)", "w = Neg(x)").replace(
        "Range(zero, n", "Range(zero, five"
    )
    check(
        before.replace("<int64 zero", "<int64 five = {5}, int64 zero"),
        None,
        "TriMatrix",
        [_feeds("TriMatrix", before, 2)],
    )


COMPARES = {
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
}


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(COMPARES)),
    st.integers(-1, 1),
    st.booleans(),
    st.booleans(),
    st.integers(0, 4),
)
def test_every_diagonal(op_type: str, shift: int, row: bool, column_first: bool, n: int) -> None:
    """It is right, or refused: the limit is one above or below the diagonal."""
    made = f"w1 = Add(r, t) c = Unsqueeze({'r' if row else 'w1'}, axis)"
    operands = ["c", "w1" if row else "r"][:: 1 if column_first else -1]
    text = _tri(f"{made} k = {op_type}({', '.join(operands)})")
    before = text.replace("<int64 zero", f"<int64 t = {{{shift}}}, int64 zero")
    pairs = [(0, d + shift) if row else (shift, d) for d in (-(2**40), -1, 0, 1, 2**40)]
    found = [COMPARES[op_type](*(p if column_first else p[::-1])) for p in pairs]
    if found[0] == found[1] and found[3] == found[4]:
        check(before, None, "TriMatrix", [_feeds("TriMatrix", before, n)])
    else:
        check_refused(before, "TriMatrix", "the limit is not the diagonal")
