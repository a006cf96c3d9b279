"""Running extrema and sums of exponentials."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

INF, NAN = float("inf"), float("nan")
X = torch.tensor(
    [[1.0, 1.0, 3.0, 2.0], [0.5, INF, -INF, 2.0], [NAN, 7.0, NAN, 8.0], [-INF, -INF, 0.0, -1.0]]
)
DYNAMIC = ({0: "a", 1: "b"},)
OTHERS = [(X[:1],), (X[:, :1],), (X[:0],), (X[:, :0],)]


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("fct", [torch.cummax, torch.cummin])
def test_extrema(fct, dim) -> None:
    """The last of equal values, and the last nan."""
    onx = check_export(lambda x: tuple(fct(x, dim)), (X,), DYNAMIC, OTHERS)
    assert "Scan" in op_types(onx)


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool],
)
def test_types(dtype) -> None:
    x = torch.tensor([[2, 0, 5, 5], [1, 7, 3, 0]]).to(dtype)
    for fct in (torch.cummax, torch.cummin):
        check_export(lambda x, f=fct: tuple(f(x, -1)), (x,), DYNAMIC, [(x[:, :1],)])


def test_scalar_and_ranks() -> None:
    check_export(lambda x: tuple(torch.cummax(x, 0)), (X[0, 0],))
    check_export(lambda x: tuple(torch.cummin(x, -1)), (X[0],))
    x = torch.randn(2, 3, 4)
    check_export(lambda x: tuple(torch.cummax(x, 1)), (x,), ({0: "a"},), [(x[:1],)])


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_logcumsumexp(dtype, dim) -> None:
    """A sum of exponentials would overflow, or vanish next to the highest one."""
    x = torch.tensor([[1.0, 90.0, -INF, 2.0], [-INF, 300.0, -300.0, 301.0], [5.0, 5.0, 5.0, NAN]])
    x = x.to(dtype)
    atol = 1e-3 if dtype == torch.float16 else 1e-5
    others = [(x[:1],), (x[:, :1],), (x[:0],), (x[:, :0],)]
    check_export(lambda x: torch.logcumsumexp(x, dim), (x,), DYNAMIC, others, atol=atol)


def test_logcumsumexp_of_infinities() -> None:
    x = torch.tensor([-INF, -INF, 1.0, INF, 2.0])
    check_export(lambda x: torch.logcumsumexp(x, 0), (x,))
    check_export(lambda x: torch.logcumsumexp(x, 0), (x[2],))


@pytest.mark.parametrize("width, expected", [(128, "Loop"), (129, "Scan")])
def test_logcumsumexp_of_rows(width, expected) -> None:
    """A Scan reads long rows, a Loop of log2(n) steps the others."""
    x = torch.tensor([-INF, -300.0, 1.0, 2.0, 2.0, 300.0, -INF, INF, 3.0])[:, None]
    x = x.expand(9, width).contiguous()
    others = [(x[:n],) for n in (0, 1, 2, 5, 8)]
    onx = check_export(lambda x: torch.logcumsumexp(x, 0), (x,), ({0: "n"},), others)
    assert {"Loop", "Scan"} & set(op_types(onx)) == {expected}


def test_logcumsumexp_of_older_opset() -> None:
    onx = check_export(lambda x: torch.logcumsumexp(x, 0), (X,), DYNAMIC, target_opset=9)
    assert "Scan" in op_types(onx)
