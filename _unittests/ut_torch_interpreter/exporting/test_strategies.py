"""Programs torch cannot decompose."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1

from torch_interpreter import ExportError, ExportOptions, to_onnx

X = torch.randn(2, 3)


@pytest.fixture
def broken(monkeypatch):
    """torch fails on every decomposition."""

    def fail(self, table=None):
        raise AssertionError("not functional")

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", fail)


def test_a_decomposition_that_fails(broken):
    message = r"not able to decompose the operators.*\nAssertionError: not functional\nRegister"
    with pytest.raises(ExportError, match=message) as raised:
        to_onnx(Fct1(torch.cos), (X,), export_options="nostrict-dec")
    assert isinstance(raised.value.__cause__, ExportError)
    options = ExportOptions(decomposition_table={torch.ops.aten.cos.default: torch.sin})
    with pytest.raises(ExportError, match=r"decompose the operators \['aten.cos.default'\]"):
        to_onnx(Fct1(torch.cos), (X,), export_options=options)


def test_the_next_strategy_is_tried(broken):
    options = ExportOptions(strategy="fallback", decomposition_table="default")
    with pytest.raises(ExportError, match="with every strategy") as raised:
        to_onnx(Fct1(torch.cos), (X,), export_options=options)
    assert str(raised.value).count("not able to decompose") > 1
