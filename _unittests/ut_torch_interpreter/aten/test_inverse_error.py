"""The inverse of the error function."""

from __future__ import annotations

import math

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

#: from the centre to the last double below 1
POINTS = torch.cat(
    [
        torch.linspace(-1, 1, 201, dtype=torch.float64),
        1 - 10.0 ** -torch.arange(1, 16.0, dtype=torch.float64),
        10.0 ** -torch.arange(1, 300.0, 20, dtype=torch.float64),
    ]
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_erfinv(dtype):
    x = POINTS.to(dtype)
    check_export(torch.erfinv, (x,), atol=1e-14 if dtype == torch.float64 else 1e-6)
    x = x.reshape(-1, 3)
    check_export(torch.special.erfinv, (x,), ({0: "n"},), [(-x[:5],)])


def test_special_values():
    x = torch.tensor([-1.0, 1.0, -1.5, 1.0001, 0.0, -0.0, 1e-40, math.nan, math.inf, -math.inf])
    check_export(torch.erfinv, (x,))


def test_half():
    x = torch.linspace(-0.99, 0.99, 23).to(torch.float16)
    check_export(torch.erfinv, (x,), atol=1e-3)
    check_export(torch.erfinv, (torch.tensor([0, 1, -1, 2]),))
