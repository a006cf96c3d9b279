"""Shapes: views, permutations, expansions, concatenations."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

X = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
Z = torch.arange(60, dtype=torch.float32).reshape(5, 3, 4)
DYNAMIC = ({0: "a", 1: "b"},)
OTHERS = [(torch.randn(5, 7, 4),), (X[:1, :1],), (X[:0],)]


def dynamic(fct, **kwargs):
    return check_export(fct, (X,), DYNAMIC, OTHERS, **kwargs)


def test_view():
    # torch itself refuses -1 for an empty tensor
    check_export(lambda x: x.view(x.shape[0], -1), (X,), DYNAMIC, OTHERS[:2])
    dynamic(lambda x: x.reshape(-1, 4))
    dynamic(lambda x: x.reshape(-1))
    dynamic(lambda x: x.view(x.shape[0], x.shape[1], 2, 2))
    dynamic(lambda x: x.view(x.shape[0] * x.shape[1], 4))
    dynamic(lambda x: x.view(x.shape[1], x.shape[0], 4))
    dynamic(lambda x: x.view(4, x.shape[1], x.shape[0]))
    check_export(lambda x: x.view(6, 4), (X,))
    check_export(lambda x: x[0, 0, 0].reshape(1, 1), (X,))
    check_export(lambda x: x.reshape(()), (X[:1, :1, :1],))
    check_export(lambda x: x.reshape(0, 5), (X[:0],))


def test_view_is_constant_when_it_can_be():
    assert op_types(dynamic(lambda x: x.view(x.shape[0], x.shape[1], 2, 2))) == ["Reshape"]
    assert op_types(dynamic(lambda x: x.reshape(-1, 4))) == ["Reshape"]


def test_reshape_as():
    y = torch.arange(24.0).reshape(4, 6)
    check_export(lambda x, y: x.reshape_as(y), (X, y))
    check_export(
        lambda x, y: x.reshape_as(y),
        (X, X.reshape(2, 12)),
        ({0: "a"}, {0: "a"}),
        [(Z, Z.reshape(5, 12))],
    )


def test_flatten():
    dynamic(lambda x: x.flatten())
    dynamic(lambda x: x.flatten(1))
    dynamic(lambda x: x.flatten(0, 1))
    dynamic(lambda x: x.flatten(1, 1))
    check_export(lambda x: x.flatten(), (torch.tensor(2.0),))
    dynamic(lambda x: x[:, :, None].flatten(1, 2))
    dynamic(lambda x: x[:, :, None].flatten(2))


def test_unflatten():
    dynamic(lambda x: x.unflatten(-1, (2, 2)))
    dynamic(lambda x: x.unflatten(2, (2, -1)))
    check_export(
        lambda x: x.unflatten(0, (2, -1)), (torch.randn(6, 3),), ({1: "c"},), [(torch.randn(6, 5),)]
    )


def test_squeeze():
    x = torch.randn(1, 3, 1)
    check_export(lambda x: x.squeeze(), (x,))
    check_export(lambda x: x.squeeze(0), (x,))
    check_export(lambda x: x.squeeze(1), (x,))
    check_export(lambda x: x.squeeze((0, -1)), (x,))
    check_export(lambda x: x.squeeze(-1), (x,), ({1: "a"},), [(torch.randn(1, 5, 1),)])
    check_export(lambda x: x.squeeze(), (torch.tensor(1.0),))


@pytest.mark.parametrize("dim", [0, 1, 3, -1, -4])
def test_unsqueeze(dim):
    dynamic(lambda x: x.unsqueeze(dim))


def test_permutations():
    dynamic(lambda x: x.permute(2, 0, 1))
    dynamic(lambda x: x.permute(-1, 0, 1))
    dynamic(lambda x: x.transpose(0, -1))
    dynamic(lambda x: x.mT)
    dynamic(lambda x: x.movedim(0, -1))
    dynamic(lambda x: x.movedim((0, 1), (-1, 0)))
    check_export(lambda x: x.t(), (X[0],))
    check_export(lambda x: x.T, (X[0],))
    check_export(lambda x: x.swapaxes(0, 2), (X,))
    assert op_types(dynamic(lambda x: x.permute(0, 1, 2) + 1)) == ["Add"]


def test_expand():
    check_export(lambda x: x.expand(3, -1, 4), (X[:1],), ({1: "b"},), [(torch.randn(1, 5, 4),)])
    check_export(lambda x: x.expand(2, 2, 3, 4), (X,))
    check_export(
        lambda x, y: y.expand(x.shape[0], 4), (X, X[0, :1]), ({0: "a"}, None), [(Z, X[0, :1])]
    )
    check_export(lambda x, y: y.expand_as(x), (X, X[:1]), ({0: "a"}, None), [(Z, X[:1])])
    check_export(lambda x: x.broadcast_to(2, 3, 4), (X[0],))
    check_export(lambda x: x.expand(2, 3, 4) + 1, (X,))


def test_broadcast_tensors():
    check_export(
        lambda x, y: torch.broadcast_tensors(x, y),
        (X[:, :1], X[:1]),
        ({0: "a"}, {1: "b"}),
        [(Z[:, :1], torch.randn(1, 7, 4))],
    )


def test_repeat():
    dynamic(lambda x: x.repeat(1, 2, 3))
    dynamic(lambda x: x.repeat(2, 1, 1, 2))
    dynamic(lambda x: x.repeat(1, x.shape[0], 1))
    dynamic(lambda x: x.tile(2))
    check_export(lambda x: x.tile((2, 1, 1, 1)), (X,))


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_repeat_interleave(dim):
    dynamic(lambda x: x.repeat_interleave(3, dim=dim))


def test_cat():
    check_export(lambda x, y: torch.cat([x, y], dim=0), (X, Z), ({0: "a"}, {0: "b"}), [(Z, X)])
    check_export(lambda x, y: torch.cat([x, y], dim=-1), (X, X), None)
    check_export(lambda x, y: torch.cat([x, y]), (X, X.to(torch.int64)))
    check_export(lambda x: torch.cat([torch.zeros(0), x]), (torch.ones(3),))
    check_export(lambda x: torch.cat([x]), (X,))
    check_export(lambda x: torch.hstack([x, x]), (X,))


def test_stack():
    for dim in (0, 1, -1):
        check_export(
            lambda x, y, d=dim: torch.stack([x, y], dim=d),
            (X, X + 1),
            ({0: "a"}, {0: "a"}),
            [(Z, Z)],
        )
    check_export(lambda x: torch.stack([x, x * 2]), (torch.tensor(1.5),))


def test_no_effect():
    check_export(lambda x: (x.detach(), x.contiguous(), x.clone(), x.positive()), (X,))
    check_export(lambda x: (x, x, x + 1), (X,))
