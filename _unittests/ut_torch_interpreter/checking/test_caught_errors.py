"""Decisions on the content of a tensor whose error a model catches."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from torch_interpreter import ExportError, ExportOptions, to_onnx
from torch_interpreter.checking.caught_errors import caught_decisions

X = torch.arange(8.0).reshape(2, 4) + 1


def _bare(x: torch.Tensor) -> torch.Tensor:
    try:
        return x + 1 if x.sum() > 0 else x - 1
    except:  # noqa: E722
        return x + 2


def _any(x: torch.Tensor) -> torch.Tensor:
    try:
        return x + 1 if x.sum() > 0 else x - 1
    except Exception:
        return x + 2


def _suppressed(x: torch.Tensor) -> torch.Tensor:
    with contextlib.suppress(Exception):
        x = x + 1 if x.sum() > 0 else x - 1
    return x


def _equal(x: torch.Tensor) -> torch.Tensor:
    try:
        return x + 1 if torch.equal(x, x.abs()) else x - 1
    except Exception:
        return x + 2


def _array(x: torch.Tensor) -> torch.Tensor:
    try:
        return x + float(x.numpy().sum())
    except Exception:
        return x + 2


def _same_branch(x: torch.Tensor) -> torch.Tensor:
    """It avoids a node, and does without a decision."""
    try:
        return x if (x > 0).all() else x.clamp(0)
    except Exception:
        return x.clamp(0)


def _raised_again(x: torch.Tensor) -> torch.Tensor:
    try:
        return x + 1 if x.sum() > 0 else x - 1
    except Exception as e:
        raise ValueError("no sum") from e


class _Model(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


SHAPES = pytest.mark.parametrize("shapes", [None, ({0: "n"},)], ids=["static", "dynamic"])


@SHAPES
@pytest.mark.parametrize("function", [_bare, _any, _suppressed, _equal, _array])
def test_a_wrong_branch_is_refused(function: Any, shapes: Any) -> None:
    text = rf"depends on the content of a tensor at .*, in {function.__name__}: .* are not those of"
    with pytest.raises(ExportError, match=text):
        to_onnx(_Model(function), (X,), dynamic_shapes=shapes)


@SHAPES
def test_a_branch_right_on_the_arguments_is_a_warning(shapes: Any) -> None:
    with pytest.warns(UserWarning, match=r"at .*, in _same_branch: .* The model catches the error"):
        onx = to_onnx(_Model(_same_branch), (X,), dynamic_shapes=shapes)
    (got,) = ReferenceEvaluator(onx).run(None, {"x": -X.numpy()})
    np.testing.assert_array_equal(got, 0)


def test_a_model_without_data_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="The model catches the error"):
        x = torch.empty(2, 4, device="meta")
        to_onnx(_Model(_any), (x,), export_options=ExportOptions(fake=True))


def test_an_error_that_is_raised_again() -> None:
    with pytest.raises(ExportError, match="no sum"):
        to_onnx(_Model(_raised_again), (X,))


def test_what_torch_catches_is_no_decision_of_the_model() -> None:
    def attempt(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(x[x > 0])

    with caught_decisions() as lines:
        torch.export.export(_Model(attempt), (X,))
    assert lines == []


def test_the_export_starts_again_in_spite_of_the_model() -> None:
    """A bare except does not stop the replacement of ``int``."""

    class Half(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                n = int(x.shape[0] * 0.5)
            except:  # noqa: E722
                n = 1
            return x[:n]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onx = to_onnx(Half(), (X,), dynamic_shapes=({0: "n"},))
    got: Any = ReferenceEvaluator(onx).run(None, {"x": np.ones((6, 4), np.float32)})[0]
    assert got.shape == (3, 4)
