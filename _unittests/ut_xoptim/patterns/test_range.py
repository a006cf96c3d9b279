"""Tests of xoptim.patterns.range."""

from __future__ import annotations

import numpy as np

from xoptim.testing import check_no_match, check_pattern, model_from_text, optimize_with

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
