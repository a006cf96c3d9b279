"""Rotary embeddings of halves or of neighbours, outlined as functions."""

from __future__ import annotations

from typing import NamedTuple

from onnx import NodeProto

from xbuilder.dims import Dim, Shape, mul, normalize_axis

from ...analysis.arguments import optional_input
from ...analysis.attention.rotary import (
    HALF_ROTARY,
    INTERLEAVED_ROTARY,
    ROTARIES,
    ROTARY_PARTS,
    SIGNED_HALF_ROTARY,
    SIGNED_INTERLEAVED_ROTARY,
)
from ...analysis.axes import axes_of, axis_of, cut_axes
from ...analysis.constants import int_values, scalar_dim, scalar_index
from ...analysis.shapes import dims_are_equal, proven_equal
from ...authoring import NewResult, RewriteContext
from ...declarative import rule

#: two halves joined, two columns joined then merged in the last axis
_HALVES = "joined = Concat({0}, {1}, axis=axis)"
_PAIRS = (
    "joined = Concat(Unsqueeze({0}, *_, **_) | {0}, Unsqueeze({1}, *_, **_) | {1}, axis=axis); "
    "pairs = Reshape(joined, *_, **_)"
)
_FLIPPED = (
    "joined = Slice(Reshape(x, *_, **_), start, end, axes, steps); pairs = Reshape(joined, *_, **_)"
)
_NEGATED = "n = -x1 | x1 * -1"
_ROTATED = "n = x0 * cos - x1 * sin; second = x1 * cos + x0 * sin"


@rule(
    "default",
    f"{_NEGATED}; {_HALVES.format('n', 'x0')}; y = x * cos + joined * sin; y",
    f"{_NEGATED}; {_PAIRS.format('n', 'x0')}; y = x * cos + pairs * sin; y",
    f"{_ROTATED}; {_HALVES.format('n', 'second')}; joined",
    f"{_ROTATED}; {_PAIRS.format('n', 'second')}; pairs",
    root="n",
    prepares=ROTARIES,
    aliases=("FunctionInterleavedRotaryEmbedding", "FunctionRotaryEmbeddingParts"),
    sole_use=False,
)
def function_half_rotary_embedding(
    g: RewriteContext,
    x: str | None,
    x0: str,
    x1: str,
    cos: str,
    sin: str,
    axis: int,
    joined: str,
    pairs: str | None,
    y: str | None,
) -> dict[str, NewResult]:
    """x * cos + Concat(-x2, x1) * sin -> HalfRotaryEmbedding(x, cos, sin).

    1. x1, x2 = Split(x), or two Slice, are the halves of the last axis of x, of rank 4;
    2. x * cos + Stack(-x1, x0) * sin -> InterleavedRotaryEmbedding(x, cos, sin): x0 and x1 are
       every other element of the last axis of x, of rank 4, whose length is known: Slice of step
       2, or the columns of Reshape(x, (..., length / 2, 2)). Stack is Concat of one more
       dimension, the last one, then Reshape to the shape of x;
    3. neither cos nor sin broadcasts x;
    4. Concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin), or Stack of them: the last
       dimension of cos and sin is half of the one of x;
    5. Concat(a * cos - b * sin, b * cos + a * sin) -> RotaryEmbeddingParts(a, cos, sin, b), where a
       and b are not halves of one result: every other element of x, for instance.
    """
    if x is None and pairs is None and _half(g, x0, False) is None:
        return _of_two_results(g, (x0, x1), cos, sin, axis, joined)
    source = _source(g, x0, x1, pairs is not None)
    g.require(x in (None, source), "the parts are not those of x")
    _require_joined(g, source, joined, axis, pairs)
    result = y or pairs or joined
    g.require(g.same_shape(result, source), "x may be broadcast")
    length = g.shape_of(source)[3]
    if x is None:
        _require_one_per_pair(g, (cos, sin), length)
    return g.outline(INTERLEAVED_ROTARY if pairs else HALF_ROTARY, [source, cos, sin], [result])


