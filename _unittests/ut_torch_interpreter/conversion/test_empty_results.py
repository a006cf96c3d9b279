"""Results torch knows to be empty are constants."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter import Dispatcher, to_onnx

EMPTY = torch.zeros(2, 0)
INDEX = torch.zeros(2, 0, dtype=torch.int64)
# each of them is refused by onnxruntime, or has an ambiguous shape, as a node
MODELS = {
    "gather": (lambda x, i: x.gather(0, i), (torch.rand(5), INDEX)),
    "index": (lambda x: x[torch.tensor([1, 2])], (EMPTY,)),
    "mod": (lambda x, i: torch.take_along_dim(x, i, 0), (EMPTY[0], INDEX[0])),
    "put": (lambda x, i: x.put(i, x), (EMPTY, INDEX)),
    "unshuffle": (lambda x: torch.pixel_unshuffle(x, 1), (EMPTY[None, None],)),
    "several": (lambda x: x.split(1), (EMPTY,)),
    "read": (lambda x: torch.cat([x.gather(0, INDEX).sum(1), x]), (torch.rand(5),)),
}


@pytest.mark.parametrize("name", MODELS)
def test_constants(name):
    check_export(*MODELS[name])


def test_a_user_s_converter_comes_first():
    def mine(g, sts, outputs, x):
        return g.op.Neg(x, outputs=outputs)

    model = torch.nn.ReLU()
    onx = to_onnx(model, (EMPTY,), dispatcher=Dispatcher({"aten::relu": mine}), optimize=False)
    assert "Neg" in [n.op_type for n in onx.graph.node]
    onx = to_onnx(model, (EMPTY,), optimize=False)
    assert "Relu" not in [n.op_type for n in onx.graph.node]
    onx = to_onnx(model, (EMPTY,), dynamic_shapes=({0: "a"},), optimize=False)
    assert "Relu" in [n.op_type for n in onx.graph.node]
