"""A size has the class of a number of Python for the code of a model."""

from __future__ import annotations

import numbers

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export

from torch_interpreter import to_onnx
from torch_interpreter.patches.number_classes import CLASS_NAMES, stand_in

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
