"""Functions onnxruntime has no kernel for with 64 bits."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

INF = float("inf")
SPECIAL = [0.0, -0.0, INF, -INF, float("nan"), 1.0, -1.0, 1e-300, -1e-9, 1e200, -1e200, 1e-5]
WIDE = torch.cat(
    [torch.tensor(SPECIAL, dtype=torch.float64), torch.linspace(-30, 30, 108).double()]
)
NARROW = torch.cat([WIDE[:12], torch.linspace(-1, 1, 108).double(), WIDE[:12] + 0.5])
ABOVE = torch.cat([WIDE[:12], torch.linspace(0.9, 30, 96).double(), 1 + torch.rand(12).double()])
DOMAINS = {
    "acos": NARROW,
    "acosh": ABOVE,
    "asin": NARROW,
    "asinh": WIDE,
    "atan": WIDE,
    "atanh": NARROW,
    "cosh": WIDE,
    "sinh": WIDE,
    "tan": WIDE[WIDE.abs() < 100],
}


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_doubles(name: str) -> None:
    x = DOMAINS[name].reshape(-1, 4) if DOMAINS[name].numel() % 4 == 0 else DOMAINS[name][:, None]
    others = [(x[:1],), (x[:0],)]
    check_export(getattr(torch, name), (x,), ({0: "a"},), others, atol=2e-14)
    check_export(getattr(torch, name), (x[5, 0],), atol=2e-14)


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_small_numbers(name: str) -> None:
    """The relative error is small too."""
    x = torch.logspace(-12, -1, 50, dtype=torch.float64)
    fct, scale = getattr(torch, name), 1e12
    x = 1 + x if name == "acosh" else x
    check_export(lambda x: fct(x) * scale, (x,), atol=1e-13)


def test_the_operator_of_floats_stays() -> None:
    onx = check_export(torch.atan, (torch.linspace(-3, 3, 9),))
    assert op_types(onx) == ["Atan"]


def test_atan2() -> None:
    values = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-300, 3e200, INF, -INF], dtype=torch.float64)
    pairs = torch.cartesian_prod(values, values)
    check_export(torch.atan2, (pairs[:, 0], pairs[:, 1]), atol=1e-15)


def test_large_arguments() -> None:
    """The result is finite, a factor of it would not be."""
    x = torch.tensor([709.9, 710.4, -710.4, 711.0], dtype=torch.float64)
    check_export(lambda x: (torch.cosh(x), torch.sinh(x)), (x,), atol=1e-12)
