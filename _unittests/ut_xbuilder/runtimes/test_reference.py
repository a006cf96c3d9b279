"""The reference evaluator of onnx, with the kernels it has wrong."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest

from xbuilder.runtimes.reference import reference_evaluator
from xbuilder.runtimes.sessions import plain_session

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'


@pytest.mark.parametrize(
    "attributes", ["size = 3", "size = 7, alpha = 2.0, beta = 0.6, bias = 3.0"]
)
@pytest.mark.parametrize("shape", [(1, 5, 2, 3), (3, 1, 1, 2), (2, 9, 1, 1), (0, 3, 2, 2)])
def test_lrn_is_that_of_onnxruntime(attributes, shape):
    """As many channels as images, more, fewer, none."""
    dims = ", ".join("nchw")
    model = onnx.parser.parse_model(
        f"{HEAD} g (float[{dims}] x) => (float[{dims}] y) {{ y = LRN <{attributes}> (x) }}"
    )
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    (got,) = reference_evaluator(model).run(None, {"x": x})
    (expected,) = plain_session(model.SerializeToString()).run(None, {"x": x})
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_lrn_of_an_even_length_in_a_body():
    """One channel more after than before, the specification says; onnxruntime refuses it."""
    model = onnx.parser.parse_model(
        f"{HEAD} g (bool b, double[1, c, 1, 1] x) => (double[1, c, 1, 1] y) {{ y = If(b) <"
        "then_branch = t () => (double[1, c, 1, 1] u) { u = LRN <size = 4, alpha = 4.0> (x) },"
        "else_branch = e () => (double[1, c, 1, 1] v) { v = Identity(x) }> }"
    )
    x = np.arange(1.0, 5.0).reshape((1, 4, 1, 1))
    (got,) = reference_evaluator(model).run(None, {"b": np.array(True), "x": x})
    sums = np.array([14.0, 30.0, 29.0, 25.0]).reshape(x.shape)
    np.testing.assert_allclose(got, x / (1 + sums) ** 0.75)


@pytest.mark.parametrize("opset", [7, 9, 13, 14, 15])
def test_batch_normalization(opset: int) -> None:
    """The mean and the variance that are given, as onnxruntime does."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]>'
        "g (float[n, 3, k] x, float[3] s, float[3] b, float[3] m, float[3] v)"
        " => (float[n, 3, k] y) { y = BatchNormalization<epsilon = 0.1>(x, s, b, m, v) }"
    )
    rng = np.random.default_rng(0)
    feeds = {n: rng.random(3).astype(np.float32) for n in "sbmv"}
    feeds["x"] = rng.random((2, 3, 4)).astype(np.float32)
    (got,) = reference_evaluator(model).run(None, feeds)
    (expected,) = plain_session(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("op_type", ["Erf", "Gelu"])
def test_digits_of_double(op_type: str) -> None:
    """The function that defines Gelu calls Erf."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 20]>'
        f"g (double[n] x) => (double[n] y) {{ y = {op_type}(x) }}"
    )
    x = np.array([-1.5, 0.03, 0.0, 2.0])
    erf = [math.erf(v) for v in (x if op_type == "Erf" else x / math.sqrt(2))]
    expected = erf if op_type == "Erf" else x / 2 * (1 + np.array(erf))
    (got,) = reference_evaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(got, expected, rtol=1e-14)
