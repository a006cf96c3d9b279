"""Complex tensors: parts, arithmetic and products, see :mod:`.complex_names`."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from ..writing.complex_names import Complex
from ..writing.graph_writer import GraphWriter, Tensor, constant, op_named
from ..writing.registry import (
    UNKNOWN_OUTPUTS,
    Converter,
    OutputFacts,
    aten,
    aten_table,
    curried,
    find_converter,
)
from ..writing.symbols import Size, SymScalar, dim_of, int_vector
from .binary import atan2, hypot
from .operands import cast, const

#: an operand: a complex tensor, a real one, a number
Number = str | int | float | complex
#: real and imaginary parts, None if there is no imaginary one
Parts = tuple[Tensor, Tensor | None]


def real_converter(name: str) -> Converter:
    """The converter of real tensors for an operator of aten."""
    found = find_converter(f"aten.{name}")
    if found is None:
        raise ValueError(f"aten.{name} has no converter")
    return found


# -- parts ---------------------------------------------------------------------------------


def part(g: GraphWriter, x: str, which: int) -> str:
    """The real parts (0) or the imaginary ones (1)."""
    return g.op.Gather(x, np.array(which, dtype=np.int64), axis=-1)


def parts(g: GraphWriter, x: Number, itype: int) -> Parts:
    """Both parts of an operand, of type *itype*."""
    if isinstance(x, Complex):
        x = cast(g, x, itype)
        return part(g, x, 0), part(g, x, 1)
    if isinstance(x, SymScalar):
        return cast(g, g.op.Squeeze(x, int_vector([0])), itype), None
    if isinstance(x, str):
        return cast(g, x, itype), None
    imaginary = const(x.imag, itype) if isinstance(x, complex) else None
    return const(x.real, itype), imaginary


def joined(g: GraphWriter, real: Tensor, imaginary: Tensor) -> str:
    """A complex tensor made of its parts, which have the same shape."""
    pair = [g.op.UnsqueezeAnyOpset(x, int_vector([-1])) for x in (real, imaginary)]
    return g.op.Concat(*pair, axis=-1)


def as_complex(g: GraphWriter, x: Number, itype: int) -> Tensor:
    """An operand with both parts, a constant for a number."""
    if isinstance(x, Complex):
        return cast(g, x, itype)
    if not isinstance(x, str):
        return const([x.real, x.imag], itype)
    real, _ = parts(g, x, itype)
    return joined(g, real, g.op.Expand(const(0, itype), g.op.Shape(real)))


@aten("complex.aten.complex.default")
def complex_(g: GraphWriter, x: str, y: str, *, expected: OutputFacts = UNKNOWN_OUTPUTS) -> str:
    """Two real tensors."""
    real, imaginary = (cast(g, v, expected.type) for v in (x, y))
    shapes = g.op.Shape(imaginary), g.op.Shape(real)
    return joined(g, g.op.Expand(real, shapes[0]), g.op.Expand(imaginary, shapes[1]))


@aten("complex.aten.polar.default")
def polar(g: GraphWriter, x: str, angle: str) -> str:
    """Absolute values and angles."""
    return joined(g, *(g.op.Mul(x, f(angle)) for f in (g.op.Cos, g.op.Sin)))


aten_table(
    lambda which: lambda g, x: part(g, x, which),
    {"real": 0, "imag": 1},
    "complex.aten.{}.default",
)


@aten("complex.aten.abs.default")
def abs_(g: GraphWriter, x: str) -> str:
    """Absolute values, computed in 64 bits for 32 so that squares do not overflow."""
    itype = g.get_type(x)
    if itype == TensorProto.DOUBLE:
        return hypot(g, part(g, x, 0), part(g, x, 1))
    wide = g.op.ReduceL2AnyOpset(cast(g, x, TensorProto.DOUBLE), int_vector([-1]), keepdims=0)
    return cast(g, wide, itype)


@aten("complex.aten.angle.default")
def angle(g: GraphWriter, x: str) -> str:
    """Angles."""
    return atan2(g, part(g, x, 1), part(g, x, 0))


# -- one number at a time ------------------------------------------------------------------


@curried
def _sum_of(
    op_type: str,
    g: GraphWriter,
    x: Number,
    y: Number,
    *,
    alpha: Number = 1,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """A converter of a sum or a difference."""
    itype = expected.type
    if alpha != 1:
        y = Complex(mul(g, as_name(g, y, itype), alpha, expected=expected))
    return op_named(g, op_type)(*(as_complex(g, v, itype) for v in (x, y)))


def as_name(g: GraphWriter, x: Number, itype: int) -> Complex:
    """An operand as a complex tensor of the graph."""
    y = as_complex(g, x, itype)
    return Complex(y if isinstance(y, str) else constant(g, y))


add = aten("complex.aten.add.Tensor", "complex.aten.add.Scalar", "complex.operator.add")(
    _sum_of("Add")
)
sub = aten("complex.aten.sub.Tensor", "complex.aten.sub.Scalar", "complex.operator.sub")(
    _sum_of("Sub")
)


@aten("complex.aten.rsub.Tensor", "complex.aten.rsub.Scalar")
def rsub(
    g: GraphWriter,
    x: Number,
    y: Number,
    alpha: Number = 1,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """y - x * alpha."""
    return sub(g, y, x, alpha=alpha, expected=expected)


@aten("complex.aten.mul.Tensor", "complex.aten.mul.Scalar", "complex.operator.mul")
def mul(g: GraphWriter, x: Number, y: Number, *, expected: OutputFacts = UNKNOWN_OUTPUTS) -> str:
    """(a + b i) (c + d i), one of them may be real."""
    itype = expected.type
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Complex) and not isinstance(other, Complex | complex):
            return g.op.Mul(cast(g, one, itype), _factor(g, other, itype))
    (a, b), (c, d) = parts(g, x, itype), parts(g, y, itype)
    real = g.op.Mul(a, c)
    if b is not None and d is not None:
        real = g.op.Sub(real, g.op.Mul(b, d))
    terms = [g.op.Mul(u, v) for u, v in ((a, d), (b, c)) if u is not None and v is not None]
    return joined(g, real, terms[0] if len(terms) == 1 else g.op.Add(*terms))


def _factor(g: GraphWriter, x: Number, itype: int) -> Tensor:
    """The operand that multiplies or divides both parts."""
    real, _ = parts(g, x, itype)
    return g.op.UnsqueezeAnyOpset(real, int_vector([-1])) if isinstance(real, str) else real


@aten("complex.aten.div.Tensor", "complex.aten.div.Scalar", "complex.operator.truediv")
def div(g: GraphWriter, x: Number, y: Number, *, expected: OutputFacts = UNKNOWN_OUTPUTS) -> str:
    """x / y, which is x conj(y) / |y|^2 if y is complex."""
    if isinstance(y, complex):
        return mul(g, x, 1 / y, expected=expected)
    if isinstance(y, Complex):
        return mul(g, x, Complex(reciprocal(g, cast(g, y, expected.type))), expected=expected)
    return g.op.Div(as_complex(g, x, expected.type), _factor(g, y, expected.type))


@aten("complex.aten.reciprocal.default")
def reciprocal(g: GraphWriter, x: str) -> str:
    """conj(x) / |x|^2."""
    square = g.op.ReduceSumAnyOpset(g.op.Mul(x, x), int_vector([-1]), keepdims=1)
    return g.op.Div(conj(g, x), square)


@aten(
    "complex.aten.conj.default",
    "complex.aten._conj.default",
    "complex.aten._conj_copy.default",
    "complex.aten.conj_physical.default",
    "complex.prims.conj_physical.default",
)
def conj(g: GraphWriter, x: str) -> str:
    """The opposite of the imaginary parts."""
    return g.op.Mul(x, const([1, -1], g.get_type(x)))


@aten("complex.aten.exp.default")
def exp(g: GraphWriter, x: str) -> str:
    """exp(a) (cos b + i sin b)."""
    return polar(g, g.op.Exp(part(g, x, 0)), part(g, x, 1))


@aten("complex.aten.neg.default", "complex.operator.neg")
def neg(g: GraphWriter, x: str) -> str:
    """The opposite of both parts."""
    return g.op.Neg(x)


@aten(*(f"complex.aten.{name}.default" for name in ("matmul", "mm", "bmm", "mv", "dot")))
def matmul(g: GraphWriter, x: str, y: str) -> str:
    """Four products of real matrices; torch accepts two complex ones only."""
    (a, b), (c, d) = ([part(g, v, i) for i in (0, 1)] for v in (x, y))
    real = g.op.Sub(g.op.MatMul(a, c), g.op.MatMul(b, d))
    return joined(g, real, g.op.Add(g.op.MatMul(a, d), g.op.MatMul(b, c)))


@aten(
    "complex.aten._to_copy.default",
    "complex.aten.clone.default",
    "complex.aten.contiguous.default",
    *(f"complex.aten.to.{o}" for o in ("device", "dtype", "dtype_layout", "other", "prim_Device")),
    "complex.aten.type_as.default",
)
def to_copy(
    g: GraphWriter, x: str, *_: Any, expected: OutputFacts = UNKNOWN_OUTPUTS, **__: Any
) -> str:
    """Another precision; a real tensor becomes complex, a complex one loses its imaginary parts."""
    shape = expected.shape
    if not isinstance(x, Complex):
        return str(as_complex(g, x, expected.type))
    stays = shape is not None and len(shape) == g.get_rank(x)
    return cast(g, x if stays else part(g, x, 0), expected.type)


@aten("complex.aten.sym_size.int")
def sym_size(g: GraphWriter, x: Complex, dim: int) -> Size:
    """One dimension of a tensor, whose parts are along one more axis."""
    return dim_of(g, x, dim if dim >= 0 else dim - 1)
