"""Assignments at positions that are only known when the model runs."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

K = torch.randn(2, 8, 4)
X = torch.randn(2, 2, 4)


def _position(pos, x, k):
    i = pos.item()
    torch._check(i >= 0)
    torch._check(i + x.shape[1] <= k.shape[1])
    return i


def _slice(k, i, x):
    k[:, i : i + x.shape[1]] = x


def _added(k, i, x):
    k[:, i : i + x.shape[1]] += x


def _row(k, i, x):
    k[:, i] = x[:, 0]


def _number(k, i, x):
    k[:, i] = 3.5


def _after_dots(k, i, x):
    k[..., i, :] = x[:, 0]


def _narrowed(k, i, x):
    k.narrow(1, i, x.shape[1]).copy_(x)


@pytest.mark.parametrize("write", [_slice, _added, _row, _number, _after_dots, _narrowed])
def test_a_cache_is_written_at_a_position(write):
    def model(x, k, pos):
        k = k.clone()
        write(k, _position(pos, x, k), x)
        return k

    dims = ({1: torch.export.Dim("q", min=1, max=6)}, {}, {})
    others = [(X[:, :1], K, torch.tensor(0)), (torch.randn(2, 4, 4), K, torch.tensor(4))]
    check_export(model, (X, K, torch.tensor(3)), dims, others)


def test_a_cache_of_any_length():
    def model(x, k, pos):
        k = k.clone()
        _slice(k, _position(pos, x, k), x)
        return k

    others = [(X[:, :1], K[:, :5], torch.tensor(4)), (X, K[:, :2], torch.tensor(0))]
    check_export(model, (X, K, torch.tensor(3)), ({1: "q"}, {1: "k"}, {}), others)


def test_the_end_of_a_cache():
    def model(x, k):
        k = k.clone()
        k[:, -x.shape[1] :] = x
        return k

    dims = ({1: torch.export.Dim("q", min=1, max=6)}, {})
    check_export(model, (X, K), dims, [(torch.randn(2, 5, 4), K), (X[:, :1], K)])
    assert torch.Tensor.__setitem__ is torch._C.TensorBase.__setitem__
