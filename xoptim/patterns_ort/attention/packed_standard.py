"""Attention of opset 23 becomes com.microsoft.Attention, which projects the sequence by itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.arguments import optional_input
from ...analysis.attention.attention import Attention
from ...analysis.attention.heads import Heads, heads_of
from ...analysis.attention.magnitudes import ABSORBED, Magnitudes
from ...analysis.constants import scalar_constant
from ...analysis.shapes import padded, proven_equal
from ...analysis.values.masks import HIDDEN, sees_a_key
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ..kernels import require_kernel
from .packed_attention import Packed, packed_flats, packed_heads, require_long

#: attributes that change the result, and their neutral values
_PLAIN = {"softcap": 0.0, "softmax_precision": TensorProto.FLOAT}
#: an Attention of a later opset only hides the scores of an infinity, not of the lowest float
_LAST_LOWEST = 24
_MAY_HIDE = "the mask may hide everything from a query"


@rewrite(
    "onnxruntime",
    root="Attention",
    after=("Add", "MatMul", "Reshape", "Split", "Transpose", "Unsqueeze"),
    min_opset=23,
    priority="late",
    precision="rounding",
    sole_use=True,
)
def packed_attention(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """Attention(x @ Q + q, x @ K + k, x @ V + v) -> com.microsoft.Attention(x, weights, bias).

    1. Queries, keys and values are those of ``Attention3D``, of three dimensions or four; there are
       as many heads of each. A bias is added to one of them, or they are split from one product:
       T5, which has none, would take 1.03 times longer.
    2. The scores are not bounded, the scale is positive; no key of previous steps is read, and only
       the first result is used.
    3. There is no mask, or it is causal and there is no other, or the last two dimensions of the
       mask are those of the scores.
    4. Each query is proven to see a key, see :func:`.masks.sees_a_key`, or
       no number of the mask is as low as the lowest float. The lowest float is added where the
       mask is false.
    5. Or the mask is a condition, the same for every head, or it is Where(condition, bias, the
       lowest float); the sequence is normalized: scores and values are finite where it is, see
       :mod:`.magnitudes`. A query whose keys are all hidden gets zeros: half the
       lowest float is added instead, and the mean of the values is multiplied by 0. An element that
       is not finite turns it into NaN, as it does with the zeros. It is for the processor CPU.
    """
    read = _read(g, node)
    require_kernel(g, "Attention", node.input[0])
    rows = read.packed.rows
    biased = len(rows) == 1 or any(row.bias for row in rows)
    g.require(biased, "no bias is added: three products take less time")
    require_long(g, *g.shape_of(read.packed.rows[0].x)[:2])
    options: dict[str, Any] = {"num_heads": read.heads}
    scale = g.get_attribute_with_default(node, "scale", None)
    if scale is not None:
        g.require(scale > 0, "the scale is not a positive number")
        options["scale"] = scale
    causal, name = g.get_attribute_with_default(node, "is_causal", 0), optional_input(node, 3)
    g.require(not (causal and name), "it is causal and has a mask")
    if causal:
        options["unidirectional"] = 1
    mask = _read_mask(g, node, name, read.packed.rows[0].x) if name else _Mask(None, None)
    inputs = read.packed.inputs
    inputs = inputs if mask.bias is None else [*inputs, None, None, mask.bias]
    new = NewNode("Attention", inputs, options, MICROSOFT)
    if mask.seen is not None:
        new = g.op.Mul(new, mask.seen)
    return {node.output[0]: new} if read.found is None else read.found.replaced(g, new)


class _Read(NamedTuple):
    """The operands of an Attention.

    :param packed: the projections to queries, keys and values
    :param heads: number of heads
    :param found: the attention, None if it reads and returns three dimensions
    """

    packed: Packed
    heads: int
    found: Attention | None


def _read(g: RewriteContext, node: NodeProto) -> _Read:
    """Reads an Attention; refuses options the other operator does not support."""
    g.require(sum(map(bool, node.output)) == 1, "other results than the first one are given")
    g.require(not any(node.input[4:]), "keys and values of the steps before are read")
    plain = g.get_attributes_with_default(node, **_PLAIN) == _PLAIN
    g.require(plain, "the scores are bounded or rounded")
    if len(g.shape_of(node.input[0])) == 4:
        queries, keys, values = (heads_of(g, name) for name in node.input[:3])
        return _read_heads(g, node, (queries, keys, values))
    shapes = [g.shape_of(name) for name in node.input[:3]]
    counts = [g.get_attribute_with_default(node, f"{n}_num_heads", 0) for n in ("q", "kv")]
    (count, *others), (width, *widths) = counts, [shape[-1] for shape in shapes]
    same = others == [count] and widths == [width, width] and isinstance(width, int)
    g.require(same and count > 0, "the heads do not have the same length")
    return _Read(packed_flats(g, list(node.input[:3]), int(width)), count, None)


def _read_heads(g: RewriteContext, node: NodeProto, three: tuple[Heads, Heads, Heads]) -> _Read:
    """Reads an Attention of four dimensions."""
    steps, total = (g.shape_of(name)[2] for name in node.input[:2])
    found = Attention(*three, node.output[0], steps, total, "", 1.0, False)
    return _Read(packed_heads(g, three), three[0].count, found)


class _Mask(NamedTuple):
    """A mask as the other operator reads it.

    :param bias: the mask to add to the scores, None if there is no mask
    :param seen: 0 for a query whose keys are all hidden, 1 for others; None if there is none
    """

    bias: Operand
    seen: Operand


class _Choice(NamedTuple):
    """A mask, `Where(condition, added, low)`.

    :param condition: false where a score is hidden
    :param added: the number added to the others, more than the lowest float
    :param low: the lowest float, or an infinity
    """

    condition: str
    added: Operand
    low: float


def _read_mask(g: RewriteContext, node: NodeProto, name: str, x: str) -> _Mask:
    """Reads a mask; refuses a mask that may not lead to the same result.

    :param node: the operator
    :param name: the mask
    :param x: the sequence
    """
    g.require(g.type_of(node.input[0]) == TensorProto.FLOAT, "the type is not float")
    choice = _Choice(name, np.array(0, dtype=np.float32), -np.inf)
    is_condition = g.type_of(name) == TensorProto.BOOL
    if not is_condition:
        if _is_higher(g, name, x):
            return _Mask(_added(g, name, name, x), None)
        choice = _read_choice(g, name, x)
    if sees_a_key(g, choice.condition):
        bias = g.op.Where(name, choice.added, HIDDEN) if is_condition else name
        return _Mask(_added(g, name, bias, x), None)
    g.require(np.isneginf(choice.low) or g.main_opset <= _LAST_LOWEST, _MAY_HIDE)
    _require_finite(g, node, x)
    half = g.op.Where(choice.condition, choice.added, HIDDEN / np.float32(2))
    return _Mask(_added(g, name, half, x), _seen(g, choice.condition))


def _read_choice(g: RewriteContext, name: str, x: str) -> _Choice:
    """Reads a mask of floats; refuses unless it chooses between the lowest float, or an infinity,
    and higher numbers."""
    where = g.producer_of(name, "Where", reason=_MAY_HIDE)
    condition, added, low = where.input
    rank = max(map(g.rank_of, (condition, added)))
    value = g.known(scalar_constant(g, low, rank), _MAY_HIDE)
    hides = bool(value.item() <= HIDDEN) and _is_higher(g, added, x)
    g.require(hides, _MAY_HIDE)
    return _Choice(condition, added, float(value.item()))


def _is_higher(g: RewriteContext, name: str, x: str) -> bool:
    """Whether every element is proven to be higher than the lowest float."""
    largest = Magnitudes(g, x).largest(name)
    return largest is not None and largest < -float(HIDDEN)


def _added(g: RewriteContext, name: str, value: Operand, x: str) -> Operand:
    """A mask with four dimensions, of which the last two are those of the scores.

    :param name: a result with the shape of the mask
    :param value: the mask
    :param x: the sequence
    """
    shape, steps = g.shape_of(name), g.shape_of(x)[1]
    same = 2 <= len(shape) <= 4 and proven_equal(g, shape[-2:], (steps, steps))
    g.require(same, "the mask is broadcast in another way")
    axes = list(range(4 - len(shape)))
    return g.op.Unsqueeze(value, axes) if axes else value


def _require_finite(g: RewriteContext, node: NodeProto, x: str) -> None:
    """Refuses scores and values that may not be finite where the sequence is."""
    g.require(not g.has_processor("CUDA"), _MAY_HIDE)
    width = g.shape_of(node.input[0])[-1]
    found = Magnitudes(g, x).all(node.input[:3])
    scale = max(1.0, g.get_attribute_with_default(node, "scale", 1.0))
    finite = found is not None and found[0] * found[1] * scale * int(width) <= ABSORBED
    g.require(finite, "a score may not be finite where the sequence is")


def _seen(g: RewriteContext, condition: str) -> NewNode:
    """0 for a query whose keys are all hidden, 1 for others, (batch or 1, sequence or 1, 1)."""
    shape = g.shape_of(condition)
    g.require(padded(shape, 3)[-3] == 1 and len(shape) > 1, "heads have their own masks")
    any_key = g.op.ReduceMax(g.op.Cast(condition, to=TensorProto.FLOAT), axes=[-1])
    return g.op.Squeeze(any_key, [1]) if len(shape) == 4 else any_key
