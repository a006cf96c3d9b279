"""Comparisons, logic, bits, choices."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

DYNAMIC = ({0: "batch"}, {0: "batch"})
X = torch.tensor([[1.5, -2.0, 3.0], [7.25, -5.0, 0.5]])
Y = torch.tensor([[1.5, 3.0, -1.5], [-2.0, -5.0, 0.25]])
I = torch.tensor([[7, -7, 5], [-5, 9, 1]])  # noqa: E741
J = torch.tensor([[2, 2, 5], [-5, 4, 1]])
B = torch.tensor([[True, False, True], [False, False, True]])
C = torch.tensor([[True, True, False], [False, True, True]])
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize(
    "values",
    [(X, Y), (I, J), (B, C), (X, J), (I, Y), (X.to(torch.float16), Y.to(torch.float16))],
    ids=["float", "int64", "bool", "float-int", "int-float", "half"],
)
def test_comparison(name, values):
    x, y = values
    check_export(getattr(torch, name), values, DYNAMIC, [(x[:1], y[:1]), (x[:0], y[:0])])


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("scalar", [1, 1.5])
def test_comparison_scalar(name, scalar):
    check_export(lambda x: getattr(torch, name)(x, scalar), (X,))
    check_export(lambda x: getattr(torch, name)(x, scalar), (I,))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.int8])
def test_integers_that_are_not_zero(dtype):
    onx = check_export(lambda x: (x != 0).float(), ((I - 7).to(dtype),))
    assert op_types(onx) == ["Cast", "Cast"]
    onx = check_export(lambda x: x != 0, (torch.tensor([0.0, -0.0, float("nan"), 0.25]),))
    assert op_types(onx) == ["Equal", "Not"]


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("values", [(B, C), (I, J), (X, B)], ids=["bool", "int64", "mixed"])
def test_logical(name, values):
    check_export(getattr(torch, name), values)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise(name):
    check_export(getattr(torch, name), (B, C))
    check_export(getattr(torch, name), (I, J))
    check_export(lambda x: getattr(torch, name)(x, 3), (I,))
    check_export(getattr(torch, name), (I.to(torch.int32), J.to(torch.int32)))


def test_bitwise_operators():
    check_export(lambda x, y: (x & y, x | y, x ^ y), (B, C))
    check_export(lambda x: (x & 1, x | 2, x ^ 3), (I,))


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shift(name):
    check_export(getattr(torch, name), (I, torch.tensor([[1, 2, 3], [0, 1, 2]])))
    check_export(lambda x: getattr(torch, name)(x, 2), (I,))


def test_shift_operators():
    check_export(lambda x: (x << 1, x >> 1), (I,))


def test_where():
    check_export(torch.where, (B, X, Y), ({0: "a"}, {0: "a"}, {0: "a"}), [(B[:1], X[:1], Y[:1])])
    check_export(torch.where, (B, X, J))
    check_export(lambda b, x: torch.where(b, x, 1.0), (B, X))
    check_export(lambda b, x: torch.where(b, -float("inf"), x), (B, X))
    check_export(lambda b: torch.where(b, 1.0, 2.0), (B,))
    check_export(lambda b, x: torch.where(b, x, 2), (B, X.to(torch.float16)))


def test_masked_fill():
    check_export(lambda b, x: x.masked_fill(b, -1.5), (B, X))
    check_export(lambda b, x: x.masked_fill(b[:1], torch.tensor(2.0)), (B, X))
    check_export(lambda b, x: x.masked_fill(b, 3), (B, I))
    check_export(lambda b, x: x.masked_fill_(b, -float("inf")), (B, X))


@pytest.mark.parametrize("bounds", [(0, 2), (None, 1.5), (-1, None), (2, 0)], ids=str)
@pytest.mark.parametrize("values", [X, I, X.to(torch.float16)], ids=["float", "int64", "half"])
def test_clamp(bounds, values):
    check_export(lambda x: torch.clamp(x, *bounds), (values,), ({0: "a"},), [(values[:1],)])


def test_clamp_tensors():
    check_export(lambda x, y: torch.clamp(x, y, y + 1), (X, Y))
    check_export(lambda x, y: torch.clamp(x, max=y), (X, Y))
    check_export(lambda x: (torch.clamp_min(x, 0), torch.clamp_max(x, 1)), (X,))
    check_export(lambda x, y: (torch.clamp_min(x, y), torch.clamp_max(x, y)), (X, Y))
    check_export(lambda x: torch.clamp(x, max=x.shape[0]), (X,), ({0: "a"},), [(X[:1],)])


def test_clamp_is_a_clip():
    assert op_types(check_export(lambda x: torch.clamp(x, 0, 1), (X,))) == ["Clip"]


def test_isclose():
    near = X + torch.tensor([1e-9, 1e-3, 0.0])
    check_export(torch.isclose, (X, near))
    check_export(lambda x, y: torch.isclose(x, y, atol=1e-2), (X, near))
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])
    other = torch.tensor([float("nan"), float("inf"), float("inf"), float("inf")])
    check_export(torch.isclose, (special, other))
    check_export(lambda x, y: torch.isclose(x, y, equal_nan=True), (special, other))
    check_export(torch.isclose, (I, J))


def test_heaviside():
    check_export(torch.heaviside, (torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5, 0.25, 1.0])))


def test_choices_between_booleans():
    x = torch.rand(3, 4)
    a, b = x > 0.5, x > 0.3
    dynamic, others = ({0: "a"}, {0: "a"}), [(b[:1], a[:1])]
    check_export(lambda x, y: (torch.where(x, y, ~y), torch.where(x, y, True)), (a, b), dynamic)
    check_export(lambda x, y: x.masked_fill(y, True), (a, b), dynamic, others)
    check_export(lambda x, y: torch.masked_scatter(x, y, torch.tensor([True] * 12)), (a, b))
    check_export(lambda x, y: x.index_put((y,), torch.tensor(True)), (a, b))
    check_export(lambda x: x.index_fill(0, torch.tensor([1]), True), (a,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_a_single_bound_keeps_infinities(dtype):
    x = torch.tensor([float("inf"), -float("inf"), 1.0, -2.0])
    x = x.to(dtype) if dtype.is_floating_point else torch.tensor([2**62, -(2**62), 1])
    check_export(lambda x: (x.clamp(min=0), x.clamp(max=0)), (x,))
