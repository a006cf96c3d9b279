"""Householder's reflectors, as LAPACK stores them."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

torch.manual_seed(0)
MATRICES = [
    torch.randn(4, 4),
    torch.randn(2, 5, 3),
    torch.randn(3, 5),
    torch.ones(1, 1),
    torch.tensor([[0.0, 1.0], [0.0, 2.0]]),
    torch.tensor([[-1.0, 3.0], [2.0, -4.0], [0.0, 0.0]]),
]


@pytest.mark.parametrize("x", MATRICES, ids=lambda v: str(tuple(v.shape)))
def test_factors(x):
    check_export(torch.geqrf, (x,), None, atol=1e-4)


def test_doubles():
    check_export(torch.geqrf, (MATRICES[1].double(),), None, atol=1e-12)


@pytest.mark.parametrize("x", [MATRICES[0], MATRICES[1]], ids=lambda v: str(tuple(v.shape)))
@pytest.mark.parametrize("count", [0, 2, 3])
def test_product(x, count):
    a, taus = torch.geqrf(x)
    check_export(torch.linalg.householder_product, (a, taus[..., :count]), None, atol=1e-4)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_other_matrices(left, transpose):
    a, taus = torch.geqrf(MATRICES[1])
    c = torch.randn(2, 5, 2) if left else torch.randn(2, 2, 5)

    def model(a, taus, c):
        return torch.ormqr(a, taus, c, left, transpose)

    other = torch.geqrf(torch.randn(3, 5, 3))
    dims = {0: "n"}
    more = [(*other, torch.randn(3, *c.shape[1:]))]
    check_export(model, (a, taus, c), (dims, dims, dims), more, atol=1e-4)
