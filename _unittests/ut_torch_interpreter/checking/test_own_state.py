"""Models that keep a state in their attributes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from torch_interpreter import ExportOptions, to_onnx
from torch_interpreter.checking.own_state import assigned_attributes, state_message

X = torch.arange(8.0).reshape(2, 4)


class _Last(torch.nn.Module):
    """Keeps its last result, which it does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x * 2
        return self.last.exp()


class _Lazy(torch.nn.Module):
    """Computes its positions once for a size."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.rows is None or self.rows.shape[0] != x.shape[0]:
            self.rows = torch.arange(x.shape[0])[:, None]
        return x + self.rows


class _Noise(torch.nn.Module):
    """Draws a number, which it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.noise: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.noise = torch.rand_like(x)
        return x + self.noise


class _Previous(torch.nn.Module):
    """Adds the arguments of the call before."""

    def __init__(self) -> None:
        super().__init__()
        self.previous = torch.zeros(2, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.previous.sum()
        self.previous = x
        return y


class _Recurrence(torch.nn.Module):
    """Its state does not exist before the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state = x if self.state is None else torch.tanh(x + self.state)
        return self.state


class _Parts(torch.nn.Module):
    """Keeps many results, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.results.extend(x + i for i in range(5))
        return x * len(self.results)


@pytest.mark.parametrize("shapes", [None, ({0: "batch"},)], ids=["static", "dynamic"])
@pytest.mark.parametrize("model", [_Last, _Lazy, _Noise])
def test_what_is_not_read_is_no_warning(model: Any, shapes: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_onnx(model().eval(), (X,), dynamic_shapes=shapes)


@pytest.mark.parametrize("shapes", [None, ({0: "batch"},)], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    ("model", "name"),
    [(_Previous, "previous"), (_Recurrence, "state"), (_Parts, "results")],
)
def test_a_state_is_a_warning(model: Any, name: str, shapes: Any) -> None:
    mod = torch.nn.Sequential(model().eval())
    before = dict(vars(mod[0]))
    with pytest.warns(UserWarning, match=rf"changes self\.0\.{name}.* its results depend") as found:
        to_onnx(mod, (X,), dynamic_shapes=shapes)
    assert [w.filename for w in found] == [__file__]
    assert vars(mod[0]) == before


class _Counted(torch.nn.Module):
    """Counts its calls in a buffer, which it reads or not."""

    def __init__(self, is_read: bool, in_place: bool) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.is_read, self.in_place = is_read, in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.in_place:
            self.count[:2] += 1
        else:
            self.count = self.count + 1
        return x * self.count[0] if self.is_read else x + 1


@pytest.mark.parametrize("shapes", [None, ({0: "batch"},)], ids=["static", "dynamic"])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("exported", [False, True])
def test_a_buffer_that_changes(exported: bool, is_read: bool, in_place: bool, shapes: Any) -> None:
    """The graph computes the first call, with a warning if the second one gives other results."""
    mod: Any = _Counted(is_read, in_place).eval()
    given = mod
    if exported:
        dims = shapes and ({0: torch.export.Dim("batch")},)
        given = torch.export.export(mod, (X,), dynamic_shapes=dims)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        onx = to_onnx(given, (X,), dynamic_shapes=shapes)
    messages = [str(w.message) for w in found]
    assert len(messages) == is_read
    assert all("changes self.count when it is called, and its results" in m for m in messages)
    assert not mod.count.any()
    (got,) = ReferenceEvaluator(onx).run(None, {onx.graph.input[0].name: X.numpy()})
    np.testing.assert_array_equal(got, X if is_read else X + 1)


def test_a_buffer_that_training_changes() -> None:
    """The statistics of a layer in training do not change its results."""
    mod = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).train()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        to_onnx(mod, (X,))
    assert not [w for w in found if "when it is called" in str(w.message)]


def test_a_buffer_without_data() -> None:
    """A model that does not run gives no warning about the buffers that it changes."""
    with torch.device("meta"):
        mod = _Counted(True, True).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_onnx(mod, (X,), export_options=ExportOptions(fake=True))


def test_the_message_names_three_attributes() -> None:
    names = [f"self.results[{i}]" for i in range(5)]
    message = state_message(_Parts(), (X,), {}, names)
    assert "self.results[0], self.results[1], self.results[2] and 2 more when" in message


def test_tensors_are_as_before() -> None:
    """A buffer or an attribute is changed in place, or replaced."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("mean", torch.zeros(()))
            self.total = torch.zeros(())
            self.last: Any = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            self.total.add_(x.sum())
            self.mean = self.mean + x.mean()
            self.last = x * self.count
            return self.last

    mod = Model()
    before, total = dict(mod.named_buffers()), mod.total
    assert "its results depend" in state_message(mod, (X,), {}, ["self.last"])
    assert all(b is before[name] and b == 0 for name, b in mod.named_buffers())
    assert mod.last is None and mod.total is total and total == 0


def test_a_model_without_data() -> None:
    """What cannot be run may be a state."""
    options = ExportOptions(fake=True)
    with torch.device("meta"):
        mod = torch.nn.Sequential(torch.nn.Linear(4, 4), _Last()).eval()
    with pytest.warns(UserWarning, match=r"self\.1\.last when .* does not run here a second time"):
        to_onnx(mod, (X,), export_options=options)


def test_other_warnings_are_shown() -> None:
    text = "The tensor attribute self.a was assigned during export. Such attributes"
    weights = "The tensor attributes self._flat_weights[0], self.rnn._flat_weights[1] were assigned"
    with pytest.warns(UserWarning) as found, assigned_attributes() as names:
        for message in (text, f"{weights} during export. Such", "another"):
            warnings.warn(message, stacklevel=1)
    assert [str(w.message) for w in found] == ["another"]
    assert names == ["self.a"]


class _Half(torch.nn.Module):
    """Its export starts again: a number is computed from a size."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = self.last + x.sum().reshape(1)
        return x[: int(x.shape[0] * 0.5)] + self.last


def test_an_attribute_is_named_once() -> None:
    with pytest.warns(UserWarning, match=r"The model changes self\.last when it is called"):
        to_onnx(_Half(), (torch.ones(8),), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}})
