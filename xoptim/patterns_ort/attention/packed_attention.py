"""com.microsoft.Attention, which projects a sequence to queries, keys and values by itself."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Dim, prod
from xbuilder.operators.domains import MICROSOFT

from ...analysis.attention.attention import LOCAL, Attention, read_attention
from ...analysis.attention.attention_guards import with_zeros, zero_product
from ...analysis.attention.heads import SWAPPED, Heads, transposed
from ...analysis.axes import axes_of, axis_of
from ...analysis.constants import dtype_of
from ...analysis.gemm import is_plain, product_and_bias
from ...analysis.kernels import require_fast
from ...analysis.shapes import proven_equal
from ...analysis.weights.weights import is_finite, joined_weight, ordered_weight, require_weight
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ..kernels import require_kernel
from .attention import added_mask

#: (batch, sequence, 3, heads, length) to (3, batch, heads, sequence, length)
_APART = (2, 0, 3, 1, 4)
#: with this number of scores and no mask, MultiHeadAttention after three products takes less time:
#: 0.92 for 2^20, 0.97 for 2^21, 0.90 for 10 million, and 0.98 of DINOv2 for 800,000; 1.003 and more
#: below 2^19
_MANY_SCORES = 1 << 19
#: three products of several shorter sequences take less time: 0.88 to 0.90 for 7 and 8 elements
_STEPS = 12


class Projection(NamedTuple):
    """`x @ weight + bias`, then its heads.

    :param x: a sequence, of shape (batch, sequence, any length), or its rows, (batch * sequence,
        any length)
    :param weight: a constant, of shape (any length, heads * length)
    :param bias: a constant, of shape (heads * length,), empty if there is none
    :param is_turned: the weight is transposed, of shape (heads * length, any length)
    """

    x: str
    weight: str
    bias: str
    is_turned: bool


class Packed(NamedTuple):
    """The projections that the operator computes.

    :param inputs: the sequence, the weights, the bias
    :param rows: the projections, the one of the values is the last
    """

    inputs: list[Operand]
    rows: list[Projection]


@rewrite(
    "onnxruntime",
    root=f"intermediate::{LOCAL}",
    behind=("CausalAttention", "TinyWeightsAttention"),
    priority="first",
    precision="rounding",
    sole_use=True,
)
def attention_3d(g: RewriteContext, call: NodeProto) -> dict[str, Replacement]:
    """LocalAttention(x @ Q + q, x @ K + k, x @ V + v) -> com.microsoft.Attention(x, weights, bias).

    1. queries, keys and values are three products of one sequence by constant weights, with a bias
       or not, which nothing else reads, or the parts of one product, split before or after their
       heads are moved, or parts of each head; their heads have the same length;
    2. there may be a mask, whose last two dimensions are those of the scores, or one row of keys
       for every query, or one column, which is repeated;
    3. zeros may replace NaN in the weights: a value is finite when all its element of the sequence
       is, the constants have to be, see :mod:`xoptim.analysis.attention.attention_guards`;
    4. not several sequences known to be shorter than 12, because the operator multiplies them one
       by one; nor, without a mask, half a million scores or more, which MultiHeadAttention computes
       in blocks.

    Three products become one, computed by the operator. Elements may be the rows of a matrix where
    they are multiplied, by a weight that is transposed or not. It comes before the operator
    Attention of opset 23, which does not project.
    """
    found = read_attention(g, call)
    require_kernel(g, "Attention", found.result)
    mask = added_mask(g, found)
    packed = packed_heads(g, (found.queries, found.keys, found.values), of_rows=True)
    batch = g.shape_of(found.result)[0]
    require_long(g, batch, found.steps)
    if mask is None and not g.has_processor("CUDA"):
        _require_few_scores(g, (batch, found.queries.count, found.steps, found.total))
    x = _sequence_of_rows(g, packed.rows[-1].x, found.steps)
    inputs = [x, *packed.inputs[1:], *([] if mask is None else [None, None, mask])]
    options: dict[str, Any] = {"num_heads": found.queries.count, "scale": found.scale}
    new = NewNode("Attention", inputs, options, MICROSOFT)
    return found.replaced(g, _guarded(g, found, new, packed.rows[-1], x))


def packed_heads(
    g: RewriteContext, three: tuple[Heads, Heads, Heads], of_rows: bool = False
) -> Packed:
    """Reads queries, keys and values, moved from a sequence, as projections of another one.

    :param three: queries, keys, values
    :param of_rows: the rows of both sequences may be those of a matrix
    """
    same = len({(heads.count, heads.length) for heads in three}) == 1
    g.require(same, "the heads do not have the same length")
    width = three[0].count * three[0].length
    whole, axis = _moved_together(g, three, width, of_rows)
    if whole:
        columns = np.arange(3 * width).reshape(three[0].count, 3, three[0].length)
        beside = columns.swapaxes(0, 1).ravel() if axis == 3 else None
        return _one(g, whole, 3 * width, beside)
    return packed_flats(g, [_sequence(g, heads, of_rows) for heads in three], width)


def packed_flats(g: RewriteContext, flats: list[str], width: int) -> Packed:
    """Reads queries, keys and values as projections of one sequence.

    :param flats: queries, keys, values, of shape (batch, sequence, width)
    :param width: length of the heads side by side
    """
    whole = _source(g, flats)
    if whole:
        return _one(g, whole, 3 * width)
    rows = [_product(g, flat, width) for flat in flats]
    return Packed(_joined(g, rows, width), rows)


def require_long(g: RewriteContext, batch: Dim, steps: Dim) -> None:
    """Refuses several sequences that are known to be short."""
    few = isinstance(steps, int) and steps < _STEPS
    g.require(batch == 1 or not few, "short sequences are multiplied one by one")


def _require_few_scores(g: RewriteContext, sizes: tuple[Dim | None, ...]) -> None:
    """Refuses sequences known to be long: one of unknown length counts as one element."""
    known = [d for d in sizes if isinstance(d, int)]
    faster = "MultiHeadAttention computes many scores in blocks"
    require_fast(g, math.prod(known) < _MANY_SCORES, faster)


def _sequence_of_rows(g: RewriteContext, x: str, steps: Dim | None) -> Operand:
    """A sequence, given the rows of its elements or itself."""
    rows = g.shape_of(x)
    if len(rows) == 3:
        return x
    if not isinstance(steps, int) or not isinstance(rows[1], int):
        g.refuse("the length of the sequence is not known")
    return g.op.Reshape(x, [-1, steps, rows[1]])


def _sequence(g: RewriteContext, heads: Heads, of_rows: bool) -> str:
    """The heads side by side, of shape (batch, sequence, heads * length)."""
    if heads.alone:
        return heads.alone
    g.require(heads.moved, "the heads are not moved from a sequence")
    return _flat(g, heads.moved, heads.count * heads.length, of_rows)


def _flat(g: RewriteContext, moved: str, width: int, of_rows: bool) -> str:
    """The sequence, of shape (batch, sequence, width), that a Reshape splits in heads, or its
    rows."""
    flat = str(g.before(moved, "Reshape").input[0])
    dims, split = g.shape_of(flat), g.shape_of(moved)
    if of_rows and len(dims) == 2:
        whole = dims[1] == width == prod(split[2:])
    else:
        whole = len(dims) == 3 and dims[2] == width and proven_equal(g, dims[:2], split[:2])
    g.require(whole, "the heads are not those of each element")
    return flat


def _moved_together(
    g: RewriteContext, three: tuple[Heads, Heads, Heads], width: int, of_rows: bool
) -> tuple[str, int]:
    """The sequence whose queries, keys and values are moved at once and split afterwards, along
    this axis: they are one after the other, or parts of each head along the last axis. Empty if
    they are not."""
    names = [heads.name for heads in three]
    node = g.producer_or_none(names[0], "Split", "Squeeze")
    if node is None:
        return "", 0
    squeezes = _squeezes(g, names) if node.op_type == "Squeeze" else []
    parts = [squeeze.input[0] for squeeze in squeezes] or names
    split = g.producer_or_none(parts[0], "Split")
    if split is None or list(split.output) != parts:
        return "", 0
    axes, rank, perm = ((0,), 5, _APART) if squeezes else ((1, 3), 4, SWAPPED)
    axis = axis_of(g, split, rank)
    moved = transposed(g, split.input[0], perm) if axis in axes else None
    if axis is None or moved is None:
        return "", 0
    g.look_at(split, *squeezes)
    return _flat(g, moved, 3 * width, of_rows), axis


def _squeezes(g: RewriteContext, names: list[str]) -> list[NodeProto]:
    """The Squeeze that removes the first axis of each result, no node if one is missing."""
    nodes = [g.producer_or_none(name, "Squeeze") for name in names]
    found = [node for node in nodes if node is not None and axes_of(g, node) == (0,)]
    return found if len(found) == len(names) else []


def _source(g: RewriteContext, flats: list[str]) -> str:
    """The input of the Split in queries, keys and values, empty if there is none."""
    split = g.producer_or_none(flats[0], "Split")
    if split is None or list(split.output) != flats or axis_of(g, split, 3) != 2:
        return ""
    g.look_at(split)
    return str(split.input[0])


def _one(g: RewriteContext, whole: str, width: int, order: np.ndarray | None = None) -> Packed:
    """Reads one product that is split afterwards; its columns take another order if there is
    one."""
    row = _product(g, whole, width)
    if row.is_turned or order is not None:
        require_weight(g, row.weight)
    weight, bias = row.weight, row.bias or _zeros(g, row.x, width)
    if order is None:
        return Packed([row.x, _upright(g, row, weight), bias], [row])
    if row.bias:
        bias = g.constant_of(row.bias)[order]
    ordered = ordered_weight(g, weight, int(not row.is_turned), order)
    return Packed([row.x, _upright(g, row, ordered), bias], [row])


def _upright(g: RewriteContext, row: Projection, weight: Operand) -> Operand:
    """The weight of a product, in the orientation of the operator."""
    return g.op.Transpose(weight, perm=[1, 0]) if row.is_turned else weight


def _joined(g: RewriteContext, rows: list[Projection], width: int) -> list[Operand]:
    """The inputs of the operator when three products become one."""
    g.require(len({row.x for row in rows}) == 1, "the products are not those of one sequence")
    g.require(len({row.is_turned for row in rows}) == 1, "some weights are transposed")
    for row in rows:
        require_weight(g, row.weight)
    weights = joined_weight(g, [row.weight for row in rows], int(not rows[0].is_turned))
    biases = [g.constant_of(row.bias) if row.bias else _zeros(g, row.x, width) for row in rows]
    return [rows[0].x, _upright(g, rows[0], weights), np.concatenate(biases)]


def _guarded(
    g: RewriteContext, found: Attention, new: NewNode, row: Projection, x: Operand
) -> NewNode:
    """The result with the zeros of the weights, if there are any; *row* is the projection of the
    values, *x* the sequence."""
    if not found.guarded:
        return new
    for name in (row.weight, row.bias):
        g.require(not name or is_finite(g, name), "a weight of the values is not finite")
    length = (g.get_constant_shape(row.weight) or ())[int(row.is_turned)]
    column = np.zeros((length, 1), dtype=dtype_of(g, row.x))
    return with_zeros(g, new, g.op.MatMul(zero_product(g, found, x), column))


def _zeros(g: RewriteContext, x: str, width: int) -> np.ndarray:
    """A null bias, because onnxruntime crashes without any."""
    return np.zeros(width, dtype=dtype_of(g, x))


def _product(g: RewriteContext, flat: str, width: int) -> Projection:
    """Reads the product of a sequence by a constant matrix, with a bias or not; its elements may be
    reshaped to the rows of a matrix meanwhile."""
    dims = g.shape_of(flat)
    reshape = g.producer_or_none(flat, "Reshape") if len(dims) == 3 else None
    if reshape is not None:
        g.look_at(reshape)
        flat = reshape.input[0]
        rows = g.shape_of(flat)
        g.require(len(rows) == 2 and rows[1] == width, "the rows are not those of the sequence")
    x, weight, bias, is_turned = _terms(g, flat)
    if bias:
        g.require(g.get_constant_shape(bias) == (width,), "the bias is not a constant")
    known = g.get_constant_shape(weight)
    g.require(known is not None and len(known) == 2, "the weight is not a constant matrix")
    if reshape is not None:
        # as many rows before as after, none is null, so the length of a row is the same
        x = str(g.before(x, "Reshape").input[0])
    before = g.shape_of(x)
    same = len(before) == len(dims) and proven_equal(g, before[:-1], dims[:-1])
    g.require(same, "the product is not the one of a sequence")
    return Projection(x, weight, bias, is_turned)


def _terms(g: RewriteContext, name: str) -> Projection:
    """The operand, the matrix, and the bias if there is one."""
    product, bias = product_and_bias(g, g.before(name, "MatMul", "Add", "Gemm"))
    plain = is_plain(g, product, "alpha", "beta", "transA")
    g.require(plain, "the product is scaled or transposed")
    weight, is_turned = product.input[1], not is_plain(g, product, "transB")
    # GemmTranspose wrote a Transpose, it is not folded yet
    upright = transposed(g, weight, (1, 0)) if is_turned and g.is_constant(weight) else None
    return Projection(product.input[0], upright or weight, bias, is_turned and not upright)
