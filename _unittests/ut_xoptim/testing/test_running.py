"""Inputs, outputs, and what makes two outputs equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from xoptim.testing import (
    PatternTestError,
    assert_same_outputs,
    compare_models,
    make_feeds,
    model_from_text,
    random_array,
)

BEFORE = "agraph (float[a, b] X) => (float[a, b] Y) { n = Neg(X) m = Neg(n) Y = Abs(m) }"
AFTER = "agraph (float[a, b] X) => (float[a, b] Y) { Y = Abs(X) }"


@pytest.mark.parametrize(
    "elem_type", ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT64", "UINT8", "BOOL", "STRING"]
)
def test_random_array(elem_type: str) -> None:
    kind = onnx.TensorProto.DataType.Value(elem_type)
    array = random_array(kind, (2, 3), np.random.default_rng(0))
    assert array.shape == (2, 3)
    assert elem_type == "STRING" or oh.np_dtype_to_tensor_dtype(array.dtype) == kind


def test_make_feeds() -> None:
    text = """agraph (float[a, b] X, int64[a] I, bool C, float[2] K) => (float[a, b] Y)
        <float[2] K = {1, 2}> {
        Y = Neg(X) }"""
    feeds = make_feeds(model_from_text(text), {"a": 3, "b": 5})
    assert {n: v.shape for n, v in feeds.items()} == {"X": (3, 5), "I": (3,), "C": ()}
    other = make_feeds(model_from_text(text), {"a": 3, "b": 5}, seed=1)
    assert not np.array_equal(feeds["X"], other["X"])


A = np.array([1.0, np.nan], dtype=np.float32)


@pytest.mark.parametrize(
    ("a", "b", "atol", "same"),
    [
        ([A], [A.copy()], 0, True),
        ([A], [A + np.float32(1e-3)], 0, False),
        ([A], [A + np.float32(1e-3)], 1e-2, True),
        ([A], [A.astype(np.float64)], 1, False),
        ([A], [A[None]], 1, False),
        ([A], [], 1, False),
        ([np.array([1.0, 0])], [np.array([1.0, np.nan])], 1, False),
        ([np.array([1, 2])], [np.array([1, 3])], 10, False),
        ([np.array(["a"])], [np.array(["a"])], 0, True),
        ([np.array(["a"])], [np.array(["b"])], 0, False),
        ([np.array([1j])], [np.array([1j])], 0, True),
        ([np.array([1j])], [np.array([2j])], 0, False),
        ([[A, A]], [[A, A]], 0, True),
        ([[A, A]], [[A]], 0, False),
    ],
)
def test_same_outputs(a: list[Any], b: list[Any], atol: float, same: bool) -> None:
    if same:
        assert_same_outputs(a, b, atol, 0, "here")
        return
    with pytest.raises(PatternTestError, match="here"):
        assert_same_outputs(a, b, atol, 0, "here")


def test_compare_models() -> None:
    a, b = (model_from_text(t) for t in (BEFORE, AFTER))
    feeds = [make_feeds(a, {"a": 2, "b": 3})]
    compare_models(a, b, feeds)
    wrong = model_from_text(AFTER.replace("Abs", "Neg"))
    with pytest.raises(
        PatternTestError, match="output 0: values differ, atol=0 and rtol=0 are allowed"
    ):
        compare_models(a, wrong, feeds)
    with pytest.raises(PatternTestError, match="reference, output 0: values differ"):
        compare_models(a, wrong, feeds, runtime=False)
