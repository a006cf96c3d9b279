"""Masks of attention: which scores they hide, and whether each query sees at least one key."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import Dim, add

from ...authoring.context import RewriteContext
from ...authoring.right_side import Operand
from ..constants import cheap_value, is_number, scalar_constant, scalar_index, scalar_value
from ..scaling import scaled_operand
from ..shapes import at_least, padded
from .positions import positions_of
from .uniform import is_always

#: a mask hides a score when it adds this number or a lower one
HIDDEN = np.float32(np.finfo(np.float32).min)

#: the same in float16
_HALF_HIDDEN = np.float16(np.finfo(np.float16).min)

#: its exponential is 0, in float
_UNDERFLOWS = -1000.0

#: most nodes between scores and their mask
_STEPS = 6


def boolean_mask(
    g: RewriteContext, mask: str, hides: bool = False, dtype: type[np.floating] = np.float32
) -> tuple[str, float] | None:
    """`(condition, c)` if a mask is Where(condition, 0, c), None otherwise.

    :param mask: the mask
    :param hides: the mask is Where(condition, c, 0)
    :param dtype: type of the mask
    """
    node = g.producer_or_none(mask, "Where")
    seen, hidden = (2, 1) if hides else (1, 2)
    if node is None or not _adds_zeros(g, node, seen):
        return None
    value = scalar_value(g, node.input[hidden])
    if value is None or value.dtype != dtype:
        return None
    return node.input[0], float(value.item())


def _adds_zeros(g: RewriteContext, where: NodeProto, seen: int) -> bool:
    """Whether an operand of a Where is 0, or zeros that do not make the result broader than the
    condition."""
    name, mask = where.input[seen], where.output[0]
    if is_number(g, name, 0.0, g.rank_of(mask)):
        return True
    return g.same_shape(where.input[0], mask) and is_always(g, name, 0)


def attention_operator_mask(g: RewriteContext, mask: str, guarded: bool) -> Operand:
    """The mask to pass to the operator Attention, which hides a score whose mask is the lowest
    float, or an infinity, and returns zeros for a query whose keys are all hidden. Refuses a mask
    that is not Where(condition, 0, c) or Where(condition, c, 0).

    1. c is higher than the lowest float, -1e9 for instance: the operator adds the mask;
    2. every query sees a key: the condition of the mask;
    3. c is -inf and the weights that are NaN become 0: the condition of the mask;
    4. c is -inf: the mask minus its largest number, NaN for a query whose keys are all hidden;
    5. c is the lowest float, the weights are equal then: half of it, which is absorbed the same way
       and is not the lowest float.

    :param mask: mask added to the scores
    :param guarded: the weights that are NaN become 0
    """
    if g.type_of(mask) == TensorProto.FLOAT16:
        return _half_mask(g, mask)
    found = boolean_mask(g, mask)
    hides = found is None
    found = found or boolean_mask(g, mask, hides=True)
    condition, hidden = g.known(found, "the mask may hide everything from a query")
    if np.isfinite(hidden) and hidden > HIDDEN:
        return mask
    g.require(hidden <= HIDDEN, "the mask may not hide what it lowers")
    if (not hides and sees_a_key(g, condition)) or (guarded and np.isneginf(hidden)):
        return g.op.Not(condition) if hides else condition
    if np.isneginf(hidden):
        return g.op.Sub(mask, g.op.ReduceMax(mask, [-1], keepdims=1))
    numbers = (np.float32(0), HIDDEN / np.float32(2))
    return g.op.Where(condition, *(reversed(numbers) if hides else numbers))


def _half_mask(g: RewriteContext, mask: str) -> Operand:
    """The mask of :func:`attention_operator_mask` in float16, in which no number absorbs the scores
    but an infinity: the mask itself when it is finite or when each query sees a key, or the mask
    minus its largest number."""
    value = cheap_value(g, mask)
    if value is not None:
        known = not np.isnan(value).any() and bool((value.max(axis=-1) > _HALF_HIDDEN).all())
        known = known and not (value == _HALF_HIDDEN).any()
        g.require(known, "the mask may hide everything from a query")
        return mask
    founds = [boolean_mask(g, mask, hides, np.float16) for hides in (False, True)]
    condition, hidden = g.known(founds[0] or founds[1], "the mask may hide everything from a query")
    if np.isneginf(hidden) and not (founds[0] and sees_a_key(g, condition)):
        return g.op.Sub(mask, g.op.ReduceMax(mask, [-1], keepdims=1))
    g.require(np.isneginf(hidden) or hidden > _HALF_HIDDEN, "the mask may not hide what it lowers")
    return mask


def any_operator_mask(g: RewriteContext, mask: str) -> Operand:
    """The mask to pass to the operator Attention, of which nothing is known, in float.

    Its largest number says which rows are added another one: minus half of it where it is the
    lowest float, or an infinity. The lowest float becomes half of it, which absorbs the scores and
    hides none of them; infinities become NaN, as the weights were.

    :param mask: mask added to the scores
    """
    g.require(g.type_of(mask) == TensorProto.FLOAT, "the mask is not float")
    largest = g.op.ReduceMax(mask, [-1], keepdims=1)
    raised = g.op.Mul(largest, np.float32(-0.5))
    kept = g.op.Greater(largest, HIDDEN)
    return g.op.Add(mask, g.op.Where(kept, np.float32(0), raised))


def sees_a_key(g: RewriteContext, condition: str, hides: bool = False) -> bool:
    """Whether a condition is proven true for one key of each query, or false if it says which keys
    are hidden: a constant, a causal mask, or a window of it.

    1. every term of it compares columns, 0, 1, 2, ... along the last axis, to rows, 0, 1, 2, ...
       along the one before, plus something;
    2. without window (`columns > rows - 5`), the first key is not after any query;
    3. with windows, the last key a query may see is one of the keys, and is in each of them.
    """
    value = cheap_value(g, condition)
    if value is not None:
        return bool(value.ndim and (value != hides).any(axis=-1).all())
    terms = [] if hides else [*islice(_and_terms(g, condition), _STEPS + 1)]
    found = [None if node is None else _bound_of(g, node) for node in terms]
    bounds = [b for b in found if b is not None]
    highs = [b.first for b in bounds if b.is_last]
    lows = [b.first for b in bounds if not b.is_last]
    if len(bounds) < len(found) or len(found) > _STEPS or not highs:
        return False
    starts = all(at_least(g, high, 0) for high in highs)
    if not lows or not starts:
        return starts
    last = highs[0]
    inside = all(at_least(g, b.columns, add(last, b.rows)) for b in bounds)
    return len(highs) == 1 and inside and all(at_least(g, last, low) for low in lows)


class _Bound(NamedTuple):
    """The bound a comparison sets on the columns query *i* sees: `first + i` is the last, or the
    first.

    :param first: the last column, or the first one, of query 0
    :param is_last: it is the last one
    :param columns: number of columns
    :param rows: number of queries
    """

    first: Dim
    is_last: bool
    columns: Dim
    rows: Dim


#: comparison of columns to rows -> number added to the rows, whether it bounds the last column
_BOUNDS = {
    "LessOrEqual": (0, True),
    "Less": (-1, True),
    "GreaterOrEqual": (0, False),
    "Greater": (1, False),
}
#: the same comparison of rows to columns
_REVERSED = {
    "LessOrEqual": "GreaterOrEqual",
    "Less": "Greater",
    "GreaterOrEqual": "LessOrEqual",
    "Greater": "Less",
}


def _and_terms(g: RewriteContext, condition: str) -> Iterator[NodeProto | None]:
    """The comparisons whose conjunction is a condition, None for another term."""
    waiting = [condition]
    while waiting:
        node = g.producer_or_none(waiting.pop(), "And", "Expand", *_BOUNDS)
        if node is not None and node.op_type in ("And", "Expand"):
            waiting += node.input if node.op_type == "And" else node.input[:1]
        else:
            yield node


def _bound_of(g: RewriteContext, node: NodeProto) -> _Bound | None:
    for (columns, rows), name in (
        (node.input, node.op_type),
        (node.input[::-1], _REVERSED[node.op_type]),
    ):
        first = causal_positions(g, columns, rows)
        if first is not None:
            shift, is_last = _BOUNDS[name]
            sizes = g.shape_of(columns)[-1], g.shape_of(rows)[-2]
            return _Bound(add(first, shift), is_last, *sizes)
    return None


def is_causal(g: RewriteContext, mask: str, least: float = _UNDERFLOWS) -> bool:
    """Whether a mask, or a term of it, is proven to hide the keys after each query.

    It is Where(c, anything, low) where c, or one of its terms, is `columns <= rows`, both
    0, 1, 2, ...

    :param mask: mask added to the scores
    :param least: upper bound of a low value
    """
    node = g.producer_or_none(mask, "Add", "Expand")
    if node is not None:
        terms = node.input if node.op_type == "Add" else node.input[:1]
        return any(is_causal(g, term, least) for term in terms)
    where = g.producer_or_none(mask, "Where")
    hidden = None if where is None else scalar_value(g, where.input[2])
    if where is None or hidden is None or hidden.dtype != np.float32 or hidden.item() > least:
        return False
    return hides_later_keys(g, where.input[0])


def hides_later_keys(g: RewriteContext, condition: str) -> bool:
    """Whether a condition, or a term of it, is `columns <= rows`, both 0, 1, 2, ..."""
    bounds = [_bound_of(g, node) for node in _and_terms(g, condition) if node is not None]
    return any(b is not None and b.is_last and b.first == 0 for b in bounds)


def are_causal(
    g: RewriteContext, scores: str, least: float = _UNDERFLOWS, depth: int = _STEPS
) -> bool:
    """Whether scores are proven to hide the keys after each query: a causal mask is added to them,
    or Where(condition, scores, low), and a scalar may multiply the result.

    :param scores: input of Softmax
    :param least: upper bound of a low value
    :param depth: most nodes between the mask and the result
    """
    node = g.producer_or_none(scores, "Add", "Where", "Div", "Mul") if depth else None
    if node is None:
        return False
    if node.op_type == "Add":
        return any(is_causal(g, n, least) or are_causal(g, n, least, depth - 1) for n in node.input)
    if node.op_type == "Where":
        condition, source, low = node.input
        value = scalar_constant(g, low, g.rank_or_none(scores))
        low_enough = value is not None and bool(value.item() <= least)
        if not low_enough:
            return False
        return hides_later_keys(g, condition) or are_causal(g, source, least, depth - 1)
    scaled = scaled_operand(g, node)
    if scaled is None or scaled.factor < 0:
        return False
    return are_causal(g, scaled.data, least / scaled.factor, depth - 1)


def causal_positions(g: RewriteContext, columns: str, rows: str) -> Dim | None:
    """The first row when the columns are 0, 1, 2, ... along the last axis and the rows consecutive
    integers along the one before; None otherwise. The columns may be a vector."""
    shapes = [g.shape_or_none(name) or () for name in (columns, rows)]
    if len(shapes[1]) < 2 or shapes[1][-1] != 1 or padded(shapes[0], 2)[-2] != 1:
        return None
    keys, queries = positions_of(g, columns), positions_of(g, rows)
    if keys is None or queries is None or keys.first != 0:
        return None
    along = (keys.axis, queries.axis) == (len(shapes[0]) - 1, len(shapes[1]) - 2)
    return queries.first if along else None


def is_range(g: RewriteContext, name: str) -> bool:
    """Whether a result is 0, 1, 2, ..."""
    node: NodeProto | None = g.producer_or_none(name, "Range")
    if node is None:
        return False
    return scalar_index(g, node.input[0]) == 0 and scalar_index(g, node.input[2]) == 1
