"""Calls of torch.cond, len, int, float and isinstance while a model is traced."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, op_types, run_ort

from torch_interpreter import CustomTracer, ExportOptions, to_onnx
from torch_interpreter.exporting.traced_calls import length_of, recorded_calls

TRACING = ExportOptions(tracing=True)


class Cond(torch.nn.Module):
    """The branches use modules, one of which is in no other place."""

    def __init__(self):
        super().__init__()
        self.shared = torch.nn.Linear(4, 4)
        self.blocks = torch.nn.ModuleDict({"yes": torch.nn.Linear(4, 4), "no": torch.nn.ReLU()})

    def forward(self, x):
        def if_true(x, y):
            return self.blocks["yes"](x) + y

        def if_false(x, y):
            return x - y

        y = self.blocks["no"](self.shared(x))
        return torch.cond(x.sum() > 0, if_true, if_false, (x, y)) * 2


class Twice(torch.nn.Module):
    def forward(self, x):
        for _ in range(2):
            x = torch.cond(x.sum() > 0, lambda x: x - 3, lambda x: x + 1, [x])
        return x


class Length(torch.nn.Module):
    def forward(self, x, others):
        return x * len(x) + others[0] * len(others)


class Instance(torch.nn.Module):
    def forward(self, x, others):
        if isinstance(others, torch.Tensor):
            return x - others
        return x + others[0] if isinstance(x, torch.Tensor) else -x


class Numbers(torch.nn.Module):
    """Numbers of Python made of dimensions and of the content of tensors."""

    def forward(self, x):
        n = int(x.shape[0] / 2) if isinstance(n := 3, int) else n
        scale = float(x.shape[1]) if isinstance(1.5, float) else 0
        return x[:n] * scale + int("1") + float(2)


X = torch.randn(3, 4)


@pytest.mark.parametrize("model", [Cond(), Twice()], ids=["modules", "two"])
def test_cond(model):
    onx = to_onnx(model, (X,), dynamic_shapes=({0: "n"},), export_options=TRACING)
    assert op_types(onx).count("If") == (2 if isinstance(model, Twice) else 1)
    for x in (torch.ones(5, 4), -torch.ones(2, 4)):
        assert_same(model(x), run_ort(onx, [x]), 1e-5)
    names = {i.name for i in to_onnx(Cond(), (X,), export_options=TRACING).graph.initializer}
    assert not any("lifted" in name for name in names)


def test_without_placeholder_nothing_is_recorded():
    x = torch.ones(2)
    with recorded_calls(Twice(), {}):
        assert torch.equal(torch.cond(x.sum() > 0, torch.neg, torch.abs, (x,)), -x)


@pytest.mark.parametrize("model", [Length(), Instance()], ids=["len", "isinstance"])
def test_python_functions(model):
    dims = ({0: "n"}, [{0: "n"}, {0: "n"}])
    args = (X, [X + 1, X + 2])
    onx = to_onnx(model, args, dynamic_shapes=dims, export_options=TRACING)
    for n in (3, 2):
        feeds = [v[:n] for v in (X, X + 1, X + 2)]
        expected = model(feeds[0], feeds[1:])
        assert_same(expected, run_ort(onx, feeds[: len(onx.graph.input)]), 1e-5)


def test_names_are_given_back():
    scope, cond = Length.forward.__globals__, torch.cond
    with pytest.raises(ValueError, match="inside"), recorded_calls(Length(), {"x": X}):
        assert {"len", "isinstance"} <= scope.keys() and torch.cond is not cond
        assert scope["len"]([1, 2]) == 2 and scope["isinstance"](X, torch.Tensor)
        raise ValueError("inside")
    assert not {"len", "isinstance"} & scope.keys() and torch.cond is cond


def test_length_of():
    assert length_of(X) == 3 and length_of([1, 2]) == 2


def test_numbers():
    onx = to_onnx(Numbers(), (X,), dynamic_shapes=({0: "n"},), export_options=TRACING)
    for x in (X, torch.randn(6, 4)):
        assert_same(Numbers()(x), run_ort(onx, [x]), 1e-5)


class Loops(torch.nn.Module):
    """Loops on arguments, and questions about their parts."""

    def forward(self, xs, named, *more):
        y = more[0] * 0
        for i, x in enumerate(xs):
            y = y + x * i
        for i in range(len(xs)):
            y = y - xs[i]
        for k in named:
            y = y + named[k]
        for k, v in named.items():
            y = y * v if k in named.keys() else y  # noqa: SIM118
        for v in named.values():
            y = y + v
        for v in more if more else ():
            y = y * v + len(v.shape)
        return y - xs[0] if isinstance(xs[1], torch.Tensor) and not named["k"].is_sparse else y


def test_loops():
    args = ([X, X + 1], {"k": X * 2, "l": X - 1}, X, X + 2)
    dims = {"xs": [{0: "n"}] * 2, "named": {"k": {0: "n"}, "l": {0: "n"}}, "more": ({0: "n"},) * 2}
    onx = to_onnx(Loops(), args, dynamic_shapes=dims, export_options=TRACING)
    values = [v[:2] for v in (X, X + 1, X * 2, X - 1, X, X + 2)]
    expected = Loops()(values[:2], {"k": values[2], "l": values[3]}, *values[4:])
    assert_same(expected, run_ort(onx, values), 1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [v for v in x],  # noqa: C416
        lambda x: [v for v in x.unbind()],  # noqa: C416
        lambda x: [v for v in (x + 1).T],  # noqa: C416
        lambda x: x if x.shape[0] else -x,
        lambda x: x if x.sum() else -x,
    ],
    ids=["tensor", "method", "result", "size", "content"],
)
def test_what_a_placeholder_does_not_answer(function):
    class Asked(torch.nn.Module):
        def forward(self, x):
            return function(x)

    with pytest.raises(torch.fx.proxy.TraceError):
        CustomTracer(arguments={"x": X}).trace(Asked())


def test_a_part_that_does_not_exist():
    class Third(torch.nn.Module):
        def forward(self, xs):
            return [v for v in xs[2]]  # noqa: C416

    with pytest.raises(torch.fx.proxy.TraceError, match="cannot be iterated"):
        CustomTracer(arguments={"xs": [X, X]}).trace(Third())
