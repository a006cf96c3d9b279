"""The line which makes a dynamic dimension a constant is named."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1

from torch_interpreter import ExportError, to_onnx
from torch_interpreter.patches.constant_sizes import constant_sizes

X = torch.randn(3, 8)
CONSTANT = {
    "an operator": lambda x: x + torch.ones(8),
    "a loop": lambda x: sum(x[:, i] for i in range(x.shape[1])),
    "a branch": lambda x: x if x.shape[1] == 8 else x * 2,
}


@pytest.mark.parametrize("name", sorted(CONSTANT))
@pytest.mark.parametrize("dim", ["n", torch.export.Dim("n"), torch.export.Dim.DYNAMIC], ids=str)
def test_the_line_of_the_user(name, dim):
    function = CONSTANT[name]
    with pytest.raises(ExportError) as raised:
        to_onnx(Fct1(function), (X,), dynamic_shapes=({0: "b", 1: dim},))
    line = function.__code__.co_firstlineno
    expected = rf"A dimension became 8 at {__file__}:{line}, in <"
    assert expected in str(raised.value)
    assert f'"{name}": lambda x' in str(raised.value)


def test_a_dimension_that_stays_dynamic_is_not_named():
    with constant_sizes() as lines:
        to_onnx(Fct1(lambda x: x.softmax(1)), (X,), dynamic_shapes=({0: "b", 1: "n"},))
    assert lines == []


def test_another_error_names_no_line():
    with pytest.raises(ExportError) as raised:
        to_onnx(Fct1(lambda x: x if x.sum() > 0 else -x), (X,))
    assert "became" not in str(raised.value)
