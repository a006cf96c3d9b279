"""Custom operators that modify an argument."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct, assert_same, run_ort

from torch_interpreter import ConversionError, Dispatcher, FunctionNotFoundError, to_onnx

LIBRARY = "test_mutable_operators"


@torch.library.custom_op(f"{LIBRARY}::add_to", mutates_args=("y",))
def add_to(x: torch.Tensor, y: torch.Tensor) -> None:
    y.add_(x)


@torch.library.custom_op(f"{LIBRARY}::move", mutates_args=("a", "b"))
def move(a: torch.Tensor, b: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    b.add_(a * factor)
    a.zero_()
    return b.sum()


@move.register_fake
def _(a, b, factor=2.0):
    return a.new_empty(())


@torch.library.custom_op(f"{LIBRARY}::maybe", mutates_args=("y",))
def maybe(x: torch.Tensor, y: torch.Tensor | None) -> None:
    if y is not None:
        y.add_(x)


def convert_add(g, sts, outputs, x, y):
    return g.op.Add(x, y, outputs=outputs)


def convert_move(g, sts, outputs, a, b, factor=2.0):
    import numpy as np

    moved = g.op.Add(b, g.op.Mul(a, np.array(factor, dtype=np.float32)))
    total = g.op.ReduceSumAnyOpset(moved, keepdims=0)
    return total, g.op.Sub(a, a), moved


DISPATCHER = Dispatcher({f"{LIBRARY}::add_to": convert_add, f"{LIBRARY}::move": convert_move})
X, Y = torch.randn(3, 4), torch.randn(3, 4)


def calls_add(x, y):
    y = y.clone()
    add_to(x, y)
    add_to(x, y)
    return y * 2


def calls_move(x, y):
    a, b = x + 1, y * 3
    total = move(a, b, factor=0.5)
    return total, a, b


@pytest.mark.parametrize("fct", [calls_add, calls_move])
@pytest.mark.parametrize("dynamic", [False, True])
def test_modified_arguments(fct, dynamic):
    shapes = (({0: "n"}, {0: "n"}),) if dynamic else None
    onx = to_onnx(Fct(fct), (X, Y), dynamic_shapes=shapes, dispatcher=DISPATCHER)
    for n in (3, 2) if dynamic else (3,):
        assert_same(fct(X[:n], Y[:n]), run_ort(onx, [X[:n], Y[:n]]), 1e-5)


def test_without_converter():
    with pytest.raises(FunctionNotFoundError, match=r"which modifies \['y'\]") as info:
        to_onnx(Fct(calls_add), (X, Y))
    assert f"Dispatcher({{'{LIBRARY}::add_to': fct}})" in str(info.value)


def test_an_argument_that_is_not_given():
    def fct(x):
        maybe(x, None)
        return x + 1

    dispatcher = Dispatcher({f"{LIBRARY}::maybe": lambda g, sts, outputs, x, y: []})
    onx = to_onnx(Fct(fct), (X,), dispatcher=dispatcher)
    assert_same(X + 1, run_ort(onx, [X]), 1e-6)


def a_slice(x, y):
    y = y.clone()
    add_to(x[:1], y[1:2])
    add_to(x[:, :2], y[:, 1:3])
    return y


def a_row_and_a_column(x, y):
    y = y.clone()
    add_to(x[0], y[1])
    add_to(x[:, 2], y[:, 3])
    return y.relu()


def parts_of_one_tensor(x, y):
    y = y.clone()
    total = move(y[:1], y[1:2])
    return total, y


@pytest.mark.parametrize("fct", [a_slice, a_row_and_a_column, parts_of_one_tensor])
@pytest.mark.parametrize("strategy", ["nostrict", "strict"])
def test_a_part_of_a_tensor(fct, strategy):
    options = {"dispatcher": DISPATCHER, "export_options": strategy}
    onx = to_onnx(Fct(fct), (X, Y), **options)
    assert_same(fct(X, Y), run_ort(onx, [X, Y]), 1e-5)
    onx = to_onnx(Fct(fct), (X, Y), dynamic_shapes=(({0: "n"}, {0: "n"}),), **options)
    for n in (3, 2):
        assert_same(fct(X[:n], Y[:n]), run_ort(onx, [X[:n], Y[:n]]), 1e-5)


def test_a_part_of_a_transposed_tensor_is_refused():
    def fct(x, y):
        y = y.t().clone(memory_format=torch.preserve_format)
        add_to(x[0], y[:, 0])
        return y

    with pytest.raises(ConversionError, match="Argument 'y' .* not contiguous"):
        to_onnx(Fct(fct), (X, Y), dispatcher=DISPATCHER)


def test_wrong_number_of_results():
    dispatcher = Dispatcher({f"{LIBRARY}::move": lambda g, sts, outputs, a, b, factor: [a]})
    with pytest.raises(ConversionError, match="returns 1 results, 3 are expected"):
        to_onnx(Fct(calls_move), (X, Y), dispatcher=dispatcher)
