"""The largest errors the docstrings of approximate rewrites tell, measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.helper as oh
import pytest

from xoptim.testing import model_from_text, optimize_with, run_onnxruntime, run_reference

#: number of elements
COUNT = 20000
#: element type -> factor of the errors told for float16
HALVES = {"float16": 1, "bfloat16": 8}
#: type -> error of one operation, doubled twice
SUB1MUL = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float": 2.0**-22, "double": 2.0**-51}
#: one, as the text of a model has it: bits of 16 bits
ONES = {"float16": 0x3C00, "bfloat16": 0x3F80, "float": 1, "double": 1}
OPERATORS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
TYPES = {"float": 1, "float16": 10, "double": 11, "bfloat16": 16}


def numbers(kind: str, seed: int, low: float = -3, high: float = 3) -> np.ndarray:
    """Numbers of any magnitude between powers of 10, of both signs."""
    rng = np.random.default_rng(seed)
    found = 10.0 ** rng.uniform(low, high, COUNT) * rng.choice([-1, 1], COUNT)
    return found.astype(oh.tensor_dtype_to_np_dtype(TYPES[kind]))


def difference(
    text: str, pattern: str, feeds: dict[str, np.ndarray], run: Callable = run_reference
) -> tuple[np.ndarray, np.ndarray]:
    """The differences between the results, and the expected ones, in double."""
    before = model_from_text(text, 18)
    after, rows, _ = optimize_with(before, pattern)
    assert sum(r.get("instances", 0) for r in rows), pattern
    expected, got = (run(model, feeds)[0].astype(np.float64) for model in (before, after))
    return np.abs(got - expected), np.abs(expected)


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_cast_cast_binary(op_type: str, kind: str) -> None:
    text = f"""g ({kind}[a] x, {kind}[a] k) => (float[a] y) {{
        l = Cast<to = 1>(x) r = Cast<to = 1>(k) y = {op_type}(l, r) }}"""
    feeds = {"x": numbers(kind, 0, -1, 2), "k": numbers(kind, 1, -1, 2)}
    error, value = difference(text, "CastCastBinary", feeds)
    normal = value > 6.1e-5
    assert (error <= 5e-4 * HALVES[kind] * value)[normal].all()


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_computation_cast_op_cast(op_type: str, kind: str) -> None:
    text = f"""g ({kind}[a] x, float[a] k) => (float[a] y) {{
        l = Cast<to = 1>(x) y = {op_type}(l, k) }}"""
    feeds = {"x": numbers(kind, 0, -1, 2), "k": numbers("float", 1, -1, 2)}
    error, value = difference(text, "ComputationCastOpCast", feeds)
    product = op_type in ("Mul", "Div")
    bound = 1e-3 * value if product else 5e-4 * (np.abs(feeds["k"]) + value)
    assert (error <= HALVES[kind] * bound)[value > 6.1e-5].all()


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_cast_op_cast_two_operands(op_type: str, kind: str) -> None:
    """The result is rounded once or twice, this is the same."""
    text = f"""g ({kind}[a] x, {kind}[a] k) => ({kind}[a] y) {{ l = Cast<to = 1>(x)
        r = Cast<to = 1>(k) n = {op_type}(l, r) y = Cast<to = {TYPES[kind]}>(n) }}"""
    feeds = {"x": numbers(kind, 0, -1, 2), "k": numbers(kind, 1, -1, 2)}
    error, _ = difference(text, "CastOpCast", feeds)
    assert error.max() == 0


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_cast_op_cast_constant(op_type: str, kind: str) -> None:
    constant = 1.00043
    text = f"""g ({kind}[a] x) => ({kind}[a] y) <float c = {{{constant}}}> {{
        l = Cast<to = 1>(x) n = {op_type}(l, c) y = Cast<to = {TYPES[kind]}>(n) }}"""
    error, value = difference(text, "CastOpCast", {"x": numbers(kind, 0)})
    product = op_type in ("Mul", "Div")
    bound = 1.5e-3 * value if product else 5e-4 * (constant + 2 * value)
    assert (error <= HALVES[kind] * bound)[value > 6.1e-5].all()


@pytest.mark.parametrize("op_type", ["Sigmoid", "Softmax"])
def test_cast_op_cast_function(op_type: str) -> None:
    text = f"""g (float16[a, 20] x) => (float16[a, 20] y) {{
        l = Cast<to = 1>(x) n = {op_type}(l) y = Cast<to = 10>(n) }}"""
    error, _ = difference(text, "CastOpCast", {"x": numbers("float16", 0, -3, 1).reshape(-1, 20)})
    assert error.max() <= 2e-3


@pytest.mark.parametrize("kind", SUB1MUL)
def test_sub1_mul(kind: str) -> None:
    text = f"""g ({kind}[a] x, {kind}[a] k) => ({kind}[a] y) <{kind} one = {{{ONES[kind]}}}> {{
        s = Sub(one, x) y = Mul(s, k) }}"""
    x, k = numbers(kind, 0, -1.5, 1.5), numbers(kind, 1, -1, 2)
    error, _ = difference(text, "Sub1Mul", {"x": x, "k": k})
    wide = np.abs(k.astype(np.float64))
    bound = SUB1MUL[kind] * (wide + wide * np.abs(x.astype(np.float64)))
    assert (error <= bound).all()


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


def test_fast_gelu() -> None:
    """The error is told with two digits, and where it is."""
    text = "g (float[a] x) => (float[a] y) { y = com.microsoft.Gelu(x) }"
    x = np.linspace(-12, 12, 240001).astype(np.float32)
    error, _ = difference(text, "FastGelu", {"x": x}, run_onnxruntime)
    assert 4.7e-4 < error.max() < 4.8e-4
    assert abs(abs(x[error.argmax()]) - 2.7) < 0.02
