"""Powers of integers."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

X = torch.tensor([[3, -3, 2, 1, -1, 0, 7], [10, 5, -2, 1, -1, 9, 0]])
Y = torch.tensor([39, 41, 62, -3, -3, 0, 100])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8])
def test_tensors(dtype: torch.dtype) -> None:
    """They are exact above 2^53 and wrap, a negative power of most numbers is 0."""
    x, y = X.to(dtype), Y.to(dtype)
    others = [(x[:1], y), (x[:0], y)]
    onx = check_export(torch.pow, (x, y), ({0: "a"}, None), others, atol=0)
    assert "Pow" not in op_types(onx)
    check_export(torch.pow, (x[0, 0], y[0]), atol=0)


def test_negative_powers() -> None:
    x = torch.tensor([1, -1, 2, -2, 10])
    for y in (torch.tensor(-1), torch.tensor(-2), torch.arange(-5, 0)):
        check_export(torch.pow, (x, y), atol=0)


@pytest.mark.parametrize("base", [2, 3, -7, 1, 0])
def test_numbers(base: int) -> None:
    check_export(lambda y: base**y, (torch.tensor([0, 1, 5, 39, 63, 64, 1000]),), atol=0)
    check_export(lambda y: base ** y[:0], (torch.tensor([0, 1]),), atol=0)
    check_export(lambda x: x**0, (X,), atol=0)


def test_types() -> None:
    check_export(torch.pow, (X.to(torch.int32), Y.abs()), atol=0)
    check_export(torch.pow, (X > 0, Y.abs()), atol=0)
    check_export(torch.pow, (X.abs().to(torch.uint8), Y.abs().to(torch.uint8)), atol=0)
