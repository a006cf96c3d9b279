"""Whether results computed in another order may overflow where none did.

In float16, whose largest number is 65504, a sum or a product of ordinary numbers may be infinite.
"""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
from onnx import TensorProto

from xbuilder.operators.op_traits import CARRIERS, FLOATS
from xbuilder.tensors.amplitude import is_normal

from ...authoring.context import RewriteContext
from ..constants import is_cheap
from .affine import wide
from .weights import largest_in

#: reasons of a refusal
OVERFLOWS = "an intermediate result may overflow where none did"
NOT_NORMAL = "the new constant is not a normal number"
#: operators whose result holds elements of the first input, and no other
_MOVES = CARRIERS | {"Expand", "Tile"}
#: operators whose results are between -1 and 1
_UNIT = frozenset({"Cos", "Erf", "Sigmoid", "Sin", "Softmax", "Softsign", "Tanh"})
#: factors below it are made to avoid an overflow, those of attentions are not
TINY = 2.0**-24
#: most nodes between a result and a constant
_DEPTH = 8


def is_half(g: RewriteContext, name: str) -> bool:
    """Whether a result is float16, or of an unknown type."""
    return g.type_or_none(name) in (None, 0, TensorProto.FLOAT16)


def bound_of(g: RewriteContext, name: str) -> float | None:
    """A number that no element of a result exceeds in absolute value; None if none is known.

    1. A constant, and what moves its elements; booleans.
    2. Results of functions bounded by 1.

    Cost: a constant is read once, a block at a time; the number of nodes is bounded.
    """
    for _ in range(_DEPTH):
        if g.is_constant(name):
            return largest_in(g, name)
        node = g.producer_or_none(name, *_MOVES, *_UNIT, "Cast")
        if node is None:
            return None
        if node.op_type in _UNIT or g.type_or_none(node.input[0]) == TensorProto.BOOL:
            return 1.0
        name = node.input[0]
    return None


def keeps_range(g: RewriteContext, name: str, factor: float) -> bool:
    """Whether results that are not multiplied by a factor before they are combined, but after, are
    not likely to overflow: it is not below 1 in float16, nor a tiny number in another type.

    :param name: a result of this type
    :param factor: the factor
    """
    return abs(factor) >= (1.0 if is_half(g, name) else TINY)


def largest_number(elem_type: int) -> float:
    """The largest finite number of a type of floats.

    :param elem_type: the type

    >>> largest_number(TensorProto.FLOAT16)
    65504.0
    """
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)
    brain = elem_type == TensorProto.BFLOAT16
    return 2.0**127 * (2 - 2.0**-7) if brain else float(np.finfo(dtype).max)


def require_merged(g: RewriteContext, op_type: str, a: str, b: str) -> None:
    """Refuses a sum, or a product, of two operands computed before the third one, if it may
    overflow, or lose digits, where `(x + a) + b`, or `(x * a) * b`, does not.

    1. Integers, which wrap in any order.
    2. Small constants: the new numbers are finite, and normal or null for a product; what is
       infinite already may remain so.
    3. The sum of bounded results, see :func:`bound_of`.

    :param op_type: Add or Mul
    :param a: an operand
    :param b: the other one
    """
    kind = g.type_or_none(a)
    if kind is not None and kind not in FLOATS:
        return
    if kind and all(is_cheap(g, name) for name in (a, b)):
        left, right = (wide(g.constant_of(name)) for name in (a, b))
        dtype = oh.tensor_dtype_to_np_dtype(kind)
        with np.errstate(all="ignore"):
            value = left + right if op_type == "Add" else left * right
            finite = np.isfinite(value.astype(dtype).astype(np.float64))
        given = ~(np.isfinite(left) & np.isfinite(right))
        exact = finite if op_type == "Add" else is_normal(value, dtype, (left == 0) | (right == 0))
        g.require((given | exact).all(), NOT_NORMAL)
        return
    bounds = [bound_of(g, name) for name in (a, b)]
    known = [b for b in bounds if b is not None and np.isfinite(b)]
    small = op_type == "Add" and kind and len(known) == 2 and sum(known) <= largest_number(kind)
    g.require(small, OVERFLOWS)
