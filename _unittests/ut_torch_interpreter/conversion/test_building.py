"""Outputs of a model: default names, outputs without value."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export

from torch_interpreter import ConversionError, Dispatcher, to_onnx
from xbuilder import OptimizationOptions

X = torch.randn(3, 10)
OPTIONS = OptimizationOptions(patterns=None)


def test_none_keeps_its_place_in_the_names_of_outputs():
    onx = check_export(Fct1(lambda x: (None, x + 1, None, x * 2)), (X,))
    assert [o.name for o in onx.graph.output] == ["output_1", "output_3"]
    onx = check_export(Fct1(lambda x: (None, x + 1, x * 2)), (X,), output_names=["a", "b"])
    assert [o.name for o in onx.graph.output] == ["a", "b"]


NO_VALUE = {
    "only": (
        torch.sin,
        "aten::sin",
        [None],
        r"'output_0'.*sin.default.*compute its result,.*'sin'",
    ),
    "one of several": (
        lambda x: tuple(torch.topk(x, 10)),
        "aten::topk",
        ["values", None],
        r"'output_1'.*topk.default.*its result 1, fx node 'topk'",
    ),
}


@pytest.mark.parametrize("fct, op, results, message", NO_VALUE.values(), ids=list(NO_VALUE))
def test_output_without_value(fct, op, results, message):
    def converter(g, sts, outputs, x, *args):
        found = [r and g.op.Identity(x, outputs=outputs[:1]) for r in results]
        return found[0] if len(found) == 1 else found

    with pytest.raises(ConversionError, match=message) as error:
        to_onnx(Fct1(fct), (X,), dispatcher=Dispatcher({op: converter}), options=OPTIONS)
    assert "source: File" in str(error.value)


CONSTANTS = {
    "name of an input": (lambda x: (x + 1, "x"), (X,)),
    "argument": (lambda x, mode: (x + 1, mode), (X, "x")),
}


@pytest.mark.parametrize("fct, args", CONSTANTS.values(), ids=list(CONSTANTS))
def test_constant_output(fct, args):
    """A string is no name of a result."""
    model = torch.nn.Module()
    model.forward = fct
    with pytest.raises(ConversionError, match=r"'output_1' is .*ONNX only returns tensors"):
        to_onnx(model, args)


def test_number_output():
    check_export(Fct1(lambda x: (x + 1, 2, 0.5, True)), (X,))
