"""Operators converted by torch.onnx and onnxscript."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export

from torch_interpreter import FunctionNotFoundError, to_onnx
from torch_interpreter.dispatch.fallback import OnnxScriptDispatcher
from torch_interpreter.writing import registry

pytest.importorskip("onnxscript")
X = torch.randn(3, 4)


def test_operator_without_converter(monkeypatch):
    """One this version of torch.onnx knows, as if it had no converter here."""
    monkeypatch.delitem(registry._CONVERTERS, "aten.logcumsumexp.default")

    def fct(x):
        return torch.logcumsumexp(x + 1, 1) * 2 + torch.logcumsumexp(x, 0)

    with pytest.raises(FunctionNotFoundError):
        to_onnx(Fct1(fct), (X,))
    others = [(torch.randn(5, 4),), (X[:1],)]
    check_export(fct, (X,), ({0: "batch"},), others, dispatcher=OnnxScriptDispatcher())


def test_the_users_converters_come_first():
    def mine(g, sts, outputs, x, dim):
        return g.op.Identity(x, outputs=outputs)

    dispatcher = OnnxScriptDispatcher({"aten::logcumsumexp": mine})
    onx = to_onnx(Fct1(lambda x: torch.logcumsumexp(x, 1)), (X,), dispatcher=dispatcher)
    assert [n.op_type for n in onx.graph.node] == ["Identity"]


def test_unknown_to_torch_onnx():
    @torch.library.custom_op("xoptim_fallback::unknown", mutates_args=())
    def unknown(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @unknown.register_fake
    def _(x):
        return torch.empty_like(x)

    with pytest.raises(FunctionNotFoundError, match="torch.onnx failed"):
        to_onnx(Fct1(lambda x: unknown(x)), (X,), dispatcher=OnnxScriptDispatcher())
