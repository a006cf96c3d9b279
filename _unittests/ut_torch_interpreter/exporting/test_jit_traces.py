"""Strategy jit: arguments and results of any structure."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import to_onnx

X = torch.randn(3, 4)


class Structured(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x, *xs, flag=True, named=None, **others):
        x = self.linear(x) * self.weight
        for other in xs:
            x = x * other
        if flag:
            x = x + 1
        if named is not None:
            x = x - named["k"][0]
        return {"y": x, "rest": (None, 3, x * others["scale"])}


CALLS = [
    ((X,), {"scale": torch.ones(4)}),
    ((X, X + 1), {"flag": False, "scale": torch.ones(4)}),
    ((X, X + 1, X), {"named": {"k": [torch.ones(4)]}, "scale": torch.ones(4)}),
]


@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_arguments_and_results(args, kwargs):
    model = Structured()
    forward = model.forward
    onx = to_onnx(model, args, kwargs, export_options="jit", optimize=False)
    same = to_onnx(model, args, kwargs, optimize=False)
    for side in ("input", "output"):
        assert [v.name for v in getattr(onx.graph, side)] == [
            v.name for v in getattr(same.graph, side)
        ]
    assert {i.name for i in onx.graph.initializer} >= {"linear.weight", "linear.bias", "weight"}
    tensors = [
        v for v in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(v, torch.Tensor)
    ]
    assert_same(run_ort(same, tensors), run_ort(onx, tensors), 1e-6)
    assert model.forward == forward and "forward" not in vars(model)


def test_a_method_of_the_object():
    model = Structured()
    model.forward = own = lambda x: x * 2
    onx = to_onnx(model, (X,), export_options="jit")
    assert model.forward is own
    assert_same(X * 2, run_ort(onx, [X]), 1e-6)


def test_recurrent_layers():
    model, x = torch.nn.LSTM(4, 5), torch.randn(6, 2, 4)
    onx = to_onnx(model, (x,), export_options="jit")
    assert [n.op_type for n in onx.graph.node] == ["LSTM", "Squeeze"]
    y, (h, c) = model(x)
    assert_same([y, h, c], run_ort(onx, [x]), 1e-5)


def test_a_second_run_that_takes_another_branch():
    """The fast path of an encoder is not taken while torch traces the first time."""
    model, x = (
        torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
        X.repeat(2, 1, 2),
    )
    onx = to_onnx(model, (x,), export_options="jit")
    assert_same(model(x), run_ort(onx, [x]), 1e-5)
