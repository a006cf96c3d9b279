"""The attributes that a model assigns while it is exported."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession

from torch_interpreter import to_onnx
from torch_interpreter.checking.own_attributes import restored_attributes


class _Schedule:
    """An object that is no module."""

    def __init__(self) -> None:
        self.index: Any = None
        self.outputs: list[Any] = []


class _Grid(torch.nn.Module):
    """Computes its grid when the size changes, as the heads of detectors do."""

    def __init__(self) -> None:
        super().__init__()
        self.shape: Any = None
        self.grid = torch.empty(0)
        self.grids = [torch.empty(0), torch.empty(0)]
        self.metrics = {"loss": 0.5}
        self.schedule = _Schedule()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.shape != x.shape:
            self.grid, self.shape = torch.arange(x.shape[1]).to(x.dtype) * 2, x.shape
        self.grids[1] = self.grid + 1
        self.metrics["mean"] = x.mean()
        self.schedule.index = x.shape[0]
        self.schedule.outputs.append(x)
        self.last = x
        return x * self.grid + self.grids[1]


def _grid_is_as_before(model: _Grid) -> bool:
    return (
        model.shape is None
        and model.grid.shape == (0,)
        and [g.shape for g in model.grids] == [(0,), (0,)]
        and model.metrics == {"loss": 0.5}
        and model.schedule.index is None
        and model.schedule.outputs == []
        and not hasattr(model, "last")
    )


def test_the_model_is_as_before() -> None:
    model = torch.nn.Sequential(_Grid(), torch.nn.ReLU())
    with restored_attributes(model):
        model(torch.randn(2, 3))
        assert not _grid_is_as_before(model[0])
    assert _grid_is_as_before(model[0])


def test_the_model_is_as_before_an_error() -> None:
    model = _Grid()
    with pytest.raises(ValueError, match="here"), restored_attributes(model):
        model(torch.randn(2, 3))
        raise ValueError("here")
    assert _grid_is_as_before(model)


def test_items_removed_come_back() -> None:
    model = _Grid()
    with restored_attributes(model):
        del model.metrics["loss"], model.shape
        model.grids.clear()
    assert _grid_is_as_before(model)


def test_buffers_and_submodules_stay_what_the_context_made_of_them() -> None:
    model = _Grid()
    with restored_attributes(model):
        model.register_buffer("scale", torch.ones(1))
        model.part = torch.nn.ReLU()
    assert set(dict(model.named_buffers())) == {"scale"}
    assert isinstance(model.part, torch.nn.ReLU)


def test_a_model_runs_after_its_export() -> None:
    model = _Grid()
    x = torch.randn(2, 3)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        onx = to_onnx(model, (x,), dynamic_shapes=({0: "batch", 1: "n"},))
    assert not [w for w in found if "is right for" in str(w.message)]
    assert _grid_is_as_before(model) or model.grid.shape == (3,)
    session = InferenceSession(onx.SerializeToString(), providers=["CPUExecutionProvider"])
    for shape in ((2, 3), (1, 5)):
        x = torch.randn(*shape)
        (got,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(model(x).numpy(), got, rtol=1e-5)
