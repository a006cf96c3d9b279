"""Arithmetic on two tensors, type promotion."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

DYNAMIC = ({0: "batch"}, {0: "batch"})
X = torch.tensor([[1.5, -2.0, 3.0], [7.25, -5.0, 0.5]])
Y = torch.tensor([[2.0, 3.0, -1.5], [-2.0, 4.0, 0.25]])
I = torch.tensor([[7, -7, 5], [-5, 9, 1]])  # noqa: E741
J = torch.tensor([[2, 2, -3], [-3, 4, 1]])
B = torch.tensor([[True, False, True], [False, False, True]])
FLOATS = (X, Y)
INTS = (I, J)
OPERATIONS = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "rsub": torch.rsub,
}
FLOAT_ONLY = {
    "atan2": torch.atan2,
    "logaddexp": torch.logaddexp,
    "xlogy": lambda x, y: torch.xlogy(x, y.abs()),
    "pow": lambda x, y: torch.pow(x.abs(), y),
}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.parametrize("values", [FLOATS, INTS], ids=["float", "int64"])
def test_same_types(name, values):
    x, y = values
    check_export(OPERATIONS[name], values, DYNAMIC, [(x[:1], y[:1]), (x[:0], y[:0])])


@pytest.mark.parametrize("name", sorted(FLOAT_ONLY))
def test_float_only(name):
    check_export(FLOAT_ONLY[name], FLOATS, DYNAMIC, [(X[:1], Y[:1])])


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_mixed_types(name):
    check_export(OPERATIONS[name], (X, J))
    check_export(OPERATIONS[name], (I, Y))
    check_export(OPERATIONS[name], (X.to(torch.float16), Y), atol=1e-2)
    check_export(OPERATIONS[name], (I.to(torch.int32), J))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("scalar", [2, 1.5, -3])
@pytest.mark.parametrize("values", [X, I, X.to(torch.float16)], ids=["float", "int64", "half"])
def test_scalar(name, scalar, values):
    atol = 1e-2 if values.dtype == torch.float16 else 1e-5
    check_export(lambda x: OPERATIONS[name](x, scalar), (values,), atol=atol)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_zero_rank(name):
    check_export(OPERATIONS[name], (torch.tensor(3.0), torch.tensor(2)))
    check_export(OPERATIONS[name], (X, torch.tensor(2.0, dtype=torch.float64)))
    check_export(OPERATIONS[name], (torch.tensor([2], dtype=torch.int32), torch.tensor(2)))


@pytest.mark.parametrize("name", ["add", "mul", "maximum", "minimum"])
def test_booleans(name):
    check_export(OPERATIONS[name], (B, ~B))


@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_boolean_and_number(name):
    check_export(OPERATIONS[name], (B, X))
    check_export(OPERATIONS[name], (I, B))


@pytest.mark.parametrize("values", [FLOATS, INTS], ids=["float", "int64"])
def test_alpha(values):
    check_export(lambda x, y: torch.add(x, y, alpha=3), values)
    check_export(lambda x, y: torch.sub(x, y, alpha=2), values)
    check_export(lambda x: torch.rsub(x, 2, alpha=2), values[:1])
    check_export(lambda x: torch.add(x, 2, alpha=2), values[:1])


def test_reversed_scalars():
    check_export(lambda x: 2 - x, (X,))
    check_export(lambda x: 2 / x, (X,))
    check_export(lambda x: 2 // x, (X,))
    check_export(lambda x: 2 % x, (X,))
    check_export(lambda x: 2 / x, (I,))
    check_export(lambda x: 2**x, (X,))


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
@pytest.mark.parametrize("values", [FLOATS, INTS], ids=["float", "int64"])
def test_div_mode(values, mode):
    check_export(lambda x, y: torch.div(x, y, rounding_mode=mode), values)
    check_export(lambda x: torch.div(x, 2, rounding_mode=mode), values[:1])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5])
def test_pow_scalar(exponent):
    check_export(lambda x: x**exponent, (X.abs(),))
    if isinstance(exponent, int) and exponent >= 0:
        check_export(lambda x: x**exponent, (I,))
    else:
        check_export(lambda x: x.abs() ** float(exponent), (I,))


@pytest.mark.parametrize(
    "exponent, expected",
    [(-0.5, ["Sqrt", "Reciprocal"]), (-1, ["Reciprocal"]), (-2, ["Mul", "Reciprocal"])],
)
def test_inverse_powers(exponent, expected):
    """Pow returns 0 for -inf ** -0.5, and inf for -0.0 ** -0.5, torch does not."""
    x = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 2.0, -2.0])
    assert op_types(check_export(lambda x: x**exponent, (x,))) == expected


def test_pow_square_is_a_product():
    assert op_types(check_export(lambda x: x**2, (X,))) == ["Mul"]


def test_addcmul_addcdiv_lerp():
    z = X * 2 + Y
    check_export(lambda x, y, z: torch.addcmul(x, y, z, value=0.5), (X, Y, z))
    check_export(lambda x, y, z: torch.addcdiv(x, y, z, value=2), (X, Y, z))
    check_export(lambda x, y: torch.lerp(x, y, 0.25), (X, Y))
    check_export(torch.lerp, (X, Y, z))
    check_export(lambda x, y, z: torch.addcmul(x, y, z, value=3), (I, J, I + J))


def test_broadcast():
    check_export(torch.add, (X, Y[:1]), ({0: "a"}, None), [(X[:1], Y[:1])])
    check_export(torch.mul, (X[:, None], Y[None]), ({0: "a"}, {1: "b"}))


def test_symbolic_operand():
    def model(x):
        return x * x.shape[0] + x.shape[1] / x.shape[0], x.sum() * x.shape[0]

    check_export(model, (X,), ({0: "a", 1: "b"},), [(Y[:1, :2],)])


def test_symbolic_operand_of_integers():
    check_export(lambda x: (x + x.shape[0], x / x.shape[0]), (I,), ({0: "a"},), [(J[:1],)])


def test_xlogy_zero():
    zero = torch.tensor([0.0, 0.0, 1.0])
    check_export(torch.xlogy, (zero, torch.tensor([0.0, float("nan"), 2.0])))


def test_atan2_quadrants():
    y = torch.tensor([1.0, 1.0, -1.0, -1.0, 0.0, 0.0, 1.0, -1.0])
    x = torch.tensor([1.0, -1.0, 1.0, -1.0, 0.0, -1.0, 0.0, 0.0])
    check_export(torch.atan2, (y, x))


SPECIAL = torch.tensor([float("inf"), -float("inf"), 2.0, -2.0, 0.0, -0.0, float("nan")])


def special_pairs(dtype=torch.float32):
    """Every pair of infinities, zeros with their signs, nan and numbers."""
    return torch.cartesian_prod(SPECIAL.to(dtype), SPECIAL.to(dtype)).unbind(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_atan2_of_infinities_and_signed_zeros(dtype):
    y, x = special_pairs(dtype)
    check_export(torch.atan2, (y, x), atol=1e-5 if dtype.itemsize > 2 else 1e-3)
    numbers = ~(y.isnan() | x.isnan())
    check_export(lambda y, x: torch.atan2(y, x).signbit(), (y[numbers], x[numbers]))


def test_remainder_of_a_positive_number():
    inf = float("inf")
    x = torch.tensor(
        [-0.0, 0.0, -8.0, 8.0, -3.5, 3.5, -1e30, 1e-30, -1e-30, inf, -inf, float("nan")]
    )
    onx = check_export(lambda x: x.remainder(2.5), (x,))
    assert sorted(op_types(onx)) == ["Add", "Less", "Mod", "Where"]
    check_export(lambda x: torch.remainder(x, 2).signbit(), (x[:9],))
    for number in (-2.5, inf, -inf, 0):
        check_export(lambda x, number=number: x.remainder(number), (x,))


def test_sign_of_a_sum_of_zeros():
    """A sum of torch is never -0.0, that of onnxruntime is if every number is."""
    x = torch.tensor([[-0.0, -0.0], [0.0, -0.0], [-1.0, -0.0]])
    check_export(lambda x: torch.atan2(x[:, 0].abs(), x.sum(1)), (x,))
    check_export(lambda x: torch.atan2(x.sum(1), x[:, 0] - 1), (x,))
    check_export(lambda x: torch.copysign(x[:, 0], x.mean(1, keepdim=True)).signbit(), (x,))


def test_copysign_of_zeros():
    y, x = special_pairs()
    numbers = ~(y.isnan() | x.isnan())
    check_export(lambda y, x: torch.copysign(y, x).signbit(), (y[numbers], x[numbers]))
    check_export(lambda y: torch.copysign(y, -0.0).signbit(), (y[numbers],))


def test_hypot_of_infinities():
    check_export(torch.hypot, special_pairs())


@pytest.mark.parametrize("weight", [0, 0.25, 0.5, 1, 1.5, -2])
def test_lerp_of_infinities(weight):
    check_export(lambda x, y: torch.lerp(x, y, weight), special_pairs())


def test_fmax_fmin_hypot():
    x = torch.tensor([1.0, float("nan"), -3.0, float("nan")])
    y = torch.tensor([2.0, 1.0, float("nan"), float("nan")])
    check_export(torch.fmax, (x, y))
    check_export(torch.fmin, (x, y))
    check_export(torch.fmax, (I, J))
    check_export(torch.hypot, (X, Y))
    check_export(torch.hypot, (torch.tensor([1e30, 0.0]), torch.tensor([1e30, 0.0])))


def test_floor_division_of_floats_is_exact():
    special = [1.0, -1.0, 0.0, -0.0, float("inf"), 0.3, -7.5, float("nan")]
    x, y = torch.meshgrid(torch.tensor(special), torch.tensor([0.1, -0.1, 2, 0, 0.3]))
    check_export(torch.floor_divide, (x.contiguous(), y.contiguous()), atol=0)


@pytest.mark.parametrize("function", [torch.logaddexp, torch.logaddexp2])
def test_logaddexp_of_infinities(function):
    x = torch.tensor([float("inf"), -float("inf"), float("inf"), 1.0])
    y = torch.tensor([float("inf"), -float("inf"), -float("inf"), float("inf")])
    check_export(function, (x, y))
    a = torch.linspace(-20.0, 30.0, 12).reshape(4, 3)
    check_export(function, (a, a[:1].flip(1)), ({0: "n"}, None), [(a[:2], a[:1])])
    check_export(function, (a.double(), a[0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
@pytest.mark.parametrize("powers", [torch.int32, torch.float32, torch.float64])
def test_ldexp(dtype, powers):
    x, y = torch.tensor([[1.5, -3.0, 0.0, 7.0]] * 2), torch.tensor([-3, 0, 5, 1])
    x, y = x.to(dtype), y.to(powers)
    check_export(torch.ldexp, (x, y), ({0: "n"}, None), [(x[:1], y), (x[:0], y)])


def test_copysign():
    x, y = torch.tensor([1.0, -2, 3, -4]), torch.tensor([-0.0, 0.0, -5, 2])
    check_export(torch.copysign, (x, y))
    check_export(lambda x: torch.copysign(x, -2.0), (torch.tensor([1, -2]),))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 63])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_powers_of_integers(dtype, n):
    """They are exact above 2^53, and wrap as those of torch."""
    x = torch.tensor([[3, -3, 2], [0, 1, 10]], dtype=dtype)
    check_export(lambda x: x**n, (x,), ({0: "a"},), [(x[:0],), (x[:1],)], atol=0)
