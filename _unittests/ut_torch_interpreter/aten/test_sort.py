"""Sorting, searching."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

torch.manual_seed(0)
X = torch.randn(3, 5)
I = torch.tensor([[3, 1, 2, 5, 4], [9, 7, 8, 6, 5]])  # noqa: E741
DYNAMIC = ({0: "a"},)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("values", [X, I], ids=["float", "int64"])
def test_topk(largest, dim, values):
    check_export(lambda x: tuple(torch.topk(x, 2, dim=dim, largest=largest)), (values,))


def test_topk_dynamic():
    check_export(lambda x: torch.topk(x, 2)[0], (X,), DYNAMIC, [(X[:1],)])
    check_export(lambda x: torch.topk(x, x.shape[0])[1], (X,), DYNAMIC, [(X[:2],)])


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("dim", [0, -1])
def test_sort(descending, dim):
    check_export(
        lambda x: tuple(torch.sort(x, dim=dim, descending=descending)), (X,), DYNAMIC, [(X[:2],)]
    )
    check_export(lambda x: torch.argsort(x, dim=dim, descending=descending), (I,))
    check_export(
        lambda x: tuple(torch.sort(x, dim=dim, descending=descending, stable=True)), (I // 3,)
    )


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("int32", [True, False])
def test_bucketize(right, int32):
    boundaries = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    values = torch.cat([X.flatten(), boundaries])
    check_export(
        lambda x, b: torch.bucketize(x, b, right=right, out_int32=int32), (values, boundaries)
    )
    check_export(lambda b, x: torch.searchsorted(b, x, right=right), (boundaries, values))


def test_unique_consecutive():
    x = torch.tensor([1, 1, 2, 2, 2, 3, 1, 1])
    check_export(torch.unique_consecutive, (x,), DYNAMIC, [(x[:2],), (x[4:],)])
