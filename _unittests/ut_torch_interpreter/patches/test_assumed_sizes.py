"""The line which makes torch assume a size of a dynamic dimension is named."""

from __future__ import annotations

import warnings

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, module_of

from torch_interpreter import ExportError, ExportOptions, to_onnx
from torch_interpreter.patches.assumed_sizes import assumed_sizes

X = torch.randn(3, 8)
AUTO = torch.export.Dim.AUTO
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
    expected = rf"(1 of x) became 8 at {__file__}:{line}, in <"
    if dim is torch.export.Dim.DYNAMIC:
        expected = expected.replace("(1 of x)", "1 of x")
    assert expected in str(raised.value)
    assert f'"{name}": lambda x' in str(raised.value)


def test_a_dimension_that_stays_dynamic_is_not_named():
    with assumed_sizes() as found:
        to_onnx(Fct1(lambda x: x.softmax(1)), (X,), dynamic_shapes=({0: "b", 1: "n"},))
    assert found.texts() == []


def test_another_error_names_no_line():
    with pytest.raises(ExportError) as raised:
        to_onnx(Fct1(lambda x: x if x.sum() > 0 else -x), (X,))
    assert "became" not in str(raised.value)


def warned(function, args=(X,), deferred: bool = True) -> list[str]:
    """The warnings of an export whose dimensions are dynamic if they can be."""
    options = ExportOptions(prefer_deferred_runtime_asserts_over_guards=deferred)
    dims = ({0: AUTO, 1: AUTO},) * len(args)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = module_of(function, len(args))
        to_onnx(model, args, dynamic_shapes=dims, export_options=options)
    return [str(w.message) for w in seen if "is right for" in str(w.message)]


@pytest.mark.parametrize("name", ["a loop", "a branch"])
@pytest.mark.parametrize("deferred", [True, False])
def test_an_automatic_dimension_that_became_a_constant(name, deferred):
    (text,) = warned(CONSTANT[name], deferred=deferred)
    expected = "channel == 8: a decision" if deferred else ".shape[1] == 8 only: torch made"
    assert expected in text
    assert f"({__file__}:{CONSTANT[name].__code__.co_firstlineno}, in <" in text


@pytest.mark.parametrize("deferred", [True, False])
def test_a_constant_the_model_needs_is_not_told(deferred):
    assert warned(CONSTANT["an operator"], deferred=deferred) == []
    assert warned(lambda x: x @ torch.ones(8, 2), deferred=deferred) == []


@pytest.mark.parametrize("deferred", [True, False])
def test_dimensions_that_change_together(deferred):
    def columns(x, y):
        return torch.stack([x[:, i] * y[:, i] for i in range(int(x.shape[1]))])

    (text,) = warned(columns, (X, X + 1), deferred)
    assert " == 8" in text and "range(int(x.shape[1]))" in text


CONDITIONS = {
    "channel % 4 == 0": lambda n: n % 4 == 0,
    "5 <= channel": lambda n: n > 4,
    "3.7 < 0.5*float(channel) (not channel=7)": lambda n: n * 0.5 > 3.7,
}


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
def test_the_line_of_a_condition(condition):
    (text,) = warned(lambda x: x * 2 if CONDITIONS[condition](x.shape[1]) else x)
    assert f"right for {condition}: a decision in Python depends on it ({__file__}:" in text
    assert "CONDITIONS[condition](x.shape[1])" in text or f'"{condition}": lambda' in text
