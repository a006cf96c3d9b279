"""Sums that round: on purpose, `(x + c) - c` with a large constant c, or in another order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import FLOATS

from ...authoring.queries import GraphQueries

#: reductions that return one of the elements, or its place
_CHOICES = ("ArgMax", "ArgMin", "ReduceMax", "ReduceMin")
#: reason of a refusal
ROUNDS = "what is added is taken away: it rounds the result"
_SUMS = ("Add", "Sub")
#: distance between 1 and the next number
_STEPS: dict[int, float] = {
    TensorProto.FLOAT: 2.0**-23,
    TensorProto.DOUBLE: 2.0**-52,
    TensorProto.FLOAT16: 2.0**-10,
    TensorProto.BFLOAT16: 2.0**-7,
}
#: a smaller rounding happens in any sum
_NOTICED = 2.0**-16
#: a total counts as null if it is less than this part of its terms
_CANCELLED = 2.0**-4
#: constants with more elements are not read
_READ = 1 << 20


class _Term(NamedTuple):
    """The constant a node adds to an operand, and the sign it gives to this operand."""

    sign: int
    value: np.ndarray


def takes_any_order(g: GraphQueries, node: NodeProto) -> bool:
    """Whether a reduction may visit its elements in another order, as precision `rounding` allows
    for floats. onnxruntime adds and multiplies integers in float64: large terms that cancel each
    other lose digits in another order.

    :param node: a Reduce*, an ArgMax or an ArgMin
    """
    return node.op_type in _CHOICES or g.type_or_none(node.input[0]) in FLOATS


def rounds(g: GraphQueries, node: NodeProto) -> bool:
    """Whether a node is one of both in `(x + c) - c`, which rounds x, so that no sum of constants,
    no bias may replace it. `x + 12582912 - 12582912` is the integer nearest to x, in float.

    1. The constants have opposite signs, their sum is less than a sixteenth of them.
    2. The difference between c and the next number is 2**-16 at least: above 128 in float.

    Cost: O(1), it reads the node before and the only one after, unless the constant is small.
    """
    kind = g.type_or_none(node.output[0]) if node.op_type in _SUMS else None
    step = 0.0 if kind is None else _STEPS.get(kind, 0.0)
    term = _term(g, node) if step else None
    if term is None or not np.abs(term.value).max(initial=0.0) * step >= _NOTICED:
        return False
    before = [g.producer_or_none(name, *_SUMS) for name in node.input if not g.is_constant(name)]
    after = g.reader_or_none(node.output[0], *_SUMS)
    firsts = [None if other is None else _term(g, other) for other in before]
    last = None if after is None else _term(g, after)
    pairs = [*((first, term) for first in firsts), (term, last)]
    return any(_cancel(first, second, step) for first, second in pairs if first and second)


def _term(g: GraphQueries, node: NodeProto) -> _Term | None:
    """The constant of a sum or a difference, None if there is none or if it is big."""
    a, b = node.input
    if g.is_constant(a) == g.is_constant(b):
        return None
    name = a if g.is_constant(a) else b
    shape = g.get_constant_shape(name)
    if shape is None or math.prod(shape) > _READ:
        return None
    value = g.constant_or_none(name)
    if value is None:
        return None
    value = value.astype(np.float64)
    if node.op_type == "Add":
        return _Term(1, value)
    return _Term(-1, value) if name == a else _Term(1, -value)


def _cancel(first: _Term, second: _Term, step: float) -> bool:
    """Whether at least one number is added, then subtracted."""
    try:
        terms = np.broadcast_arrays(second.sign * first.value, second.value)
    except ValueError:
        return False
    largest = np.maximum(*np.abs(terms))
    with np.errstate(invalid="ignore"):
        cancelled = np.abs(terms[0] + terms[1]) < largest * _CANCELLED
    return bool((cancelled & (largest * step >= _NOTICED)).any())
