"""Results multiplied or divided by one constant number, or with a constant added."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from ..authoring import GraphQueries, RewriteContext
from .arguments import other_input
from .constants import scalar_constant


class Scaled(NamedTuple):
    """A result times one number.

    :param data: the result that is multiplied
    :param factor: the number, the inverse of a divisor
    """

    data: str
    factor: float


def scalar_factor(g: GraphQueries, node: NodeProto, data: str) -> float | None:
    """The number by which a Mul or a Div multiplies one of its operands; None if there is none.

    The other operand is a constant of one floating-point number, which keeps the shape. The factor
    is neither null, nor infinite, nor NaN. The inverse of a divisor is rounded as a Python float: a
    rewrite that cannot round keeps the division.

    :param node: a Mul or a Div
    :param data: one of its operands
    """
    other, divides = other_input(node, data), node.op_type == "Div"
    if other in ("", data) or (divides and node.input[0] != data):
        return None
    value = scalar_constant(g, other, g.rank_or_none(data))
    number = 0.0 if value is None or value.dtype.kind not in "fV" else float(value.item())
    factor = 1 / number if divides and number else number
    return factor if factor and isfinite(factor) else None


def scaled_operand(g: GraphQueries, node: NodeProto) -> Scaled | None:
    """The operand that a Mul or a Div multiplies by one constant number, with this number; None if
    there is none. See :func:`scalar_factor`.

    :param node: a Mul or a Div
    """
    for data in g.record(node).inputs:
        factor = scalar_factor(g, node, data)
        if factor is not None:
            return Scaled(data, factor)
    return None


def added_constant(
    g: RewriteContext, node: NodeProto, data: str = ""
) -> tuple[str, int, np.ndarray]:
    """Reads `x + c`, `x - c` or `c - x` as x, its sign and c or -c; refuses if c is not constant.

    :param node: an Add or a Sub
    :param data: x, an empty name for the operand that is not constant
    """
    a, b = node.input
    first = a == data if data else g.is_constant(b)
    x, c = (a, b) if first else (b, a)
    value = g.constant_of(c)
    if node.op_type == "Add":
        return x, 1, value
    return (x, 1, np.negative(value)) if first else (x, -1, value)
