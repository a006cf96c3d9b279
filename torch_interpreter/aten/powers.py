"""Powers of integers by repeated squaring. Pow goes through floats, which neither wrap nor hold
64 bits."""

from __future__ import annotations

import numpy as np
from onnx import parser

from ..writing.graph_writer import GraphWriter, several
from ..writing.symbols import Operand
from .operands import INT64, cast, const, same_type
from .view import broadcast_tensors

#: body that reads one bit of the exponents n at a time, while one of them is not 0
_SQUARES = """
squares (int64 i, bool go, int64[] r, int64[] b, int64[] n)
    => (bool more, int64[] product, int64[] square, int64[] rest) {
    one = Constant <value_int = 1> ()
    two = Constant <value_int = 2> ()
    rest = Div (n, two)
    bit = Mod (n, two)
    odd = Cast <to = 9> (bit)
    times = Where (odd, b, one)
    product = Mul (r, times)
    square = Mul (b, b)
    again = Cast <to = 9> (rest)
    marks = Cast <to = 7> (again)
    count = ReduceSum <keepdims = 0> (marks)
    more = Cast <to = 9> (count)
}
"""


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
    base, power = broadcast_tensors(g, [str(v) for v in _tensors(g, x, y)])
    one, zero = const(1, INT64), const(0, INT64)
    size, body = g.op.Abs(power), parser.parse_graph(_SQUARES)
    ones = g.op.Expand(one, g.op.Shape(base))
    found = several(g, "Loop", 3, None, np.array(True), ones, base, size, body=body)[0]
    null = g.op.And(g.op.Less(power, zero), g.op.Not(g.op.Equal(g.op.Abs(base), one)))
    return cast(g, g.op.Where(null, zero, found), itype)


def _tensors(g: GraphWriter, *operands: Operand) -> list[str]:
    """Operands as tensors of 64 bits, numbers become constants of the graph."""
    values = same_type(g, *operands, itype=INT64)
    return [v if isinstance(v, str) else g.op.Identity(v) for v in values]
