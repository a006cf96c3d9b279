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
