"""Singular values, eigenvalues, pseudo-inverses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, module_of, op_types, run_ort

from torch_interpreter import to_onnx

torch.manual_seed(0)
linalg: object = torch.linalg
SQUARE, TALL, WIDE = torch.randn(2, 4, 4), torch.randn(3, 6, 4), torch.randn(3, 7)
SINGULAR = torch.randn(5, 2) @ torch.randn(2, 5)
MATRICES = {
    "square": SQUARE,
    "tall": TALL,
    "wide": WIDE,
    "one": torch.randn(1, 1),
    "column": torch.randn(5, 1),
    "row": torch.randn(1, 5),
    "two": torch.randn(2, 2),
    "zero": torch.zeros(3, 3),
    "identity": torch.eye(4),
    "rank 2": SINGULAR,
    "equal columns": torch.ones(4, 3),
    "graded": torch.diag(torch.tensor([1e10, 1.0, 1e-10])),
    "large": torch.randn(33, 30) * 1e30,
}
CASES = pytest.mark.parametrize("name", MATRICES)


def exported(fct, x, *others):
    """The results of onnxruntime for x, then for other matrices of a dynamic shape."""
    dims = dict.fromkeys(range(x.ndim), torch.export.Dim.DYNAMIC) if others else None
    onx = to_onnx(module_of(fct, 1), (x,), dynamic_shapes=(dims,) if dims else None)
    return [run_ort(onx, [v]) for v in (x, *others)]


def assert_factors(x, u, s, vh, unit):
    """The factors are orthogonal, their product is the matrix, the values those of torch."""
    x, k = np.asarray(x, dtype=np.float64), s.shape[-1]
    high = max(s.max(), 1e-300)
    rebuilt = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    assert np.abs(rebuilt - x).max() <= unit * high
    assert np.abs(np.linalg.svd(x, compute_uv=False) - s).max() <= unit * high
    for q in (np.swapaxes(u, -1, -2) @ u, vh @ np.swapaxes(vh, -1, -2)):
        assert np.abs(q - np.eye(q.shape[-1])).max() <= unit


@CASES
@pytest.mark.parametrize("full", [True, False])
def test_singular_values(name, full):
    x = MATRICES[name]
    ((u, s, vh),) = exported(lambda x: linalg.svd(x, full_matrices=full), x)
    expected = linalg.svd(x, full_matrices=full)
    assert [u.shape, s.shape, vh.shape] == [tuple(v.shape) for v in expected]
    assert u.dtype == np.float32
    assert_factors(x, u, s, vh, 1e-5)


@pytest.mark.parametrize("x", [TALL, WIDE, SINGULAR], ids=lambda v: str(v.shape))
def test_doubles(x):
    x = x.double()
    ((u, s, vh),) = exported(linalg.svd, x)
    assert_factors(x, u, s, vh, 1e-13)


def test_dynamic_sizes():
    others = [torch.randn(n, *shape) for n, *shape in ((1, 3, 5), (2, 5, 2), (4, 1, 1))]
    for x, (u, s, vh) in zip((TALL, *others), exported(linalg.svd, TALL, *others), strict=True):
        assert_factors(x, u, s, vh, 1e-5)


def test_only_the_values():
    onx = check_export(lambda x: linalg.svdvals(x), (TALL,), None)
    assert op_types(onx).count("Loop") == 1


@pytest.mark.parametrize("half", ["L", "U"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigenvalues(half, dtype):
    unit = 1e-5 if dtype == torch.float32 else 1e-13
    for x in (SQUARE, SINGULAR, torch.eye(3), torch.zeros(2, 2), torch.full((1, 1), -3.0)):
        x = x.to(dtype)
        ((values, v),) = exported(lambda x: linalg.eigh(x, UPLO=half), x)
        expected = linalg.eigh(x, UPLO=half)[0].numpy()
        assert values.dtype == expected.dtype
        assert np.abs(values - expected).max() <= unit * max(1, np.abs(expected).max())
        a = (torch.tril(x) + torch.tril(x, -1).mT) if half == "L" else torch.triu(x)
        a = a.numpy() if half == "L" else (a + torch.triu(x, 1).mT).numpy()
        assert np.abs(a @ v - v * values[..., None, :]).max() <= 10 * unit
        assert np.abs(np.swapaxes(v, -1, -2) @ v - np.eye(v.shape[-1])).max() <= unit


def test_opposite_eigenvalues():
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    check_export(linalg.eigvalsh, (x,), None)


@CASES
def test_pseudo_inverses(name):
    x = MATRICES[name]
    found = exported(linalg.pinv, x)[0][0]
    expected = linalg.pinv(x.double(), rtol=max(x.shape[-2:]) * 2.0**-23).numpy()
    assert np.abs(found - expected).max() <= 1e-4 * max(np.abs(expected).max(), 1e-30)


def test_tolerances_of_the_pseudo_inverse():
    x = torch.diag(torch.tensor([4.0, 2.0, 1.0]))
    for options in ({"rtol": 0.3}, {"atol": 1.5}, {"atol": 0.5, "rtol": 0.6}):
        check_export(lambda x, o=options: linalg.pinv(x, **o), (x,), None)
    check_export(lambda x: linalg.pinv(x, hermitian=True), (SQUARE,), None, atol=1e-3)


def test_what_is_computed_from_them():
    def model(x):
        return linalg.cond(x), linalg.matrix_rank(x), torch.linalg.norm(x, "nuc"), linalg.norm(x, 2)

    check_export(model, (MATRICES["large"][:4, :3] / 1e30,), None, atol=1e-3)
    check_export(lambda x: linalg.matrix_rank(x), (SINGULAR,), None)
