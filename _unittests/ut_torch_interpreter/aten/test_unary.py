"""Elementwise functions of one tensor."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter.aten.unary import FLOAT_FUNCTIONS, SAME_TYPE_FUNCTIONS

DYNAMIC = ({0: "batch"},)
# a domain every function accepts
POSITIVE = torch.tensor([[0.1, 0.5, 0.9], [0.25, 1.0, 0.75]])
ABOVE_ONE = POSITIVE + 1
SIGNED = torch.tensor([[-2.5, -0.5, 0.0], [0.5, 1.5, 7.25]])
INTEGERS = torch.tensor([[1, 2, 3], [-4, 0, 6]])
SPECIAL = torch.tensor([[float("nan"), float("inf"), -float("inf")], [0.0, -0.0, 1.0]])


@pytest.mark.parametrize("name", sorted(FLOAT_FUNCTIONS))
def test_float_function(name):
    fct = getattr(torch, name)
    x = ABOVE_ONE if name == "acosh" else POSITIVE * 0.9
    onx = check_export(fct, (x,), DYNAMIC, [(x[:1],), (x[:0],)])
    assert op_types(onx) == [FLOAT_FUNCTIONS[name]]


@pytest.mark.parametrize("name", ["exp", "sin", "sigmoid", "sqrt"])
def test_float_function_of_integers(name):
    onx = check_export(getattr(torch, name), (INTEGERS.abs(),))
    assert op_types(onx)[0] == "Cast"


@pytest.mark.parametrize("name", ["cos", "exp", "log", "tanh"])
def test_float_function_float16_scalar(name):
    check_export(getattr(torch, name), (POSITIVE.to(torch.float16),), atol=1e-2)
    check_export(getattr(torch, name), (torch.tensor(0.5),))


@pytest.mark.parametrize("name", sorted(SAME_TYPE_FUNCTIONS))
@pytest.mark.parametrize("values", [SIGNED, INTEGERS], ids=["float", "int64"])
def test_same_type_function(name, values):
    check_export(getattr(torch, name), (values,), DYNAMIC, [(values[:1],)])


@pytest.mark.parametrize(
    "name",
    [
        "ceil",
        "floor",
        "round",
        "trunc",
        "frac",
        "square",
        "rsqrt",
        "log1p",
        "expm1",
        "erfc",
        "log2",
        "log10",
        "exp2",
    ],
)
def test_float_only(name):
    x = POSITIVE if name in ("rsqrt", "log2", "log10", "log1p") else SIGNED
    check_export(getattr(torch, name), (x,), DYNAMIC, [(x[:1],)])


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc"])
def test_rounding_of_integers(name):
    check_export(getattr(torch, name), (INTEGERS,))


@pytest.mark.parametrize("name", ["rsqrt", "log2", "exp2", "log1p", "erfc"])
def test_integers_become_floats(name):
    check_export(getattr(torch, name), (INTEGERS.abs() + 1,))


@pytest.mark.parametrize("decimals", [0, 1, -1])
def test_round_decimals(decimals):
    x = torch.tensor([1.26, -3.14, 25.0, 0.55])
    check_export(lambda x: torch.round(x, decimals=decimals), (x,))


@pytest.mark.parametrize(
    "name", ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "nan_to_num", "signbit"]
)
def test_special_values(name):
    check_export(getattr(torch, name), (SPECIAL,), DYNAMIC, [(SPECIAL[:1],)])


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_special_values_float16(name):
    check_export(getattr(torch, name), (SPECIAL.to(torch.float16),))


def test_nan_to_num_by_default_is_a_clip():
    onx = check_export(torch.nan_to_num, (SPECIAL,))
    assert sorted(op_types(onx)) == ["Clip", "IsNaN", "Where"]
    check_export(lambda x: torch.nan_to_num(x, nan=float("inf")), (SPECIAL,))


def test_nan_to_num_values():
    check_export(lambda x: torch.nan_to_num(x, 1.0, 2.0, -2.0), (SPECIAL,))
    check_export(lambda x: torch.nan_to_num(x, nan=5.0), (SPECIAL.to(torch.float16),))


@pytest.mark.parametrize("values", [INTEGERS, SIGNED, INTEGERS > 0], ids=["int64", "float", "bool"])
def test_logical_not(values):
    check_export(torch.logical_not, (values,))


@pytest.mark.parametrize("opset", [17, 18])
@pytest.mark.parametrize("values", [INTEGERS, INTEGERS > 0], ids=["int64", "bool"])
def test_bitwise_not(values, opset):
    check_export(torch.bitwise_not, (values,), target_opset=opset)


def test_signbit_integers():
    check_export(torch.signbit, (INTEGERS,))


def test_angle():
    check_export(torch.angle, (SIGNED,))
    check_export(torch.angle, (SPECIAL,))
    check_export(torch.angle, (INTEGERS,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_sign_of_nan(dtype):
    x = torch.tensor([float("nan"), 1.5, 0.0, -3.0], dtype=dtype)
    check_export(lambda x: (torch.sign(x), torch.sgn(x)), (x,))


def test_sign_of_integers_and_booleans():
    check_export(torch.sign, (torch.tensor([4, -2, 0]),))
    check_export(torch.sign, (torch.tensor([True, False]),))
