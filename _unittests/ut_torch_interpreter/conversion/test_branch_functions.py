"""Branches of torch.cond as local functions."""

from __future__ import annotations

import onnx
import pytest
import torch
from ut_torch_interpreter.conversion.test_control_flow import Cond, NestedCond, X
from ut_torch_interpreter.export_checks import assert_same, op_types, run_ort

from torch_interpreter import ExportOptions, to_onnx
from xbuilder import FunctionOptions, GraphBuilder

BRANCHES = ExportOptions(aten_as_function={"cond"})


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("model", [Cond(), NestedCond()], ids=["one", "nested"])
def test_each_branch_is_one_call(model, optimize):
    """The weights and the results the branches read are inputs of the functions."""
    onx = to_onnx(
        model, (X,), dynamic_shapes=({0: "n"},), export_options=BRANCHES, optimize=optimize
    )
    onnx.checker.check_model(onx)
    assert len(onx.functions) == (4 if isinstance(model, NestedCond) else 2)
    (cond,) = [n for n in onx.graph.node if n.op_type == "If"]
    for attribute in cond.attribute:
        (call,) = attribute.g.node
        kind = "true" if attribute.name == "then_branch" else "false"
        assert call.domain == "local_function" and call.op_type.startswith(f"{kind}_graph_0")
    for x in (X, -X, -X / 100, torch.cat([X, -X / 2])):
        assert_same(model(x), run_ort(onx, [x]), 1e-5)
    assert not GraphBuilder(onx).to_onnx().functions


def test_domain():
    """The options of functions give the domain; nothing is a function unless it is asked."""
    options = FunctionOptions(export_as_function=True, name="f", domain="branches")
    onx = to_onnx(Cond(), (X,), export_options=BRANCHES, function_options=options)
    assert {f.domain for f in onx.functions} == {"branches"}
    assert_same(Cond.forward(model := Cond(), X), run_ort(to_onnx(model, (X,)), [X]), 1e-5)
    assert not to_onnx(Cond(), (X,)).functions
    kept = to_onnx(model, (X,), inline=False)
    assert len(kept.functions) == 2
    assert_same(model(X), run_ort(kept, [X]), 1e-5)
    names = ExportOptions(aten_as_function=())
    assert not to_onnx(Cond(), (X,), inline=False, export_options=names).functions
    names = ExportOptions(aten_as_function={"aten.linear.default"})
    onx = to_onnx(Cond(), (X,), export_options=names)
    assert "If" in op_types(onx) and {f.name for f in onx.functions} == {"linear_default"}
