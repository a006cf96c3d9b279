"""Functions that onnxruntime has no kernel for in 64 bits, written with other operators.

The angles are computed in 32 bits and corrected once; the other formulas are those of the DLMF
(https://dlmf.nist.gov/4), 4.24, 4.28 and 4.37, with Kahan's logarithm of 1 + x.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from onnx import TensorProto

from ..writing.graph_writer import GraphWriter, op_named
from .operands import f64


def _atan(g: GraphWriter, x: str) -> str:
    """y + tan(atan x - y); the neglected term is the cube of an error below 1e-7."""
    y = g.op.Cast(g.op.Atan(g.op.Cast(x, to=TensorProto.FLOAT)), to=TensorProto.DOUBLE)
    sine, cosine = g.op.Sin(y), g.op.Cos(y)
    gap = g.op.Sub(g.op.Mul(x, cosine), sine)
    gap = g.op.Div(gap, g.op.Add(cosine, g.op.Mul(x, sine)))
    limit = g.op.Mul(g.op.Sign(x), f64(math.pi / 2))
    return g.op.Where(g.op.IsInf(x), limit, g.op.Add(y, gap))


def _asin(g: GraphWriter, x: str) -> str:
    """atan(x / sqrt((1 - x) (1 + x)))."""
    one = f64(1)
    other = g.op.Sqrt(g.op.Mul(g.op.Sub(one, x), g.op.Add(one, x)))
    return _atan(g, g.op.Div(x, other))


def _acos(g: GraphWriter, x: str) -> str:
    """2 atan(sqrt((1 - x) / (1 + x)))."""
    one = f64(1)
    tangent = g.op.Sqrt(g.op.Div(g.op.Sub(one, x), g.op.Add(one, x)))
    return g.op.Mul(_atan(g, tangent), f64(2))


def _tan(g: GraphWriter, x: str) -> str:
    return g.op.Div(g.op.Sin(x), g.op.Cos(x))


def _cosh(g: GraphWriter, x: str) -> str:
    """(e^2 + 1 / e^2) / 2 with e = exp(|x| / 2), which does not overflow before the result."""
    root = g.op.Exp(g.op.Mul(g.op.Abs(x), f64(0.5)))
    half = g.op.Mul(root, f64(0.5))
    return g.op.Add(g.op.Mul(half, root), g.op.Div(g.op.Div(f64(0.5), root), root))


def _sinh(g: GraphWriter, x: str) -> str:
    """tanh x cosh x, which avoids a difference of close numbers."""
    return g.op.Mul(g.op.Tanh(x), _cosh(g, x))


def log1p(g: GraphWriter, x: str) -> str:
    """x log(u) / (u - 1) with u = 1 + x, rounded; its error vanishes in the quotient."""
    one = f64(1)
    u = g.op.Add(x, one)
    gap = g.op.Sub(u, one)
    exact = g.op.Or(g.op.Equal(gap, f64(0)), g.op.IsInf(u))
    safe = g.op.Where(exact, one, gap)
    found = g.op.Div(g.op.Mul(x, g.op.Log(u)), safe)
    return g.op.Where(exact, x, found)


def _signed(g: GraphWriter, size: str, x: str) -> str:
    """A size with the sign of x; 0 and nan are themselves."""
    return g.op.Mul(size, g.op.Sign(x))


#: above it, a square overflows and 1 is lost
_LARGE = 1e150


def _asinh(g: GraphWriter, x: str) -> str:
    """log1p(|x| + x^2 / (1 + sqrt(1 + x^2))), log 2|x| if the square overflows."""
    size, one = g.op.Abs(x), f64(1)
    large = g.op.Greater(size, f64(_LARGE))
    small = g.op.Where(large, one, size)
    square = g.op.Mul(small, small)
    rest = g.op.Div(square, g.op.Add(g.op.Sqrt(g.op.Add(square, one)), one))
    found = log1p(g, g.op.Add(small, rest))
    return _signed(g, g.op.Where(large, _log_double(g, size), found), x)


def _acosh(g: GraphWriter, x: str) -> str:
    """log1p(t + sqrt(2 t + t^2)) with t = x - 1, log 2x if the square overflows."""
    large = g.op.Greater(x, f64(_LARGE))
    t = g.op.Sub(g.op.Where(large, f64(1), x), f64(1))
    root = g.op.Sqrt(g.op.Mul(t, g.op.Add(t, f64(2))))
    found = log1p(g, g.op.Add(t, root))
    found = g.op.Where(g.op.Less(x, f64(1)), f64(math.nan), found)
    return g.op.Where(large, _log_double(g, x), found)


def _log_double(g: GraphWriter, x: str) -> str:
    return g.op.Add(g.op.Log(x), f64(math.log(2)))


def _atanh(g: GraphWriter, x: str) -> str:
    """log1p(2 |x| / (1 - |x|)) / 2."""
    size = g.op.Abs(x)
    ratio = g.op.Div(g.op.Add(size, size), g.op.Sub(f64(1), size))
    return _signed(g, g.op.Mul(log1p(g, ratio), f64(0.5)), x)


_FUNCTIONS: dict[str, Callable[[GraphWriter, str], str]] = {
    "Acos": _acos,
    "Acosh": _acosh,
    "Asin": _asin,
    "Asinh": _asinh,
    "Atan": _atan,
    "Atanh": _atanh,
    "Cosh": _cosh,
    "Sinh": _sinh,
    "Tan": _tan,
}


def function(g: GraphWriter, op_type: str, x: str) -> str:
    """An operator of one float tensor, or its definition for doubles.

    :param g: the graph
    :param op_type: operator type
    :param x: its input
    """
    if g.get_type(x) == TensorProto.DOUBLE and op_type in _FUNCTIONS:
        return _FUNCTIONS[op_type](g, x)
    return op_named(g, op_type)(x)
