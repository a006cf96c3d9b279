"""Tests of xoptim.patterns.shaping.range."""

from __future__ import annotations

import numpy as np

from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)


def positions(body: str, after: str = "", scalars: bool = True) -> str:
    """Lengths of a sequence and of what comes before it, their sum."""
    lengths = "s = Squeeze(n, axis) p = Squeeze(q, axis) t = Add(p, s)"
    if not scalars:
        lengths = "m = Add(n, q) t = Squeeze(m, axis)"
    return f"""agraph (float[past, 2] C, float[seq, 2] X) => (int64[seq] Y, int64[total] Z{after})
    <int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64[1] axis = {{0}}>
    {{ n = Shape<start = 0, end = 1>(X) q = Shape<start = 0, end = 1>(C) {lengths}
      Z = Range(zero, t, one) {body} }}"""


MODELS = {
    "RangeScalar": (
        """agraph (int64[1] N) => (int64[n] Y) <int64 zero = {0}, int64[1] one = {1}>
        { Y = Range(zero, N, one) }""",
        """agraph (int64[1] N) => (int64[n] Y) <int64 zero = {0}, int64[1] one = {1}, int64[1] axis = {0}>
        { L = Squeeze(N, axis)
          D = Squeeze(one, axis)
          Y = Range(zero, L, D) }""",
    ),
    "SwapRangeAddScalar": (
        """agraph (float[n, 2] X) => (int64[m] Y)
        <int64 one = {1}, int64 two = {2}, int64[1] c = {5}, int64[1] axis = {0}>
        { s = Shape<start = 0, end = 1>(X) N = Squeeze(s, axis) R = Range(two, N, one)
          Y = Add(R, c) }""",
        """agraph (float[n, 2] X) => (int64[m] Y)
        <int64 one = {1}, int64 seven = {7}, int64 c = {5}, int64[1] axis = {0}>
        { s = Shape<start = 0, end = 1>(X) N = Squeeze(s, axis) L = Add(N, c)
          Y = Range(seven, L, one) }""",
    ),
    "RangeFromStart": (
        positions("r = Range(zero, s, one) Y = Add(r, p)"),
        positions("Y = Range(p, t, one)"),
    ),
}


def test_range_scalar() -> None:
    before, after = MODELS["RangeScalar"]
    feeds = [{"N": np.array([n], dtype=np.int64)} for n in (3, 5)]
    # onnxruntime refuses the model before the rewrite, that is what it is for
    check_pattern(before, after, "RangeScalar", feeds=feeds, runtime=False)


def test_range_scalar_opset_11_writes_attributes() -> None:
    before, _ = MODELS["RangeScalar"]
    model, _, _ = optimize_with(model_from_text(before, opset=11), "RangeScalar")
    types = [(n.op_type, len(n.input)) for n in model.graph.node]
    assert types == [("Squeeze", 1), ("Squeeze", 1), ("Range", 3)]


def test_range_scalar_refuses() -> None:
    text = """agraph (int64 N) => (int64[n] Y) <int64 zero = {0}, int64 one = {1}>
    { Y = Range(zero, N, one) }"""
    check_no_match(text, "RangeScalar", "no bound")
    text = text.replace("(int64 N)", "(int64[k] N)")
    check_no_match(text, "RangeScalar", "no bound")


def test_swap_range_add_scalar() -> None:
    """Any number of elements, none included."""
    before, after = MODELS["SwapRangeAddScalar"]
    check_pattern(before, after, "SwapRangeAddScalar", sizes=[{"n": n} for n in (0, 2, 3, 9)])
    known = """agraph (int64[k] X) => (int64[k] Y)
        <int64 two = {2}, int64 ten = {10}, int64 c = {-5}, int64 d = {-1}>
        { R = Range(ten, two, d) A = Add(c, R) Y = Add(A, X) }"""
    written = """agraph (int64[k] X) => (int64[k] Y)
        <int64 five = {5}, int64 low = {-3}, int64 d = {-1}>
        { A = Range(five, low, d) Y = Add(A, X) }"""
    check_pattern(known, written, "SwapRangeAddScalar", sizes={"k": 8})


