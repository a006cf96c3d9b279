"""Merges two constants of successive sums, or of successive products, into one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import ARITHMETIC, FLOATS
from xbuilder.tensors.amplitude import is_normal

from ...analysis.constants import dtype_of
from ...analysis.neighbours import is_rounded, producer_among
from ...analysis.scaling import added_constant
from ...analysis.values.rounding_sums import ROUNDS, rounds
from ...analysis.weights.affine import wide
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

_SUMS, _PRODUCTS = ("Add", "Sub"), ("Mul", "Div")
_TYPES = FLOATS - {TensorProto.BFLOAT16}
#: constants with more elements are kept
_ELEMENTS = 1 << 10


class _Term(NamedTuple):
    """A node that adds a constant to a result, or multiplies it by one.

    :param x: the result
    :param value: the constant, in a wider type, the divisor if the node divides
    :param sign: -1 for `c - x`, 1 for the others
    :param divides: x is divided by the constant
    """

    x: str
    value: np.ndarray
    sign: int
    divides: bool


@rewrite(
    "default",
    root=ARITHMETIC,
    reads={"Add": "Sub", "Sub": _SUMS, "Mul": "Div", "Div": _PRODUCTS},
    min_opset=7,
    precision="rounding",
)
def merged_constants(g: RewriteContext, node: NodeProto) -> NewNode:
    """(x * a) / b -> x * (a / b), (x + a) - b -> x + (a - b), where a and b are constants.

    1. Add and Sub, in any order: b - (x + a) is (b - a) - x. Two Add are those of
       SwitchOrderBinary, integers those of IntegerSums.
    2. Mul and Div, or two Div. It is x / (b / a) when the type represents b / a and not a / b.
    3. a or b has one element, or both have the same shape; a few elements.

    The type is float16, float or double. Refused when something else reads the inner result, when
    the new constant is infinite or too small for the type, or when the result is rounded to
    integers, because an integer may become the previous one.
    """
    ops = _SUMS if node.op_type in _SUMS else _PRODUCTS
    inner = producer_among(g, node, *ops)
    middle, result = inner.output[0], node.output[0]
    mixed = inner.op_type != node.op_type or node.op_type in ("Sub", "Div")
    g.require(mixed, "both are sums, or products")
    g.require_sole_use("the inner result is used elsewhere", middle)
    g.require(g.type_of(middle) in _TYPES, "the type is not float16, float nor double")
    first, last = _term(g, inner, ""), _term(g, node, middle)
    sizes = first.value.size, last.value.size
    same = first.value.shape == last.value.shape or 1 in sizes
    g.require(same and max(sizes) <= _ELEMENTS, "the constants have different or big shapes")
    g.require(not is_rounded(g, result), "integers are made of the result")
    if ops is _PRODUCTS:
        return _product(g, first, last)
    g.require(not (rounds(g, node) or rounds(g, inner)), ROUNDS)
    total = _written(g, last.value + last.sign * first.value, middle, null=True)
    return g.op.Add(first.x, total) if last.sign == first.sign else g.op.Sub(total, first.x)


def _term(g: RewriteContext, node: NodeProto, name: str) -> _Term:
    """Reads a node as the sum, or the product, of a result and a constant.

    :param node: an Add, a Sub, a Mul or a Div
    :param name: the result it reads, an empty name for the operand that is not constant
    """
    if node.op_type in _SUMS:
        x, sign, constant = added_constant(g, node, name)
        return _Term(x, _finite(g, constant), sign, False)
    a, b = node.input
    first, divides = a == name if name else g.is_constant(b), node.op_type == "Div"
    x, c = (a, b) if first else (b, a)
    value = _finite(g, g.constant_of(c))
    g.require(first or not divides, "a constant is divided by the result")
    g.require((value != 0).all(), "a factor is null")
    return _Term(x, value, 1, divides)


def _finite(g: RewriteContext, constant: np.ndarray) -> np.ndarray:
    """A constant in a wider type; refuses numbers that are not finite."""
    value = wide(constant)
    g.require(np.isfinite(value).all(), "a constant is not finite")
    return value


def _product(g: RewriteContext, first: _Term, last: _Term) -> NewNode:
    """The product or the quotient of a result by the two constants merged in one."""
    if first.divides and last.divides:
        return g.op.Div(first.x, _written(g, first.value * last.value, first.x))
    up, down = (last, first) if first.divides else (first, last)
    factor, divisor = up.value / down.value, down.value / up.value
    if _has(g, divisor, first.x) and not _has(g, factor, first.x):
        return g.op.Div(first.x, _written(g, divisor, first.x))
    return g.op.Mul(first.x, _written(g, factor, first.x))


def _rounded(g: RewriteContext, value: np.ndarray, like: str) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return value.astype(dtype_of(g, like))


def _has(g: RewriteContext, value: np.ndarray, like: str) -> bool:
    """Whether the type of a result represents these numbers exactly."""
    return bool((wide(_rounded(g, value, like)) == value).all())


def _written(g: RewriteContext, value: np.ndarray, like: str, null: bool = False) -> np.ndarray:
    """A constant in the type of a result; refuses unless its numbers are normal, or null."""
    normal = is_normal(value, dtype_of(g, like), null & (value == 0)).all()
    g.require(normal, "the new constant is not a normal number")
    return _rounded(g, value, like)
