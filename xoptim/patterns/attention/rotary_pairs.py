"""Rotary embeddings of halves or of neighbours, outlined as functions."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Shape, mul

from ...analysis.arguments import optional_input, other_input
from ...analysis.attention.rotary import HALF_ROTARY, INTERLEAVED_ROTARY
from ...analysis.axes import axes_of, axis_of, cut_axes, cuts_of
from ...analysis.constants import int_values, scalar_index
from ...analysis.shapes import dims_are_equal, proven_equal
from ...authoring import NewResult, RewriteContext
from ...catalogue import rewrite

_LAST = ((-1,), (4,))


@rewrite(
    "default",
    root="Neg",
    prepares=(f"intermediate::{HALF_ROTARY}", f"intermediate::{INTERLEAVED_ROTARY}"),
    aliases="FunctionInterleavedRotaryEmbedding",
)
def function_half_rotary_embedding(g: RewriteContext, negative: NodeProto) -> dict[str, NewResult]:
    """x * cos + Concat(-x2, x1) * sin -> HalfRotaryEmbedding(x, cos, sin).

    1. x1, x2 = Split(x), or two Slice, are the halves of the last axis of x, of rank 4;
    2. x * cos + Stack(-x1, x0) * sin -> InterleavedRotaryEmbedding(x, cos, sin): x0 and x1 are
       every other element of the last axis of x, of rank 4, whose length is known: Slice of step
       2, or the columns of Reshape(x, (..., length / 2, 2)). Stack is Concat of one more
       dimension, the last one, then Reshape to the shape of x;
    3. neither cos nor sin broadcasts x.
    """
    half = _half(g, negative.input[0])
    place = half or _neighbour(g, negative.input[0])
    x, index = g.known(place, "it is not a half, nor every other element")
    g.require(index == 1, "the first elements are negative")
    shape = g.shape_of(x)
    if half:
        turned = g.after(negative, "Concat")
        g.require(turned.input[0] == negative.output[0], "it is not (-x2, x1)")
        other = _half(g, turned.input[1]) if len(turned.input) == 2 else None
    else:
        turned = _stacked(g, negative.output[0], shape)
        other = _neighbour(g, _column(g, g.before(turned, "Concat").input[1]))
    g.require(other == (x, 0), "the others are not those of x")
    right = g.after(turned, "Mul")
    total = g.after(right, "Add")
    left = g.before(other_input(total, right.output[0]), "Mul")
    sin = other_input(right, turned.output[0])
    cos = other_input(left, x) or g.refuse("the other product is not one of x")
    g.require(proven_equal(g, g.shape_of(total.output[0]), shape), "x may be broadcast")
    name = HALF_ROTARY if half else INTERLEAVED_ROTARY
    return g.outline(name, [x, cos, sin], [total.output[0]])


@rewrite(
    "default",
    root="Sub",
    reads="Mul",
    prepares=(f"intermediate::{HALF_ROTARY}", f"intermediate::{INTERLEAVED_ROTARY}"),
)
def function_rotary_embedding_parts(g: RewriteContext, first: NodeProto) -> dict[str, NewResult]:
    """Stack(x0 * cos - x1 * sin, x1 * cos + x0 * sin) -> InterleavedRotaryEmbedding(x, cos, sin).

    1. x0 and x1 are every other element of the last axis of x, of rank 4, see
       :func:`function_interleaved_rotary_embedding`;
    2. or they are its halves, Concat joins them: HalfRotaryEmbedding(x, cos, sin);
    3. cos and sin have four dimensions, the last one is half of the one of x.
    """
    products = [g.known(n, "no product is subtracted") for n in g.before_each(first, "Mul")]
    x, names, joined, interleaved = _parts(g, first, products)
    low, high = names
    cos, sin = (other_input(m, n) for m, n in zip(products, names, strict=True))
    second = g.before(
        _column(g, g.before(joined, "Concat").input[1]) if interleaved else joined.input[1], "Add"
    )
    pairs = [n for n in g.before_each(second, "Mul") if n is not None]
    found = sorted(sorted(n.input) for n in pairs)
    expected = sorted([sorted([high, cos]), sorted([low, sin])])
    g.require(found == expected, "the second part is not x1 * cos + x0 * sin")
    shape = g.shape_of(x)
    g.require(proven_equal(g, g.shape_of(joined.output[0]), shape), "x may be broadcast")
    for name in (cos, sin):
        dims = g.shape_of(name)
        half = len(dims) == 4 and dims_are_equal(g)(mul(2, dims[3]), shape[3])
        g.require(half, "cos is not one for each pair")
    name = INTERLEAVED_ROTARY if interleaved else HALF_ROTARY
    return g.outline(name, [x, cos, sin], [joined.output[0]])


def _parts(
    g: RewriteContext, first: NodeProto, products: list[NodeProto]
) -> tuple[str, tuple[str, str], NodeProto, bool]:
    """`(x, (x0, x1), node that joins both parts, neighbours)`."""
    for low in products[0].input:
        for high in products[1].input:
            for interleaved, read in ((True, _neighbour), (False, _half)):
                a, b = read(g, low), read(g, high)
                if a is None or b is None or (a[0], a[1], b[1]) != (b[0], 0, 1):
                    continue
                shape = g.shape_of(a[0])
                if interleaved:
                    return a[0], (low, high), _stacked(g, first.output[0], shape), True
                joined = g.after(first, "Concat")
                whole = joined.input[0] == first.output[0] and len(joined.input) == 2
                last = axis_of(g, joined, 4, None) == 3
                g.require(whole and last, "the halves are not joined along the last axis")
                return a[0], (low, high), joined, False
    return g.refuse("they are not the halves nor the neighbours of a result")


def _half(g: RewriteContext, name: str) -> tuple[str, int] | None:
    """`(x, 0)` or `(x, 1)` when a result is a half of x."""
    split = g.producer_or_none(name, "Split", "Slice")
    if split is not None and split.op_type == "Slice":
        return _sliced_half(g, split)
    if split is None or len(split.output) != 2:
        return None
    if g.rank_or_none(split.input[0]) != 4 or axis_of(g, split, 4) != 3:
        return None
    first, second = (g.shape_or_none(n) for n in split.output)
    if not first or not second or not dims_are_equal(g)(first[-1], second[-1]):
        return None
    g.look_at(split)
    return split.input[0], list(split.output).index(name)


def _sliced_half(g: RewriteContext, node: NodeProto) -> tuple[str, int] | None:
    """Same as :func:`_half`, for a Slice of an axis whose length is not known: when it is, another
    rewrite writes a Split."""
    shape, part = g.shape_or_none(node.input[0]), g.shape_or_none(node.output[0])
    if shape is None or part is None or len(shape) != 4 or cut_axes(g, node, 4) != (3,):
        return None
    if isinstance(shape[3], int):
        return None
    start, step = g.value_as_shape(node.input[1]), optional_input(node, 4)
    equal = dims_are_equal(g)
    if (step and int_values(g, step) != (1,)) or not equal(mul(2, part[3]), shape[3]):
        return None
    if not isinstance(start, tuple) or len(start) != 1:
        return None
    if start != (0,) and not equal(start[0], part[3]):
        return None
    g.look_at(node)
    return str(node.input[0]), int(start != (0,))


def _neighbour(g: RewriteContext, name: str) -> tuple[str, int] | None:
    """`(x, 0)` or `(x, 1)` when a result is every other element of the last axis of x, of rank 4;
    it may have an extra dimension of one element."""
    node = g.producer_or_none(name, "Slice", "Split", "Squeeze", "Gather")
    if node is None:
        return None
    if node.op_type == "Slice":
        return _every_other(g, node)
    if node.op_type == "Squeeze":
        if axes_of(g, node) not in _LAST:
            return None
        g.look_at(node)
        name = node.input[0]
        node = g.producer_or_none(name, "Split")
    if node is None or axis_of(g, node, 5) != 4:
        return None
    pairs = g.producer_or_none(node.input[0], "Reshape")
    if pairs is None:
        return None
    x = pairs.input[0]
    shape, wide = g.shape_or_none(x), g.shape_or_none(pairs.output[0])
    if not _are_pairs(g, shape, wide):
        return None
    index = (
        scalar_index(g, node.input[1])
        if node.op_type == "Gather"
        else list(node.output).index(name)
    )
    if node.op_type == "Split" and len(node.output) != 2:
        return None
    if node.op_type == "Gather" and (g.rank_of(node.input[1]) or index not in (0, 1)):
        return None
    g.look_at(pairs, node)
    return None if index is None else (str(x), index)


def _are_pairs(g: RewriteContext, shape: Shape | None, wide: Shape | None) -> bool:
    """Whether the last of four axes is split in pairs."""
    if shape is None or wide is None or len(shape) != 4 or not isinstance(shape[3], int):
        return False
    return shape[3] % 2 == 0 and proven_equal(g, wide, (*shape[:3], shape[3] // 2, 2))


def _every_other(g: RewriteContext, node: NodeProto) -> tuple[str, int] | None:
    """Same as :func:`_neighbour`, for a Slice."""
    x = str(node.input[0])
    shape, part = g.shape_or_none(x), g.shape_or_none(node.output[0])
    if shape is None or part is None or len(shape) != 4:
        return None
    length, cuts = shape[3], cuts_of(g, node, 4) or {}
    start, _, step = cuts.get(3, (0, 0, 0))
    alternate = len(cuts) == 1 and start in (0, 1) and step == 2
    if not alternate or not isinstance(length, int) or length % 2 or part[3] != length // 2:
        return None
    g.look_at(node)
    return x, start


def _column(g: RewriteContext, name: str) -> str:
    """The input of an Unsqueeze that adds a last dimension, the result itself otherwise."""
    node = g.producer_or_none(name, "Unsqueeze")
    if node is None or axes_of(g, node) not in _LAST:
        return name
    g.look_at(node)
    return str(node.input[0])


def _stacked(g: RewriteContext, first: str, shape: Shape) -> NodeProto:
    """The Reshape, to some shape, of first elements stacked beside second ones."""
    concat = g.after(first, "Unsqueeze", "Concat")
    if concat.op_type == "Unsqueeze":
        g.require(axes_of(g, concat) in _LAST, "the new axis is not the last one")
        concat = g.after(concat, "Concat")
    beside = len(concat.input) == 2 and axis_of(g, concat, 5, None) == 4
    beside = beside and g.rank_of(concat.output[0]) == 5
    g.require(beside and _column(g, concat.input[0]) == first, "they are not side by side")
    g.require(g.shape_of(concat.output[0])[4] == 2, "they are not side by side")
    joined = g.after(concat, "Reshape")
    same = proven_equal(g, g.shape_of(joined.output[0]), shape)
    g.require(same, "the pairs do not get the shape of x")
    return joined