def test_swap_range_add_scalar_refuses() -> None:
    before = MODELS["SwapRangeAddScalar"][0]
    cases = {
        "the type is not int64": before.replace("int64[m]", "float[m]")
        .replace("R = Range(two, N, one)", "f = Cast<to = 1>(N) R = Range(t, f, o)")
        .replace("<int64 one", "<float t = {2}, float o = {1}, int64 one")
        .replace("int64[1] c", "float[1] c"),
        "is not the only use": before.replace("Add(R, c)", "Sub(R, c)"),
        "is not a scalar constant": before.replace("[1] c = {5}", "[2] c = {5, 6}"),
        "a sum may overflow": before.replace("{5}", "{9000000000000000000}"),
        "neither a constant nor a dimension": before.replace(
            "float[n, 2] X", "float[n, 2] X, int64 N"
        ).replace("N = Squeeze(s, axis)", "u = Squeeze(s, axis)"),
    }
    for reason, text in cases.items():
        check_no_match(text, "SwapRangeAddScalar", reason)
    last = before.replace("R = Range(two, N, one)", "R = Range(two, l, l)").replace(
        "<int64 one", "<int64 l = {9000000000000000000}, int64 one"
    )
    check_no_match(last, "SwapRangeAddScalar", "a sum may overflow")
    twice = before.replace("(int64[m] Y)", "(int64[m] Y, int64[m] R)")
    check_no_match(twice, "SwapRangeAddScalar", "is not the only use")


COUNT = "r = Range(zero, s, one) "
SQUEEZED = "s = Squeeze(n, axis) " + COUNT
SIZES = [{"past": p, "seq": s} for p, s in ((0, 3), (4, 1), (5, 0), (0, 0))]
test_range_from_start = rewrite_tests(
    {
        "RangeFromStart": {
            "numbers": MODELS["RangeFromStart"],
            "the other order": (
                positions(COUNT + "Y = Add(p, r)"),
                MODELS["RangeFromStart"][1],
            ),
            "one dimension": (
                positions(SQUEEZED + "Y = Add(r, q)", scalars=False),
                positions("p = Squeeze(q, axis) Y = Range(p, t, one)", scalars=False),
            ),
            "one dimension, squeezed already": (
                positions(
                    SQUEEZED + "Y = Add(r, q) p = Squeeze(q, axis) W = Mul(p, s)",
                    ", int64 W",
                    scalars=False,
                ),
                positions(
                    "p = Squeeze(q, axis) Y = Range(p, t, one) s = Squeeze(n, axis) W = Mul(p, s)",
                    ", int64 W",
                    scalars=False,
                ),
            ),
        }
    },
    sizes=SIZES,
)
test_range_from_start_refuses = refusal_tests(
    {
        "RangeFromStart": {
            "floats": (
                """g (float n, float p) => (float[m] y, float t) <float i = {0}, float o = {1}>
                { t = Add(p, n) r = Range(i, n, o) y = Add(r, p) }""",
                "the type is not int64",
            ),
            "it counts from one": (
                positions("r = Range(one, s, one) Y = Add(r, p)"),
                "cannot be the constant 0",
            ),
            "two by two": (
                positions("r = Range(zero, s, two) Y = Add(r, p)"),
                "cannot be the constant 1",
            ),
            "the first positions are needed": (
                positions(COUNT + "Y = Add(r, p)", ", int64[seq] r"),
                "Range is used elsewhere",
            ),
            "an input is added": (
                positions(COUNT + "Y = Add(r, i)").replace("(float[past", "(int64 i, float[past"),
                "not known to be dimensions",
            ),
            "a negative number is added": (
                positions(COUNT + "Y = Add(r, i)").replace(
                    "<int64 zero", "<int64 i = {-2}, int64 zero"
                ),
                "not known to be dimensions",
            ),
            "a large number is added": (
                positions(COUNT + "Y = Add(r, i)").replace(
                    "<int64 zero", "<int64 i = {9000000000000000000}, int64 zero"
                ),
                "not known to be dimensions",
            ),
            "the sum is not there": (
                positions(COUNT + "Y = Add(r, p)").replace("Add(p, s)", "Mul(p, s)"),
                "is not computed already",
            ),
            "the sum of another limit": (
                positions(COUNT + "Y = Add(r, p)").replace("Add(p, s)", "Add(p, two)"),
                "is not computed already",
            ),
            "as many nodes": (
                positions(SQUEEZED + "Y = Add(r, q)", ", int64 s", scalars=False),
                "no node goes away",
            ),
        }
    }
)
