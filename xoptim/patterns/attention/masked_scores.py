"""Attention scores hidden by a Where: the mask is added instead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.attention.attention import weighted_product
from ...analysis.attention.heads import repeated
from ...analysis.attention.magnitudes import ABSORBED, Magnitudes
from ...analysis.attention.projections import projected_magnitudes
from ...analysis.axes import axis_of
from ...analysis.constants import dtype_of, scalar_constant
from ...analysis.values.masks import HIDDEN, sees_a_key
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: what replaces a score to hide it, at most
_HIDES = -1000.0
#: the exponential of a score lower than another one by this number is 0
_MARGIN = 1000.0


@rewrite("default", root="Where", read_by=("Add", "Softmax"), min_opset=13)
def masked_scores(g: RewriteContext, where: NodeProto) -> NewNode:
    """Softmax(Where(c, s, low)) @ V -> Softmax(s + Where(c, 0, low)) @ V, also Where(c, low, s).

    1. low is the lowest float or an infinity, it absorbs s, which has the shape of the result;
       another term may be added before Softmax. An Expand of c is removed;
    2. or low is a number, -1e9 for instance, whose half is lower than any score, and Softmax reads
       the result: the lowest float hides as much, the weights are equal where no key is seen;
    3. V holds the heads of x @ W + b, x is a normalized sequence, W and b are constants; s is
       computed from x, by operations that keep it finite when x is, see
       :mod:`xoptim.analysis.attention.magnitudes`: where x is not finite, the result is NaN anyway.

    4. in float16, the lowest number does not absorb the scores: low is an infinity, or becomes one
       if each query is proven to see a key; not on CPU at an opset whose Attention has no kernel,
       unless queries share heads and every size is known, for GroupQueryAttention.

    Attention adds its mask, which is smaller than the scores.
    """
    masked = _read(g, where)
    largest = magnitudes_of(g, where.output[0]).largest(masked.scores)
    absorbed = largest is not None and largest <= ABSORBED
    g.require(absorbed, "a score may not be finite where the values are")
    half = g.type_of(masked.scores) == TensorProto.FLOAT16
    known = not half or _reads_halves(g, where.output[0])
    g.require(known, "no operator for attention reads float16 at this opset")
    if masked.low <= (-np.inf if half else HIDDEN):
        return masked.added(g, masked.low)
    alone = g.reader_or_none(where.output[0], "Softmax") is not None
    g.require(alone, "another number is added, which may hide more")
    lowest = largest is not None and masked.low <= -2 * largest - _MARGIN
    g.require(lowest, "a score may be as low as what hides others")
    if not half:
        return masked.added(g, float(HIDDEN))
    seen = sees_a_key(g, masked.condition, masked.hides)
    g.require(seen, "a query may see no key")
    return masked.added(g, -np.inf)


@rewrite("approximate", root="Where", read_by="Softmax", min_opset=13, precision="approximate")
def finite_scores(g: RewriteContext, where: NodeProto) -> NewNode:
    """Softmax(Where(c, s, low)) -> Softmax(s + Where(c, 0, low)), also Where(c, low, s).

    1. low is an infinity, or a number, at most -1000, which half of the lowest one replaces; s has
       four dimensions, the shape of the result, it is float or float16. An Expand of c is removed;
    2. scores are taken for finite, and smaller than low: a NaN or an infinity that was hidden makes
       a NaN of its row; in float16, the weights of a query that sees no key may not be equal.

    It is MaskedScores where nothing says how large the scores are.
    """
    masked = _read(g, where)
    _softmax_of_rows(g, where.output[0])
    lowest = float(np.finfo(dtype_of(g, masked.scores)).min) / 2
    return masked.added(g, masked.low if np.isneginf(masked.low) else lowest)


class _Masked(NamedTuple):
    """Scores of which a Where hides some.

    :param condition: true where they are seen, or where they are hidden
    :param scores: the scores
    :param low: what replaces those that are hidden
    :param hides: the condition is true where they are hidden
    """

    condition: str
    scores: str
    low: float
    hides: bool

    def added(self, g: RewriteContext, low: float) -> NewNode:
        """The scores, plus a number where they are hidden."""
        zero, lowest = (np.array(v, dtype=dtype_of(g, self.scores)) for v in (0, low))
        numbers = (lowest, zero) if self.hides else (zero, lowest)
        return g.op.Add(self.scores, g.op.Where(self.condition, *numbers))


def _read(g: RewriteContext, where: NodeProto) -> _Masked:
    """Reads a Where that replaces scores, float or float16, by a negative number."""
    result = where.output[0]
    g.require(len(g.shape_of(result)) == 4, "the scores do not have four dimensions")
    known = g.type_of(result) in (TensorProto.FLOAT, TensorProto.FLOAT16)
    g.require(known, "the type is not float nor float16")
    side, low = _hidden(g, where)
    g.require(g.same_shape(where.input[side], result), "the condition may be broader")
    g.require_sole_use("the scores are used elsewhere", result)
    condition = where.input[0]
    expand = g.producer_or_none(condition, "Expand")
    if expand is not None:
        g.look_at(expand)
        condition = expand.input[0]
    return _Masked(condition, where.input[side], low, side == 2)


def _hidden(g: RewriteContext, where: NodeProto) -> tuple[int, float]:
    """The index of the scores in a Where that hides them, and the number that hides them."""
    for side in (1, 2):
        value = scalar_constant(g, where.input[3 - side], 4)
        if value is not None and value.item() <= _HIDES:
            return side, float(value.item())
    return g.refuse("no score is hidden")


def _reads_halves(g: RewriteContext, scores: str) -> bool:
    """Whether an operator for attention has a kernel for float16: MultiHeadAttention has one on
    CUDA. On CPU, the standard Attention has one, and GroupQueryAttention if sizes are known."""
    if g.has_processor("CUDA") or has_kernel("Attention", TensorProto.FLOAT16, g.main_opset):
        return True
    sizes_are_known = all(isinstance(d, int) for d in g.shape_of(scores))
    return sizes_are_known and repeated(g, _values_of(g, scores)) is not None


def _softmax_of_rows(g: RewriteContext, scores: str) -> NodeProto:
    """The Softmax that alone reads scores; refuses another axis than the last one."""
    softmax = g.reader_of(scores, "Softmax", reason="it is not a Softmax of rows")
    g.require(axis_of(g, softmax, 4, -1) == 3, "it is not a Softmax of rows")
    return softmax


def magnitudes_of(g: RewriteContext, scores: str) -> Magnitudes:
    """The bounds of what is computed from the sequence the values of an attention are projected
    from; refuses otherwise.

    :param scores: what Softmax reads, or a term of it
    """
    return projected_magnitudes(g, _values_of(g, scores))


def _values_of(g: RewriteContext, scores: str) -> str:
    """The values that the weights of an attention multiply; refuses scores that are not those of
    one."""
    add = g.reader_or_none(scores, "Add")
    softmax = _softmax_of_rows(g, scores if add is None else add.output[0])
    _, weighted = weighted_product(g, softmax.output[0])
    return str(weighted.input[1])
