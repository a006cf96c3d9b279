"""Models that keep a state in their attributes."""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections import deque
from operator import length_hint
from typing import Any

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from torch_interpreter import ExportOptions, to_onnx
from torch_interpreter.checking.own_attributes import restored_attributes
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


COUNTS = {"calls": 0}
CALLS = 0


class _Step:
    """An object that counts."""

    def __init__(self) -> None:
        self.count = 0


class _Slot:
    """An object without a dictionary, which counts."""

    __slots__ = ("count", "unset")

    def __init__(self) -> None:
        self.count = 0


class _Counts(torch.nn.Module):
    """Counts its calls in a value of Python."""

    total = 0

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.n, self.seen, self.nested, self.step = 0, [0], {"a": {"calls": 0}}, _Step()
        self.last, self.draws = deque([1], maxlen=3), random.Random(0)
        self.kinds = {1}
        self.slot, self.numbers, self.items = _Slot(), itertools.count(), iter([3, 5, 7, 9] * 9)
        self.pairs, self.turns = (
            zip([2, 4] * 9, [2, 4] * 9, strict=True),
            itertools.cycle([3, 5, 7]),
        )
        self.held = {"a": [enumerate([5, 7, 9] * 9)]}

    def count(self) -> float:
        """The number of calls, or a random number."""
        global CALLS
        match self.place:
            case "attribute":
                self.n += 1
                return self.n
            case "list":
                self.seen.append(1)
                return len(self.seen)
            case "set":
                self.kinds.add(len(self.kinds) + 1)
                return len(self.kinds)
            case "dictionary":
                self.nested["a"]["calls"] += 1
                return self.nested["a"]["calls"]
            case "deque":
                self.last.append(self.last[-1] + 1)
                return self.last[-1]
            case "object":
                self.step.count += 1
                return self.step.count
            case "slot":
                self.slot.count += 1
                return self.slot.count
            case "count":
                return next(self.numbers)
            case "iterator":
                return next(self.items)
            case "iterators":
                return sum(next(self.pairs))
            case "cycle":
                return next(self.turns)
            case "item that is an iterator":
                return sum(next(self.held["a"][0]))
            case "class":
                type(self).total += 1
                return self.total
            case "item of a global":
                COUNTS["calls"] += 1
                return COUNTS["calls"]
            case "global":
                CALLS += 1
                return CALLS
            case "generator":
                return self.draws.random()
            case "random":
                return random.random()
            case _:
                return float(np.random.rand())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.count()


PLACES = {
    "attribute": "self.0.n",
    "list": "self.0.seen",
    "set": "self.0.kinds",
    "dictionary": "self.0.nested",
    "deque": "self.0.last",
    "object": "self.0.step.count",
    "slot": "self.0.slot.count",
    "count": "self.0.numbers",
    "iterator": "self.0.items",
    "iterators": "self.0.pairs",
    "cycle": "self.0.turns",
    "item that is an iterator": "self.0.held",
    "class": "_Counts.total",
    "global": "CALLS",
    "item of a global": "COUNTS",
    "generator": "self.0.draws",
    "random": "the generator of random",
    "numpy": "the generator of numpy.random",
}


def _state(mod: _Counts) -> list[str]:
    """All that the model may change."""
    values = {**vars(mod), "step": mod.step.count, "draws": mod.draws.getstate()}
    read = {"pairs": mod.pairs, "turns": mod.turns, "held": mod.held["a"][0]}
    left = {name: length_hint(i.__reduce__()[1][0]) for name, i in read.items()}
    values |= {"slot": mod.slot.count, "items": length_hint(mod.items), **left}
    state = (_Counts.total, COUNTS, CALLS, random.getstate(), np.random.get_state())
    return [str(values), str(state)]


@pytest.mark.parametrize("shapes", [None, ({0: "batch"},)], ids=["static", "dynamic"])
@pytest.mark.parametrize(("place", "name"), PLACES.items())
def test_a_state_of_python_is_a_warning(place: str, name: str, shapes: Any) -> None:
    """The model is left as it was, and the message has the line."""
    mod = torch.nn.Sequential(_Counts(place)).eval()
    before = _state(mod[0])
    text = (
        rf"changes {re.escape(name)} when it .* It changes at {re.escape(__file__)}:\d+, in count"
    )
    with pytest.warns(UserWarning, match=text) as found:
        to_onnx(mod, (X,), dynamic_shapes=shapes)
    assert len(found) == 1
    assert _state(mod[0]) == before


class _Ignored(torch.nn.Module):
    """Counts its calls, which its results do not depend on, and caches what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.shapes, self.known = 0, [()], dict[int, Any]()
        self.is_drawn = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n += 1
        self.shapes[0] = x.shape
        drawn = random.random()
        if 3 not in self.known:
            self.known[3] = torch.arange(4)
        return x + self.known[3] + (drawn if self.is_drawn else 0)


@pytest.mark.parametrize("shapes", [None, ({0: "batch"},)], ids=["static", "dynamic"])
def test_values_that_the_results_do_not_read(shapes: Any) -> None:
    mod = _Ignored()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_onnx(mod, (X,), dynamic_shapes=shapes, validate_onnx=True)
    assert (mod.n, mod.shapes, mod.known) == (0, [()], {})


def test_a_copy_is_no_change() -> None:
    """torch.export gives back copies of the containers."""
    mod = _Ignored()
    with restored_attributes(mod) as names:
        mod.shapes, mod.known = list(mod.shapes), dict(mod.known)
    assert names == []


def test_many_values_have_no_line():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.counts = [0] * 5000

        def forward(self, x):
            self.counts[1] += 1
            return x * self.counts[1]

    message = state_message(Counter(), (torch.ones(2),), {}, (), ["self.counts"])
    assert "The model changes self.counts" in message
    assert "It changes at" not in message
