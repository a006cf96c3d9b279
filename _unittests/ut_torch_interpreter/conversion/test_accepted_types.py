"""A type an operator of ONNX has no definition for is refused, with the node and its line."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, Fct2

from torch_interpreter import ConversionError, Dispatcher, to_onnx
from torch_interpreter.conversion.accepted_types import check_types
from xbuilder import GraphBuilder

X = torch.ones(1, 1, 4, 4, dtype=torch.int64)
REFUSED = {
    "conv": (Fct2(torch.conv2d), (X, X), "no input of Conv has the type int64"),
    "pool": (
        Fct1(lambda x: torch.nn.functional.avg_pool2d(x, 2)),
        (X,),
        "no input of AveragePool has the type int64",
    ),
}


@pytest.mark.parametrize("model, args, message", REFUSED.values(), ids=REFUSED)
def test_refused(model, args, message):
    with pytest.raises(ConversionError, match=message) as raised:
        to_onnx(model, args)
    assert "fx node" in str(raised.value) and "source: File" in str(raised.value)


def test_node_of_a_user():
    def wrong(g, sts, outputs, x):
        return g.op.Add(g.op.Cast(x, to=9), g.op.Cast(x, to=9), outputs=outputs)

    with pytest.raises(ConversionError, match="no input of Add has the type bool"):
        to_onnx(Fct1(torch.cos), (X.float(),), dispatcher=Dispatcher({"aten::cos": wrong}))


def test_check_types():
    g = GraphBuilder(18)
    g.make_tensor_input("x", 7, ("a",))
    g.make_node("RandomUniformLike", ["x"], ["y"])
    with pytest.raises(TypeError, match="no output of RandomUniformLike has the type int64"):
        check_types(g.graph, 0)
    check_types(g.graph, 1)
    # the last input of Concat is repeated, the one of another domain is unknown
    g.op.Concat("x", "x", "x", axis=0)
    g.add_domain("mine")
    g.make_node("Conv", ["x"], ["z"], domain="mine")
    check_types(g.graph, 1)
