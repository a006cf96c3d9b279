"""Functions of complex numbers.

The formulas are those of the DLMF, 4.2 to 4.35 (https://dlmf.nist.gov/4). The square root is
Kahan's ("Branch cuts for complex elementary functions", 1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch

from ..common.types import to_onnx_type
from ..writing.complex_names import COMPLEX, Complex
from ..writing.graph_writer import GraphWriter, Tensor, op_named
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten, aten_table, curried
from ..writing.symbols import int_vector
from . import compare, doubles, index, reduce  # noqa: F401, converters called below
from .binary import copysign
from .complex_tensors import (
    Number,
    abs_,
    angle,
    as_name,
    conj,
    exp,
    joined,
    matmul,
    mul,
    part,
    real_converter,
    reciprocal,
)
from .operands import BOOL, cast, const, shape_tensor_of

Parts = tuple[Tensor, Tensor]


def both(g: GraphWriter, x: str) -> tuple[str, str]:
    """The real parts and the imaginary ones."""
    return part(g, x, 0), part(g, x, 1)


def _factor(g: GraphWriter, x: str, factor: float) -> str:
    return g.op.Mul(x, const(factor, g.get_type(x)))


# -- functions -----------------------------------------------------------------------------


@aten("complex.aten.log.default")
def log(g: GraphWriter, x: str) -> str:
    """log |z| + i arg z."""
    return joined(g, g.op.Log(abs_(g, x)), angle(g, x))


@aten("complex.aten.log1p.default")
def log1p(g: GraphWriter, x: str) -> str:
    """log(1 + z)."""
    return log(g, g.op.Add(x, const([1, 0], g.get_type(x))))


aten_table(
    lambda base: lambda g, x: _factor(g, log(g, x), 1 / math.log(base)),
    {"log2": 2, "log10": 10},
    "complex.aten.{}.default",
)


@aten("complex.aten.sqrt.default")
def sqrt(g: GraphWriter, x: str) -> str:
    """One part is t = sqrt((|z| + |a|) / 2), the other one b / 2t; the sign of a says which one."""
    itype = g.get_type(x)
    a, b = both(g, x)
    half, zero = const(0.5, itype), const(0, itype)
    root = g.op.Sqrt(g.op.Add(g.op.Mul(abs_(g, x), half), g.op.Mul(g.op.Abs(a), half)))
    null = g.op.Equal(root, zero)
    safe = g.op.Where(null, const(1, itype), root)
    other = g.op.Mul(g.op.Div(b, safe), half)
    left = g.op.Less(a, zero)
    real = g.op.Where(left, g.op.Abs(other), root)
    return joined(g, real, g.op.Where(left, copysign(g, root, b), other))


@aten("complex.aten.rsqrt.default")
def rsqrt(g: GraphWriter, x: str) -> str:
    """1 / sqrt(z)."""
    return reciprocal(g, sqrt(g, x))


@aten("complex.aten.exp2.default")
def exp2(g: GraphWriter, x: str) -> str:
    """exp(z log 2)."""
    return exp(g, _factor(g, x, math.log(2)))


@aten("complex.aten.expm1.default")
def expm1(g: GraphWriter, x: str) -> str:
    """exp(z) - 1."""
    return g.op.Sub(exp(g, x), const([1, 0], g.get_type(x)))


@curried
def _circular(names: tuple[str, str, str, str, int], g: GraphWriter, x: str) -> str:
    """f(a) g(b) + i s h(a) k(b), the formula of a sum of two angles, one of which is imaginary."""
    *op_types, sign = names
    values = both(g, x)
    pairs = zip(op_types, values * 2, strict=True)
    f, other, h, k = (doubles.function(g, op_type, value) for op_type, value in pairs)
    imaginary = g.op.Mul(h, k)
    return joined(g, g.op.Mul(f, other), imaginary if sign > 0 else g.op.Neg(imaginary))


_CIRCULAR = {
    "sin": ("Sin", "Cosh", "Cos", "Sinh", 1),
    "cos": ("Cos", "Cosh", "Sin", "Sinh", -1),
    "sinh": ("Sinh", "Cos", "Cosh", "Sin", 1),
    "cosh": ("Cosh", "Cos", "Sinh", "Sin", 1),
}
aten_table(_circular, _CIRCULAR, "complex.aten.{}.default")


def _tanh_of(g: GraphWriter, a: str, b: str, itype: int) -> Parts:
    """(u (1 + t^2) + i t (1 - u^2)) / (1 + u^2 t^2) with u = tanh a, t = tan b."""
    one = const(1, itype)
    u, t = g.op.Tanh(a), doubles.function(g, "Tan", b)
    u2, t2 = g.op.Mul(u, u), g.op.Mul(t, t)
    divisor = g.op.Add(g.op.Mul(u2, t2), one)
    real = g.op.Div(g.op.Mul(u, g.op.Add(t2, one)), divisor)
    return real, g.op.Div(g.op.Mul(t, g.op.Sub(one, u2)), divisor)


@aten("complex.aten.tanh.default")
def tanh(g: GraphWriter, x: str) -> str:
    """Hyperbolic tangent."""
    return joined(g, *_tanh_of(g, *both(g, x), g.get_type(x)))


@aten("complex.aten.tan.default")
def tan(g: GraphWriter, x: str) -> str:
    """-i tanh(i z)."""
    a, b = both(g, x)
    real, imaginary = _tanh_of(g, g.op.Neg(b), a, g.get_type(x))
    return joined(g, imaginary, g.op.Neg(real))


@aten("complex.aten.sigmoid.default")
def sigmoid(g: GraphWriter, x: str) -> str:
    """1 / (1 + exp(-z))."""
    return reciprocal(g, g.op.Add(exp(g, g.op.Neg(x)), const([1, 0], g.get_type(x))))


@aten("complex.aten.sgn.default")
def sgn(g: GraphWriter, x: str) -> str:
    """z / |z|, 0 for 0."""
    itype = g.get_type(x)
    size = g.op.UnsqueezeAnyOpset(abs_(g, x), int_vector([-1]))
    null = g.op.Equal(size, const(0, itype))
    return g.op.Div(x, g.op.Where(null, const(1, itype), size))


@aten("complex.aten.square.default")
def square(g: GraphWriter, x: str) -> str:
    """a^2 - b^2 + 2 a b i."""
    a, b = both(g, x)
    cross = g.op.Mul(a, b)
    return joined(g, g.op.Sub(g.op.Mul(a, a), g.op.Mul(b, b)), g.op.Add(cross, cross))


def _ones(g: GraphWriter, x: str) -> str:
    return g.op.Expand(const([1, 0], g.get_type(x)), shape_tensor_of(g, x))


#: exponents for which the power is a simpler function
_SIMPLE_POWERS: dict[float, Callable[[GraphWriter, str], str]] = {0: _ones, 0.5: sqrt, 2: square}


@aten(*(f"complex.aten.pow.{o}" for o in ("Tensor_Tensor", "Tensor_Scalar", "Scalar")))
def pow_(g: GraphWriter, x: Number, y: Number, *, expected: OutputFacts = UNKNOWN_OUTPUTS) -> str:
    """exp(y log x); 0 to a power is 0, 0 to the power 0 is 1 if 0 is a number, nan otherwise."""
    itype = expected.type
    base = as_name(g, x, itype)
    if not isinstance(y, str | complex) and y in _SIMPLE_POWERS:
        return _SIMPLE_POWERS[y](g, base)
    power = as_name(g, y, itype)
    found = exp(g, mul(g, power, Complex(log(g, base)), expected=expected))
    null, never = (_every(g, g.op.Equal(v, const(0, itype)), True) for v in (base, power))
    return g.op.Where(g.op.And(null, g.op.Not(never)), const(0, itype), found)


# -- conditions ----------------------------------------------------------------------------


def _every(g: GraphWriter, x: str, keepdim: bool = False) -> str:
    """True where a condition holds for both parts."""
    first, second = both(g, x)
    found = g.op.And(first, second)
    return g.op.UnsqueezeAnyOpset(found, int_vector([-1])) if keepdim else found


def _common(g: GraphWriter, x: Number, y: Number) -> tuple[Complex, Complex]:
    itype = max(g.get_type(v) for v in (x, y) if isinstance(v, Complex))
    return as_name(g, x, itype), as_name(g, y, itype)


@aten("complex.aten.eq.Tensor", "complex.aten.eq.Scalar", "complex.operator.eq")
def eq(g: GraphWriter, x: Number, y: Number) -> str:
    """Both parts are equal."""
    return _every(g, g.op.Equal(*_common(g, x, y)))


@aten("complex.aten.ne.Tensor", "complex.aten.ne.Scalar", "complex.operator.ne")
def ne(g: GraphWriter, x: Number, y: Number) -> str:
    """One part is not equal."""
    return g.op.Not(eq(g, x, y))


@curried
def _condition(row: tuple[str, str], g: GraphWriter, x: str) -> str:
    """A condition on real numbers, on one part or both."""
    name, join = row
    condition = real_converter(f"{name}.default")
    return op_named(g, join)(*both(g, condition(g, x)))


aten_table(
    _condition,
    {name: (name, join) for name, join in (("isnan", "Or"), ("isinf", "Or"), ("isfinite", "And"))},
    "complex.aten.{}.default",
)


@aten("complex.aten.isreal.default")
def isreal(g: GraphWriter, x: str) -> str:
    """The imaginary part is 0."""
    return g.op.Equal(part(g, x, 1), const(0, g.get_type(x)))


def not_zero(g: GraphWriter, x: str) -> str:
    """A complex tensor as booleans, any other tensor as it is."""
    if not isinstance(x, Complex):
        return x
    return g.op.Or(*both(g, g.op.Cast(x, to=BOOL)))


@curried
def _of_booleans(name: str, g: GraphWriter, *args: Any, **kwargs: Any) -> Any:
    """A converter of a function that only distinguishes zero from other numbers."""
    real = real_converter(name)
    given = [not_zero(g, a) if isinstance(a, str) else a for a in args]
    return real(g, *given, **kwargs)


_BOOLEAN = (
    *(f"{name}.{overload}" for name in ("all", "any") for overload in ("default", "dim", "dims")),
    "argwhere.default",
    "count_nonzero.default",
    "count_nonzero.dim_IntList",
    "nonzero.default",
    *(f"logical_{name}.default" for name in ("and", "not", "or", "xor")),
)
aten_table(_of_booleans, {name: name for name in _BOOLEAN}, f"{COMPLEX}aten.{{}}")


# -- several numbers -----------------------------------------------------------------------


@aten("complex.aten.vdot.default")
def vdot(g: GraphWriter, x: str, y: str) -> str:
    """The sum of conj(x) y."""
    return matmul(g, Complex(conj(g, x)), y)


@aten("complex.aten.linalg_vecdot.default")
def vecdot(
    g: GraphWriter, x: str, y: str, *, dim: int = -1, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> str:
    """The sums of conj(x) y along one dimension."""
    terms = mul(g, Complex(conj(g, x)) if isinstance(x, Complex) else x, y, expected=expected)
    return reduce.reduce(g, "ReduceSum", terms, dim - 1 if dim < 0 else dim, False)


@curried
def _of_absolute_values(
    name: str, g: GraphWriter, x: str, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any
) -> str:
    real = real_converter(name)
    y = abs_(g, x)
    y = y if dtype is None else cast(g, y, to_onnx_type(dtype.to_real()))
    return str(real(g, y, *args, **kwargs))


aten_table(
    _of_absolute_values,
    {n: n for n in ("linalg_vector_norm.default", "norm.Scalar", "norm.ScalarOpt_dim")},
    f"{COMPLEX}aten.{{}}",
)


@curried
def _deviation(row: tuple[str, bool], g: GraphWriter, x: str, *args: Any, **kwargs: Any) -> str:
    """A converter of a deviation: the variance is the sum of the variances of both parts."""
    overload, root = row
    real = real_converter(f"var.{overload}")
    total = g.op.Add(*(real(g, v, *args, **kwargs) for v in both(g, x)))
    return g.op.Sqrt(total) if root else total


@curried
def _with_mean(
    row: tuple[str, bool],
    g: GraphWriter,
    x: str,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    **kwargs: Any,
) -> list[str]:
    """A converter that returns the mean as a second result."""
    deviation, real = _deviation(row), real_converter("mean.dim")
    spread = deviation(g, x, dim, unbiased, keepdim, **kwargs)
    axes = None if isinstance(dim, bool) else dim
    return [spread, joined(g, *(real(g, v, axes, keepdim) for v in both(g, x)))]


for _overload in ("correction", "default", "dim"):
    aten_table(
        _deviation,
        {"var": (_overload, False), "std": (_overload, True)},
        f"complex.aten.{{}}.{_overload}",
    )
    aten_table(
        _with_mean,
        {"var": (_overload, False), "std": (_overload, True)},
        f"complex.aten.{{}}_mean.{_overload}",
    )


@aten("complex.aten.einsum.default")
def einsum(g: GraphWriter, equation: str, operands: Sequence[str], **_: Any) -> str:
    """The sum of the einsums of each choice of parts, times i for each imaginary one."""
    halves = [both(g, x) for x in operands]
    sums: list[str | None] = [None, None]
    for choice in product(range(2), repeat=len(operands)):
        chosen = [h[c] for h, c in zip(halves, choice, strict=True)]
        term = g.op.Einsum(*chosen, equation=equation.replace(" ", ""))
        power = sum(choice)
        known = sums[power % 2]
        if power % 4 > 1:
            sums[power % 2] = g.op.Neg(term) if known is None else g.op.Sub(known, term)
        else:
            sums[power % 2] = term if known is None else g.op.Add(known, term)
    real, imaginary = sums
    if real is None or imaginary is None:
        raise ValueError("none of the operands of einsum is complex")
    return joined(g, real, imaginary)
