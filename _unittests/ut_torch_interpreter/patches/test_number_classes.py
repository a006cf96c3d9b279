"""A size has the class of a number of Python for the code of a model."""

from __future__ import annotations

import numbers
import re
import sys
import types

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export, run_ort

from torch_interpreter import to_onnx
from torch_interpreter.patches.number_classes import CLASS_NAMES, classes_as_types, stand_in

X = torch.randn(3, 8)
DYNAMIC = ({0: "a", 1: "n"},)
OTHERS = [(torch.randn(2, 5),), (torch.randn(5, 16),)]
CLASSES = {
    "an int": lambda n: isinstance(n, int),
    "one of two": lambda n: isinstance(n, (float, int)),
    "a union": lambda n: isinstance(n / 2, int | float),
    "an abstract class": lambda n: isinstance(n, numbers.Integral),
    "no float": lambda n: not isinstance(n, float),
    "a condition": lambda n: isinstance(n > 9, bool),
    "the same class": lambda n: type(n) is int,
    "an equal class": lambda n: type(n * 0.5) == float,  # noqa: E721
    "a key": lambda n: {int: True, float: False}[type(n)],
    "no class of torch": lambda n: not isinstance(n, torch.Tensor),
}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_class_of_a_size(name):
    condition = CLASSES[name]
    onx = check_export(lambda x: x * (2 if condition(x.shape[1]) else 3), (X,), DYNAMIC, OTHERS)
    assert [node.op_type for node in onx.graph.node] == ["Mul"]


class Paired(torch.nn.Module):
    """The base of a model, and an object it holds, are in files of others."""

    def __init__(self, compute):
        super().__init__()
        self.compute = compute

    def forward(self, x):
        return x * self.compute(x.shape[1])


@pytest.mark.parametrize("how", ["a function", "a module", "an object", "a base class"])
def test_the_class_of_a_size_in_another_file(how, monkeypatch):
    """What a file imports sees the classes its own code sees."""
    other = types.ModuleType("sizes_of_somebody")
    other.torch, other.Paired = torch, Paired
    code = """if True:
        def twice(n): return 2 * n if isinstance(n, int) else 7
        class Twice:
            def __call__(self, n): return twice(n)
        class Base(Paired):
            def forward(self, x): return x * (self.compute(3) + twice(x.shape[1]))
    """
    exec(code, vars(other))
    monkeypatch.setitem(sys.modules, other.__name__, other)
    if how == "a function":
        monkeypatch.setitem(globals(), "twice", other.twice)
        model = Paired(lambda n: twice(n))  # noqa: F821
    elif how == "a module":
        monkeypatch.setitem(globals(), "other", other)
        model = Paired(lambda n: other.twice(n))
    elif how == "an object":
        model = Paired(other.Twice())
    else:
        model = type("Derived", (other.Base,), {})(lambda n: n)
    check_export(model, (X,), DYNAMIC, OTHERS)
    assert "isinstance" not in vars(other)


def test_the_functions_of_the_file_come_back():
    to_onnx(Fct1(lambda x: x * (2 if isinstance(x.shape[1], int) else 3)), (X,))
    assert "isinstance" not in globals() and "type" not in globals()


def test_type_is_still_a_class():
    kind, instance = CLASS_NAMES["type"], CLASS_NAMES["isinstance"]
    assert kind(3) is int and kind(kind(3)) is type
    assert instance(int, kind) and issubclass(type, kind) and kind == type  # noqa: E721
    assert kind("A", (), {"b": 1}).b == 1
    with pytest.raises(TypeError):
        instance(3, 4)


def test_a_call_that_converts():
    number = stand_in(int, (str,), len)
    assert number("abc") == 3 and number("11", base=2) == 3 and number(2.5) == 2
    assert {number: 1}[int] == 1 and number.from_bytes(b"\x01", "big") == 1


TYPED = {
    "to": lambda x, n: x.to(int) * n,
    "a keyword": lambda x, n: x.to(dtype=int) * n,
    "a function": lambda x, n: torch.zeros(2, dtype=int) + n,
    "a reduction": lambda x, n: x.sum(dim=1, dtype=float) * float(n),
    "new values": lambda x, n: x.new_ones(n, dtype=float),
    "a constant": lambda x, n: torch.tensor([1.5], dtype=int) * n,
    "a softmax": lambda x, n: torch.softmax(x[:, :n], 1, dtype=float),
    "a draw": lambda x, n: torch.normal(0.5, 0.0, (2,), dtype=float) * float(n),
}


class Typed(torch.nn.Module):
    def __init__(self, compute):
        super().__init__()
        self.compute = compute

    def forward(self, x):
        return self.compute(x, int(x.shape[1] * 0.5))


@pytest.mark.parametrize("name", sorted(TYPED))
@pytest.mark.parametrize("strategy", ["nostrict", "tracing"])
def test_a_class_is_the_type_of_a_tensor(name, strategy):
    """`int` is another class in this file, since it is called with a size."""
    model = Typed(TYPED[name])
    onx = to_onnx(model, (X,), dynamic_shapes=DYNAMIC, export_options=strategy)
    for (x,) in OTHERS:
        (got,) = run_ort(onx, [x])
        expected = model(x).numpy()
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_functions_of_torch_come_back():
    number, to, zeros = stand_in(int, (str,), len), torch.Tensor.to, torch.zeros
    with classes_as_types():
        assert torch.ones(2).type(torch.float64).to(number).dtype == torch.int64
    assert torch.zeros is zeros and torch.Tensor.to is to and "to" not in vars(torch.Tensor)
    with pytest.raises(TypeError, match="dtype"):
        torch.zeros(2, dtype=number)


def test_every_function_with_a_type():
    """Those of torch with a `dtype` that makes or computes tensors, but sparse and quantized ones."""
    documented = {
        name for name in dir(torch) if re.search(r"\bdtype=None", str(getattr(torch, name).__doc__))
    }
    left_out = {n for n in documented if re.match("sparse|quantize|.*_window$|from", n)}
    with classes_as_types():
        wrapped = {n for n in documented if hasattr(getattr(torch, n), "__wrapped__")}
    assert documented - left_out <= wrapped
