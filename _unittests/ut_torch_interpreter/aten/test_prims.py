"""The primitives, which a complete decomposition leaves."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export

X = torch.tensor([[1.5, -2.0, 3.0], [7.25, -5.0, 0.5]])
I = torch.tensor([[7, -7, 5], [-5, 9, 1]])  # noqa: E741
DYNAMIC = ({0: "a"},)
prims = torch.ops.prims


@pytest.mark.parametrize(
    "name", ["cos", "exp", "neg", "abs", "floor", "sign", "tanh", "erf", "rsqrt", "log2"]
)
def test_unary(name):
    fct = getattr(prims, name)
    check_export(lambda x: fct(x), (X.abs(),), DYNAMIC, [(X[:1].abs(),)])


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "maximum", "minimum", "eq", "lt", "ge", "fmod"]
)
@pytest.mark.parametrize("values", [X, I], ids=["float", "int64"])
def test_binary(name, values):
    fct = getattr(prims, name)
    check_export(lambda x, y: fct(x, y), (values, values + 1))


def test_reductions():
    check_export(lambda x: (prims.sum(x, [1]), prims.amax(x, [0]), prims.amin(x, [1])), (X,))


def test_shapes():
    check_export(lambda x: prims.transpose(x, [1, 0]), (X,))
    check_export(lambda x: prims.broadcast_in_dim(x, [2, 4, 3], [0, 2]), (X,))
    check_export(lambda x: prims.collapse_view(x, 0, 1), (X,), DYNAMIC, [(X[:1],)])
    check_export(lambda x: prims.split_dim(x, 1, 3), (X,))
    check_export(lambda x: prims.squeeze(x[:, None], [1]), (X,), DYNAMIC, [(X[:1],)])
    check_export(lambda x: prims.reshape(x, [x.shape[0], 3, 1]), (X,), DYNAMIC, [(X[:1],)])
    check_export(lambda x: prims.cat([x, x], 0), (X,))
    check_export(lambda x: prims.where(x > 0, x, x * 2), (X,))
    check_export(lambda x: prims.convert_element_type(x, torch.int64), (X,))


def test_several_dynamic_dimensions():
    x, other, empty = torch.randn(2, 6, 3), torch.randn(3, 4, 5), torch.randn(0, 2, 7)
    shapes = ({0: "a", 1: torch.export.Dim("b", min=2), 2: "c"},)
    check_export(lambda x: prims.collapse_view(x, 0, 1), (x,), shapes, [(other,), (empty,)])
    check_export(lambda x: prims.collapse_view(x, 1, 2), (x,), shapes, [(other,), (empty,)])
    shapes = ({0: "a", 1: 2 * torch.export.Dim("half"), 2: "c"},)
    check_export(lambda x: prims.split_dim(x, 1, 2), (x,), shapes, [(other,), (empty,)])
    check_export(lambda x: prims.split_dim(x, 1, x.shape[1] // 2), (x,), shapes, [(other,)])


def test_iota():
    def model(x):
        return prims.iota(
            5, start=2, step=3, dtype=torch.int64, device=torch.device("cpu"), requires_grad=False
        ) + x.sum().to(torch.int64)

    check_export(model, (X,))


MODELS = {
    "gelu": F.gelu,
    "softmax": lambda x: F.softmax(x, dim=-1),
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "std": lambda x: x.std(dim=1),
    "linear": torch.nn.Linear(3, 2),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_complete_decomposition(name):
    check_export(MODELS[name], (X,), export_options="decall")
