"""Linear systems and factors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export, op_types, run_ort

from torch_interpreter import to_onnx

L = torch.linalg


def matrices(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random matrices, the same at every call."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


def positive(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Symmetric matrices whose eigenvalues are above 1."""
    x = matrices(*shape, dtype=dtype)
    return x @ x.mT + torch.eye(shape[-1], dtype=dtype)


SIZES = [1, 2, 3, 7, 30]


@pytest.mark.parametrize("n", SIZES)
def test_inverse(n: int) -> None:
    x, b = positive(2, n, n), matrices(2, n, 3)
    onx = check_export(L.inv, (x,), ({0: "a"},), [(x[:1],)], atol=1e-4)
    assert n == 1 or "Loop" in op_types(onx)
    check_export(lambda x, b: (L.solve(x, b), L.solve(x, b[..., 0])), (x, b), atol=1e-4)
    check_export(lambda x, b: L.solve(x, b.mT, left=False), (x, b), atol=1e-4)
    check_export(torch.inverse, (matrices(n, n, dtype=torch.float64),), atol=1e-9)


def test_pivots() -> None:
    """Null numbers on the diagonal, rows that are not in order."""
    x = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0], [1e-8, 1.0, -4.0]])
    x = torch.stack([x, x.flip(0), torch.eye(3)[[2, 0, 1]]])
    check_export(L.inv, (x,), ({0: "a"},), [(x[1:],)], atol=1e-5)


def test_singular() -> None:
    """The first column without pivot is counted from 1."""
    x = torch.tensor([[[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]], torch.eye(3).tolist()])
    check_export(lambda x: L.inv_ex(x)[1], (x,))
    check_export(lambda x: L.solve_ex(x, x)[1], (x * 0,))


def test_broadcast() -> None:
    x, b = positive(4, 4), matrices(2, 4, 3)
    check_export(L.solve, (x, b), (None, {0: "a"}), [(x, b[:1])], atol=1e-5)
    check_export(L.solve, (positive(3, 1, 4, 4), b), atol=1e-5)
    check_export(L.solve, (positive(2, 4, 4), b[0, :, 0]), atol=1e-5)


def test_a_size_that_is_not_known() -> None:
    dynamic = ({0: "a", 1: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC},)
    others = [(positive(1, 5, 5),), (positive(3, 2, 2),)]
    for fct in (L.inv, L.cholesky):
        check_export(fct, (positive(2, 4, 4),), dynamic, others, atol=1e-5)
    dynamic = ({0: "a", 1: "b", 2: "c"},)
    others = [(matrices(1, 3, 5),), (matrices(3, 5, 3),), (matrices(2, 1, 4),)]
    check_export(lambda x: tuple(L.qr(x)), (matrices(2, 4, 3),), dynamic, others, atol=1e-5)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(n: int, upper: bool) -> None:
    """The other half of the matrix is not read."""
    x = positive(2, n, n)
    half = x.triu() if upper else x.tril()

    def fct(x):
        factor = L.cholesky(x, upper=upper)
        return factor, torch.cholesky_inverse(factor, upper=upper)

    check_export(fct, (half,), ({0: "a"},), [(half[:1],)], atol=1e-4)
    check_export(fct, (half[0].double(),), atol=1e-10)
    b = matrices(2, n, 3)
    check_export(lambda b, x: torch.cholesky_solve(b, x, upper=upper), (b, half), atol=1e-3)


def test_not_positive() -> None:
    x = torch.stack([torch.eye(3), -torch.eye(3), torch.diag(torch.tensor([1.0, 0.0, 2.0]))])
    check_export(lambda x: L.cholesky_ex(x)[1], (x,))


@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular(left: bool, upper: bool, unitriangular: bool) -> None:
    options = {"upper": upper, "left": left, "unitriangular": unitriangular}
    x, b = positive(2, 4, 4), matrices(2, 4, 3)
    b = b if left else b.mT.contiguous()
    dynamic = ({0: "a"}, {0: "a"})
    check_export(
        lambda x, b: L.solve_triangular(x, b, **options),
        (x, b),
        dynamic,
        [(x[:1], b[:1])],
        atol=1e-3,
    )


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 3), (3, 5), (4, 1), (1, 4), (2, 30, 20)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_orthogonal(mode: str, shape: tuple[int, ...]) -> None:
    check_export(lambda x: tuple(L.qr(x, mode=mode)), (matrices(*shape),), atol=2e-5)
    check_export(
        lambda x: tuple(L.qr(x, mode=mode)), (matrices(*shape, dtype=torch.float64),), atol=1e-12
    )


def test_orthogonal_of_triangular() -> None:
    """Values already zero are not reflected, the sign of the diagonal does not change."""
    x = torch.tensor([[-1.0, 2.0, 3.0], [0.0, 5.0, -4.0], [0.0, 0.0, -6.0], [0.0, 0.0, 0.0]])
    check_export(lambda x: tuple(L.qr(x)), (x,), ({0: "a"},))
    check_export(lambda x: tuple(L.qr(x)), (x * 0,))
    check_export(lambda x: L.qr(x, mode="r")[1], (matrices(5, 3),), atol=1e-5)


def test_residual() -> None:
    """A large system is solved as well as LAPACK does it."""
    x, b = matrices(120, 120), matrices(120, 2)
    onx = to_onnx(Fct1(lambda x: L.solve(x, b)), (x,))
    got = run_ort(onx, [x])[0]
    exact = np.linalg.solve(x.double().numpy(), b.double().numpy())
    error = np.abs(got - exact).max()
    assert error < 20 * np.abs(L.solve(x, b).numpy() - exact).max() + 1e-5
