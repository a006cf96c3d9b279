"""Guards of fused attentions: zeros for NaN weights, when an operator does not return the weights.

A row of weights holds NaN everywhere or nowhere: softmax divides it by its sum. Operators of
onnxruntime keep these NaN, the same row of the result is NaN. Weights replaced by zeros turn finite
values into 0 and the others into NaN: `Where(IsNaN(result), 0 @ values, result)` is equal,
whatever queries, keys, values and masks hold, as long as no sum of values overflows. It reads the
result instead of the weights, which are bigger for long sequences.
"""

from __future__ import annotations

import numpy as np

from xbuilder.runtimes.processors import processors_of

from ...authoring.context import RewriteContext
from ...authoring.right_side import NewNode, NewResult, Operand
from ..constants import dtype_of
from .attention import Attention


def with_nan_guard(
    g: RewriteContext,
    found: Attention,
    result: NewNode | NewResult,
    values: Operand,
    flat: bool,
    split: bool = False,
) -> NewNode | NewResult:
    """The result of an operator, with the zeros of the weights if there are any.

    :param found: the attention
    :param result: (batch, sequence, heads * length), or the heads if *split*
    :param values: the values the weights multiply
    :param flat: these are (batch, sequence, heads * length), not (batch, heads, sequence, length)
    :param split: the result is (batch, heads, sequence, length)
    """
    if not found.guarded:
        return result
    heads, read = found.queries.count, found.values
    zero = zero_product(g, found, values, flat)
    shape = [0, heads, 1, read.length] if split else [0, 1, heads * read.length]
    if heads != read.count:
        pair = g.op.Reshape(zero, [0, read.count, 1, read.length]) if flat else zero
        zero = g.op.Expand(pair, [1, 1, heads // read.count, 1])
        flat = split = False
    zero = zero if flat or split else g.op.Reshape(zero, shape)
    return with_zeros(g, result, zero)


def with_zeros(g: RewriteContext, result: Operand, zero: Operand) -> NewNode:
    """Replaces by `zero` the NaN of the result."""
    return g.op.Where(g.op.IsNaN(result), zero, result)


def zero_product(
    g: RewriteContext, found: Attention, source: Operand, flat: bool = True
) -> NewNode:
    """`0 @ source`, one row for every query: 0, or NaN where a value is not finite.

    On CUDA it is the sum of `0 * source`: the product took up to three times as long (GPU H100).

    :param found: the attention
    :param source: (batch, number of keys, length), or (batch, heads, number of keys, length)
    :param flat: *source* has three dimensions
    """
    dtype = dtype_of(g, found.result)
    if processors_of(g.processor) == ("CUDA",):
        zeros = g.op.Mul(source, np.zeros((), dtype=dtype))
        return g.op.ReduceSum(zeros, axes=[1 if flat else 2], keepdims=1)
    batch = g.shape_of(found.values.name)[0]
    if isinstance(batch, int) and batch and isinstance(found.total, int):
        return g.op.MatMul(np.zeros((1, found.total), dtype=dtype), source)
    g.require(g.main_opset >= 15, "Shape gives no single dimension before opset 15")
    ends = [g.op.Shape(source, start=i, end=i + 1) for i in (0, 1 if flat else 2)]
    # onnxruntime does not broadcast a row to an empty batch
    shape = g.op.Concat(ends[0], [1] if flat else [1, 1], ends[1], axis=0)
    return g.op.MatMul(g.op.Expand(np.zeros(1, dtype=dtype), shape), source)
