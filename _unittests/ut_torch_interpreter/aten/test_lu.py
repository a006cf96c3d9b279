"""Factorizations P L U."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

torch.manual_seed(0)
SQUARE = torch.randn(2, 4, 4)
OTHER = torch.randn(3, 4, 4)
WIDE, TALL = torch.randn(3, 5), torch.randn(2, 5, 3)
DYNAMIC = ({0: "n"},)
linalg: object = torch.linalg


@pytest.mark.parametrize("x", [SQUARE, WIDE, TALL, torch.ones(1, 1)], ids=lambda v: str(v.shape))
def test_factors(x):
    def model(x):
        return (*linalg.lu_factor(x), *linalg.lu(x))

    check_export(model, (x,), None)


def test_batches_and_doubles():
    onx = check_export(linalg.lu, (SQUARE,), DYNAMIC, [(OTHER,)])
    assert op_types(onx).count("Loop") == 2
    check_export(linalg.lu, (SQUARE.double(),), None, atol=1e-12)


def test_singular_matrices():
    x = torch.tensor([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]])
    check_export(lambda x: linalg.lu_factor_ex(x), (x,), DYNAMIC, [(x[:1],)])


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_solutions(left, adjoint):
    factors, pivots = linalg.lu_factor(SQUARE)
    b = torch.randn(2, 4, 3) if left else torch.randn(2, 3, 4)

    def model(factors, pivots, b):
        return linalg.lu_solve(factors, pivots, b, left=left, adjoint=adjoint)

    check_export(model, (factors, pivots, b), None, atol=1e-4)


def test_unpacked():
    args = linalg.lu_factor(TALL)
    check_export(torch.lu_unpack, args, None)
    check_export(lambda a, p: torch.lu_unpack(a, p, unpack_data=False)[0], args, None)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve(upper, transpose, unit):
    def model(b, a):
        return torch.ops.aten.triangular_solve(b, a, upper, transpose, unit)

    check_export(model, (torch.randn(2, 4, 3), SQUARE), None, atol=1e-3)


@pytest.mark.parametrize("function", [torch.slogdet, linalg.slogdet, torch.logdet])
def test_logarithms_of_determinants(function):
    """The determinant of the last matrices is larger than any number of 32 bits."""
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]]).repeat(2, 1, 1)
    for x in (
        SQUARE,
        -SQUARE,
        singular,
        torch.eye(3)[torch.tensor([[1, 0, 2], [1, 2, 0]])],
        torch.ones(0, 3, 3),
    ):
        check_export(function, (x,), None, atol=1e-4)
    large = torch.randn(2, 60, 60) * 10
    check_export(function, (large,), DYNAMIC, [(large[:1],)], atol=1e-3)
    assert torch.det(large).isinf().all()
    check_export(function, (SQUARE.double(),), None, atol=1e-10)
