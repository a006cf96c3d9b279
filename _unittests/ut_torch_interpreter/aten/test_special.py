"""Special functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export, run_ort

from torch_interpreter import ConversionError, to_onnx

INF = float("inf")
# zeros of lgamma, poles, what is close to both, large numbers
X = torch.cat(
    [
        torch.linspace(-6.3, 8.2, 57),
        torch.tensor([1.0, 2.0, 1.0001, 1.9999, 0.5, 1e-7, -1e-7, 35.0, 1e4, 1e10, -20.25, 1e-30]),
    ]
).reshape(3, 23)
POLES = torch.tensor([0.0, -0.0, -1.0, -2.0, INF, -INF, float("nan")])
FUNCTIONS = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "polygamma": lambda x: torch.polygamma(0, x),
    "multigammaln": lambda x: torch.special.multigammaln(x.abs() + 2, 3),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_gamma(name: str) -> None:
    check_export(FUNCTIONS[name], (X,), ({0: "a"},), [(X[:1],), (X[:0],)], atol=2e-5)
    check_export(FUNCTIONS[name], (X[0, 0],), atol=2e-5)


def test_trigamma() -> None:
    """torch stops its series earlier: it is known up to 5e-10, less near the poles."""
    fct = Fct1(lambda x: torch.polygamma(1, x))
    check_export(fct, (X[X > 0.01],), ({0: "a"},), [(X[0, :0],)], atol=2e-5)
    check_export(fct, (X.double()[(X > 0.01) | (X < -6)],), atol=2e-4)
    check_export(fct, (torch.arange(1, 9),), atol=1e-5)
    onx = to_onnx(fct, (X.double(),))
    pairs = [(1.0, math.pi**2 / 6), (0.5, math.pi**2 / 2), (-0.5, math.pi**2 / 2 + 4)]
    x, expected = torch.tensor(pairs, dtype=torch.float64).T
    got = run_ort(onx, [x[:, None].expand(3, 23)])[0][:, 0]
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-14)


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_gamma_of_doubles(name: str) -> None:
    """torch itself loses digits close to the poles."""
    x = X.double()
    check_export(FUNCTIONS[name], (x[x > 0.1],), atol=1e-12)
    check_export(FUNCTIONS[name], (x[x < 0],), atol=1e-6)


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_poles(name: str) -> None:
    check_export(FUNCTIONS[name], (POLES,))
    check_export(FUNCTIONS[name], (POLES.double(),))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.float16])
def test_types_of_gamma(dtype: torch.dtype) -> None:
    x = torch.arange(1, 9).to(dtype)
    check_export(torch.lgamma, (x,), atol=1e-3)
    check_export(torch.digamma, (x,), atol=1e-3)


def test_orders_without_formula() -> None:
    with pytest.raises(ConversionError, match="polygamma of order 2"):
        to_onnx(Fct1(lambda x: torch.polygamma(2, x)), (X,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_frexp(dtype: torch.dtype) -> None:
    values = [0.0, -0.0, INF, -INF, float("nan"), 3.5, -0.5, 1.0, 2.0**-14, 1023.9, 1024.0, -7.0]
    x = torch.tensor([values, [v * 0.99 for v in values]], dtype=dtype)
    check_export(lambda x: tuple(torch.frexp(x)), (x,), ({0: "a"},), [(x[:0],)], atol=0)


def test_frexp_of_all_exponents() -> None:
    powers = torch.tensor([2.0**i for i in range(-149, 128)])
    below = torch.nextafter(powers, torch.zeros(()))
    check_export(lambda x: tuple(torch.frexp(x)), (torch.stack([powers, below]),), atol=0)


def test_frexp_of_doubles() -> None:
    with pytest.raises(ConversionError, match="64 bits"):
        to_onnx(Fct1(lambda x: torch.frexp(x)[0]), (X.double(),))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
@pytest.mark.parametrize("fct", [torch.gcd, torch.lcm])
def test_divisors(fct, dtype: torch.dtype) -> None:
    x = torch.tensor([[0, 12, 18, 5], [0, 7, 34, 89]]).to(dtype)
    y = torch.tensor([0, 18, 0, 55]).to(dtype)
    check_export(fct, (x, y), ({0: "a"}, None), [(x[:1], y), (x[:0], y)], atol=0)
    check_export(fct, (x[0, 1], y[1]), atol=0)


def test_divisors_of_negative_and_large_numbers() -> None:
    x = torch.tensor([-12, 18, -7, 2**62, 7540113804746346429])
    y = torch.tensor([18, -12, -7, 2**40 * 3, 4660046610375530309])
    check_export(torch.gcd, (x, y), atol=0)
