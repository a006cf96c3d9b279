"""Definitions of operators that onnxruntime has no kernel for in double."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto

from xoptim.patterns_ort.lowering.definitions import DEFINED, definitions
from xoptim.testing import (
    check_no_match,
    model_from_text,
    optimize_with,
    run_onnxruntime,
    run_reference,
)

ELEMENTWISE = {
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Cosh": np.cosh,
    "Erf": np.vectorize(math.erf),
    "Gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x * math.sqrt(0.5))),
    "Sinh": np.sinh,
    "Tan": np.tan,
}
#: operator -> a graph
OTHERS = {
    "GlobalAveragePool": "g (double[a, 2, b, c] x) => (double[a, 2, 1, 1] y) { y = GlobalAveragePool(x) }",
    "GlobalMaxPool": "g (double[a, 2, b, c] x) => (double[a, 2, 1, 1] y) { y = GlobalMaxPool(x) }",
    "Hardmax": "g (double[a, 2, b, c] x) => (double[a, 2, b, c] y) { y = Hardmax<axis = 1>(x) }",
    "InstanceNormalization": """g (double[a, 2, b, c] x) => (double[a, 2, b, c] y)
        <double[2] s = {2, 3}, double[2] b = {0.5, -0.5}> {
        y = InstanceNormalization<epsilon = 0.01>(x, s, b) }""",
    "Mean": "g (double[a, 2, b, c] x) => (double[a, 2, b, c] y) { z = Neg(x) y = Mean(x, x, z) }",
    "OneHot": """g (double[a, 2, b, c] x) => (double[a, d, 2, b, c] y)
        <int64 d = {4}, double[2] v = {0.1, -1e300}> {
        i = Cast<to = 7>(x) y = OneHot<axis = 1>(i, d, v) }""",
    "NonZero": "g (double[a, 2, b, c] x) => (int64[4, n] y) { y = NonZero(x) }",
}  # fmt: skip


def test_every_definition_is_tested() -> None:
    assert {*ELEMENTWISE, *OTHERS} == DEFINED


def numbers() -> np.ndarray:
    """Numbers of all magnitudes, and special ones."""
    rng = np.random.default_rng(0)
    special = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 710.2, 1e308, 1e-310, 1e9, 6, 1 - 1e-12]
    magnitudes = 10.0 ** rng.uniform(-300, 300, 200) * rng.choice([-1, 1], 200)
    usual = [rng.uniform(-b, b, 200) for b in (1, 10, 700)]
    return np.concatenate([magnitudes, *usual, special])


@pytest.mark.parametrize("opset", [13, 20, 28])
@pytest.mark.parametrize("op_type", ELEMENTWISE)
def test_digits(op_type: str, opset: int) -> None:
    """Those of double, float gives 7 of them: the angles of Tan are 3e3 units in the last place
    away from a pole."""
    if not onnx.defs.has(op_type, opset):
        pytest.skip("the operator came later")
    text = f"g (double[n] x) => (double[n] y) {{ y = {op_type}(x) }}"
    found, _, _ = optimize_with(model_from_text(text, opset), "default+onnxruntime")
    x = numbers()
    (got,) = run_onnxruntime(found, {"x": x})
    with np.errstate(all="ignore"):
        expected = ELEMENTWISE[op_type](x)
    rtol = 1e-11 if op_type == "Tan" else 4e-15
    # both Gelu subtract numbers that are close
    atol = 1e-14 if op_type == "Gelu" else 0
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("opset", [18, 28])
@pytest.mark.parametrize("op_type", OTHERS)
def test_as_the_reference(op_type: str, opset: int) -> None:
    """Usual sizes, and none."""
    model = model_from_text(OTHERS[op_type], opset)
    found, _, _ = optimize_with(model, "default+onnxruntime")
    x = np.random.default_rng(0).integers(-3, 4, (3, 2, 4, 5)).astype(np.float64)
    x += np.arange(2).reshape((2, 1, 1)) / 4
    # the reference divides by the number of images
    nothing = [] if op_type == "GlobalAveragePool" else [x[:0]]
    for given in (x, x[:1, :, :1, :1], *nothing):
        (got,), (expected,) = (
            run_onnxruntime(found, {"x": given}),
            run_reference(model, {"x": given}),
        )
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize(
    "kinds",
    [
        ("int64", "int64", "double"),
        ("int64", "int64", "bool"),
        ("int64", "int64", "uint16"),
        ("int64", "int64", "bfloat16"),
        ("int8", "int64", "float"),
        ("float", "int64", "int8"),
        ("uint8", "int32", "string"),
        ("int32", "int16", "float16"),
    ],
)
def test_one_hot(kinds: tuple[str, str, str], axis: int) -> None:
    """In types without kernel: the positions out of bounds have the first value everywhere."""
    i, d, v = kinds
    text = (
        f"g ({i}[n] i, {d} d, {v}[2] v) => ({v}[n, m] y) {{ y = OneHot<axis = {axis}>(i, d, v) }}"
    )
    found, _, _ = optimize_with(model_from_text(text), "default+onnxruntime")
    numbers = [oh.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(k.upper())) for k in kinds]
    values = np.array(["a", "b"] if v == "string" else [0, 1]).astype(numbers[2])
    last = 250 if i == "uint8" else -4
    feeds = {"i": np.array([0, 2, 1, 3, last]).astype(numbers[0]), "v": values}
    (got,) = run_onnxruntime(found, {**feeds, "d": np.array(3, numbers[1])})
    expected = np.full((5, 3), values[0])
    expected[[0, 1, 2], [0, 2, 1]] = values[1]
    np.testing.assert_array_equal(got, expected if axis else expected.T)


def test_of_other_definitions() -> None:
    """Gelu calls Erf, Swish has a function."""
    text = "g (double[n] x) => (double[n] y) { e = Gelu(x) y = Swish(e) }"
    found, _, _ = optimize_with(model_from_text(text, 28), "default+onnxruntime")
    x = np.linspace(-4, 4, 33)
    gelu = x * 0.5 * (1 + ELEMENTWISE["Erf"](x / math.sqrt(2)))
    (got,) = run_onnxruntime(found, {"x": x})
    np.testing.assert_allclose(got, gelu / (1 + np.exp(-gelu)), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("op_type", "kind", "opset"),
    [("Sinh", TensorProto.FLOAT, 28), ("Sinh", TensorProto.DOUBLE, 12), ("Conv", 11, 28)],
)
def test_no_definition(op_type: str, kind: int, opset: int) -> None:
    node = oh.make_node(op_type, ["x", "w"][: 1 + (op_type == "Conv")], ["y"])
    assert definitions(node, opset, [kind] * len(node.input)) == []


def test_refused() -> None:
    text = "g (double[a, 3, 3] x) => (double[a] y) { y = Det(x) }"
    check_no_match(text, "MissingType", "no kernel for a wider type", opset=22)