def _of_two_results(
    g: RewriteContext, halves: tuple[str, str], cos: str, sin: str, axis: int, joined: str
) -> dict[str, NewResult]:
    """The embedding whose halves are two results of one shape."""
    shape = g.shape_of(halves[0])
    g.require(len(shape) == 4 and axis in (-1, 3), "the halves are not joined along the last axis")
    g.require(g.same_shape(*halves), "the halves may not have the same shape")
    length = mul(2, shape[3])
    whole = proven_equal(g, g.shape_of(joined), (*shape[:3], length))
    g.require(whole, "x may be broadcast")
    _require_one_per_pair(g, (cos, sin), length)
    return g.outline(ROTARY_PARTS, [halves[0], cos, sin, halves[1]], [joined])


def _require_one_per_pair(g: RewriteContext, tables: tuple[str, str], length: Dim) -> None:
    """Refuses cosines and sines whose last dimension is not half of a length."""
    for dims in map(g.shape_of, tables):
        half = bool(dims) and dims_are_equal(g)(mul(2, dims[-1]), length)
        g.require(half, "cos is not one for each pair")


@rule(
    "default",
    f"{_HALVES.format('x1', 'x0')}; y = x * cos + joined * sin; y",
    f"{_PAIRS.format('x1', 'x0')}; y = x * cos + pairs * sin; y",
    f"{_FLIPPED}; y = x * cos + pairs * sin; y",
    root="joined",
    prepares=ROTARIES,
    sole_use=False,
)
def function_signed_rotary_embedding(
    g: RewriteContext,
    x: str,
    x0: str | None,
    x1: str | None,
    cos: str,
    sin: str,
    axis: int | None,
    start: str | None,
    end: str | None,
    axes: str | None,
    steps: str | None,
    joined: str,
    pairs: str | None,
    y: str,
) -> dict[str, NewResult]:
    """x * cos + Concat(x2, x1) * sin -> SignedHalfRotaryEmbedding(x, cos, sin).

    1. x1, x2 are the halves of the last axis of x, of rank 4, as in HalfRotaryEmbedding:
       torch.roll, or torch.cat;
    2. x1, x2 are every other element of it -> SignedInterleavedRotaryEmbedding;
    3. a Slice reverses the two rows, or the two columns, of Reshape(x).

    The sines have a sign, which the next rewrite reads.
    """
    if x0 is None or x1 is None or axis is None:
        neighbours = _flipped_axis(g, x, joined, (start, end, axes, steps)) == 4
        g.require(g.same_shape(pairs or "", x), "the pairs do not get the shape of x")
    else:
        neighbours = pairs is not None
        g.require(_source(g, x0, x1, neighbours) == x, "the parts are not those of x")
        _require_joined(g, x, joined, axis, pairs)
    g.require(g.same_shape(y, x), "x may be broadcast")
    name = SIGNED_INTERLEAVED_ROTARY if neighbours else SIGNED_HALF_ROTARY
    return g.outline(name, [x, cos, sin], [y])


def _flipped_axis(
    g: RewriteContext, x: str, flipped: str, bounds: tuple[str | None, ...]
) -> int | None:
    """The axis that a Slice reverses: 4 for pairs of neighbours of x, 3 for both halves."""
    values = [int_values(g, name) if name else None for name in bounds]
    wide = g.shape_of(flipped)
    shape = g.shape_of(x)
    g.require(len(shape) == 4 and isinstance(shape[3], int), "the last axis is not known")
    start, end, axes, steps = values
    backward = start in ((-1,), (1,)) and end is not None and len(end) == 1 and end[0] < -2
    one = backward and steps == (-1,) and axes is not None and len(axes) == 1
    g.require(one, "it does not reverse one axis")
    axis = normalize_axis(axes[0], 5) if axes and len(wide) == 5 else None
    half = int(shape[3]) // 2 if isinstance(shape[3], int) else 0
    last = {3: (2, half), 4: (half, 2)}.get(axis or 0, ())
    even = isinstance(shape[3], int) and shape[3] % 2 == 0
    pairs = even and bool(last) and proven_equal(g, wide, (*shape[:3], *last))
    g.require(pairs, "what is reversed is not two halves, nor pairs")
    return axis


