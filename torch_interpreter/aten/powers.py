"""Powers of integers by repeated squaring. Pow goes through floats, which neither wrap nor hold
64 bits."""

from __future__ import annotations

from ..writing.bodies import Value, loop
from ..writing.graph_writer import GraphWriter
from ..writing.symbols import Operand
from .operands import BOOL, INT64, cast, const, named
from .view import broadcast_tensors


def power_of_number(g: GraphWriter, x: str, n: int) -> str:
    """x ** n.

    :param g: the graph
    :param x: integers
    :param n: positive
    """
    found = None
    while n:
        if n % 2:
            found = x if found is None else g.op.Mul(found, x)
        n //= 2
        x = g.op.Mul(x, x) if n else x
    return x if found is None else found


def power_of_integers(g: GraphWriter, x: Operand, y: Operand, itype: int) -> str:
    """x ** y; a negative power of anything else than 1 and -1 is 0.

    :param g: the graph
    :param x: integers
    :param y: integers
    :param itype: type of the result
    """
    base, power = broadcast_tensors(g, named(g, x, y, itype=INT64))
    one, zero = const(1, INT64), const(0, INT64)
    ones = g.op.Expand(one, g.op.Shape(base))
    found = loop(g, _square, None, ones, base, g.op.Abs(power), conditional=True)[0]
    null = g.op.And(g.op.Less(power, zero), g.op.Not(g.op.Equal(g.op.Abs(base), one)))
    return cast(g, g.op.Where(null, zero, found), itype)


def _square(i: Value, r: Value, b: Value, n: Value) -> list[Value]:
    """Reads one bit of the exponents n, while one of them is not 0."""
    op = i.op
    rest, odd = n / 2, op.Cast(n % 2, to=BOOL)
    return [any_of(op.Cast(rest, to=BOOL)), r * op.Where(odd, b, 1), b * b, rest]


def any_of(conditions: Value) -> Value:
    """Whether one of the conditions holds."""
    op = conditions.op
    return op.Cast(op.ReduceSum(op.Cast(conditions, to=INT64), keepdims=0), to=BOOL)
