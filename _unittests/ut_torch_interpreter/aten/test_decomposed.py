"""Operators without converter that torch knows how to decompose."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export

torch.manual_seed(0)
X = torch.randn(3, 4)
IMAGE = torch.randn(2, 4, 6, 6)
ops = torch.ops.aten
FUNCTIONS = {
    "diff": (lambda x: x.diff(dim=1), (X,)),
    "diag of a matrix": (torch.diag, (X,)),
    "diag of a vector": (torch.diag, (X[0],)),
    "diag_embed": (torch.diag_embed, (X,)),
    "fliplr": (torch.fliplr, (X,)),
    "float_power": (lambda x: torch.float_power(x.abs(), 2), (X,)),
    "unfold": (lambda x: x.unfold(1, 2, 1), (X,)),
    "im2col": (lambda x: F.unfold(x, 3), (IMAGE,)),
    "col2im": (lambda x: F.fold(x, (6, 6), 3), (F.unfold(IMAGE, 3),)),
    "logit": (lambda x: torch.logit(x, eps=0.1), (X.sigmoid(),)),
    "nanmean": (lambda x: x.nanmean(dim=1), (X,)),
    "cross": (torch.linalg.cross, (X[:, :3], X[:, 1:])),
    "soft_margin_loss": (F.soft_margin_loss, (X, X.sign())),
    "block_diag": (torch.block_diag, (X, X + 1)),
    "sigmoid_backward": (ops.sigmoid_backward, (X, X + 1)),
    "tanh_backward": (ops.tanh_backward, (X, X + 1)),
    "cumprod": (lambda x: x.cumprod(1), (X,)),
    "atleast_3d": (lambda x: (torch.atleast_1d(x), torch.atleast_3d(x)), (X[0],)),
    "cartesian_prod": (torch.cartesian_prod, (X[0], X[1])),
    "mH": (lambda x: x.mH, (X,)),
    "cosine_similarity": (F.cosine_similarity, (X, X + 1)),
    "huber_loss": (F.huber_loss, (X, X + 1)),
    "kl_div": (F.kl_div, (X, X.softmax(-1))),
    "kron": (torch.kron, (X, X + 1)),
    "vander": (torch.vander, (X[0],)),
    "sinc": (torch.sinc, (X,)),
    "rrelu": (F.rrelu, (X,)),
    "affine_grid": (
        lambda x: F.affine_grid(x, [2, 3, 4, 5], align_corners=False),
        (torch.randn(2, 2, 3),),
    ),
    "nearest-exact": (lambda x: F.interpolate(x, scale_factor=1.5, mode="nearest-exact"), (IMAGE,)),
    "quantile": (lambda x: torch.quantile(x, 0.5, dim=1), (X,)),
    "take_along_dim": (
        lambda x, i: torch.take_along_dim(x, i, 1),
        (X, torch.tensor([[1], [0], [2]])),
    ),
    "renorm": (lambda x: torch.renorm(x, 2, 0, 1.0), (X,)),
}
MODULES = {
    "LSTM": (torch.nn.LSTM(4, 5, batch_first=True), torch.randn(2, 3, 4)),
    "GRU": (torch.nn.GRU(4, 5), torch.randn(2, 3, 4)),
    "LocalResponseNorm": (torch.nn.LocalResponseNorm(2), IMAGE),
    "ChannelShuffle": (torch.nn.ChannelShuffle(2), IMAGE),
    "LPPool2d": (torch.nn.LPPool2d(2, 2), IMAGE.abs()),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function(name):
    fct, args = FUNCTIONS[name]
    check_export(fct, args, atol=1e-4)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_module(name):
    model, x = MODULES[name]
    check_export(model.eval(), (x,), atol=1e-4)