def _require_joined(g: RewriteContext, x: str, joined: str, axis: int, pairs: str | None) -> None:
    """Refuses parts that are joined in another way: one after the other, or side by side."""
    shape = g.shape_of(x)
    if pairs is None:
        g.require(axis in (-1, 3), "the halves are not joined along the last axis")
        return
    beside = axis in (-1, 4) and _are_pairs(g, shape, g.shape_of(joined))
    g.require(beside, "they are not side by side")
    g.require(g.same_shape(pairs, x), "the pairs do not get the shape of x")


class _Part(NamedTuple):
    """The first or the second elements of the last axis of a result of rank 4.

    :param x: the result
    :param place: 0 for the first ones, 1 for the second ones
    :param nodes: the nodes that take them
    """

    x: str
    place: int
    nodes: tuple[NodeProto | None, ...]


def _source(g: RewriteContext, first: str, second: str, neighbours: bool) -> str:
    """The result whose halves two parts are, or every other element if they are neighbours."""
    parts = [_half(g, n, neighbours) for n in (first, second)]
    (x, place, nodes), (y, other, others) = (
        g.known(part, "it is not a half, nor every other element") for part in parts
    )
    g.require((x, place, other) == (y, 0, 1), "they are not the first and the second elements")
    g.look_at(*nodes, *others)
    return x


def _half(g: RewriteContext, name: str, neighbours: bool) -> _Part | None:
    """A half of a result, or every other element."""
    return _cut(g, name, neighbours) or (_column(g, name) if neighbours else None)


def _cut(g: RewriteContext, name: str, neighbours: bool) -> _Part | None:
    """A half, made by Split or Slice, or every other element, by a Slice of step 2. Another rewrite
    writes the Split of two Slice if the length is known, which it is for a Slice of step 2."""
    node = g.producer_or_none(name, "Split", "Slice")
    shape = None if node is None else g.shape_or_none(node.input[0])
    part, equal = g.shape_or_none(name), dims_are_equal(g)
    if node is None or not shape or not part or len(shape) != 4 or cut_axes(g, node, 4) != (3,):
        return None
    if not equal(mul(2, part[3]), shape[3]):
        return None
    if node.op_type == "Split":
        place = [*node.output].index(name)
        return None if neighbours else _Part(node.input[0], place, (node,))
    steps = int_values(g, node.input[4]) if optional_input(node, 4) else (1,)
    if steps != (1 + neighbours,) or isinstance(shape[3], int) != neighbours:
        return None
    start, second = scalar_dim(g, node.input[1]), 1 if neighbours else part[3]
    if start is None or (start != 0 and not equal(start, second)):
        return None
    return _Part(node.input[0], int(start != 0), (node,))


def _column(g: RewriteContext, name: str) -> _Part | None:
    """Every other element, a column of Reshape(x, (..., length / 2, 2)); it may have an extra
    dimension of one element."""
    squeeze = g.producer_or_none(name, "Squeeze")
    if squeeze is not None and axes_of(g, squeeze) in ((-1,), (4,)):
        name = squeeze.input[0]
    node = g.producer_or_none(name, "Split", "Gather")
    on_last = node is not None and axis_of(g, node, 5) == 4
    pairs = g.producer_or_none(node.input[0], "Reshape") if node is not None and on_last else None
    if node is None or pairs is None:
        return None
    if not _are_pairs(g, *(g.shape_or_none(n) for n in (pairs.input[0], pairs.output[0]))):
        return None
    index = [*node.output].index(name) if node.op_type == "Split" else None
    if node.op_type == "Gather" and g.rank_of(node.input[1]) == 0:
        index = scalar_index(g, node.input[1])
    known = index in (0, 1) and len(node.output) < 3
    return _Part(pairs.input[0], index or 0, (pairs, node, squeeze)) if known else None


def _are_pairs(g: RewriteContext, shape: Shape | None, wide: Shape | None) -> bool:
    """Whether the last of four axes is split in pairs."""
    if shape is None or wide is None or len(shape) != 4 or not isinstance(shape[3], int):
        return False
    return shape[3] % 2 == 0 and proven_equal(g, wide, (*shape[:3], shape[3] // 2, 2))
