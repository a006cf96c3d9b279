"""Moves an Expand after its reader, which then computes less data."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from xbuilder.dims import normalize_axes
from xbuilder.operators.domains import CUDA_DOMAIN, CUDA_UNARY
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import int_attribute
from ...analysis.axes import axes_of
from ...analysis.constants import int_values
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import dims_are_equal, keeps_shape, padded
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

#: elementwise operators, those of other domains included
_UNARY = (*sorted(ELEMENTWISE_UNARY), "Pow", *(f"{CUDA_DOMAIN}::{op}" for op in CUDA_UNARY))


@rewrite("default", root="Expand", min_opset=8)
def expand_swap(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """f(Expand(x, shape)) -> Expand(f(x), shape), f applies to each element.

    1. f has one input, or its other ones are scalars that do not read the Expand.
    2. f is Pow, the exponent is a scalar constant.
    3. f is MulSigmoid, NegXplus1 or ReplaceZero of onnx-extended.
    """
    unary = g.after_or_none(node, *_UNARY)
    unary = g.known(unary, "its only use does not apply to each element")
    result, x = node.output[0], node.input[0]
    g.require(unary.input[0] == result, "the result of Expand is a parameter")
    if unary.op_type == "Pow":
        scalar = g.get_constant_shape(unary.input[1]) == ()
        g.require(scalar, "the exponent is not a scalar constant")
    to = int_attribute(unary, "to", TensorProto.FLOAT)
    g.require(has_kernel("Expand", to, g.main_opset), "runtimes do not expand this type")
    return {unary.output[0]: g.op.Expand(g.rewired(unary, {result: x}), node.input[1])}


@rewrite(
    "default",
    root=(*ELEMENTWISE_BINARY, "Where"),
    reads="Expand",
    behind="ShapeBasedExpandBroadcast",
    min_opset=8,
    aliases="ExpandWhereSwap",
)
def shape_based_expand_swap(g: RewriteContext, node: NodeProto) -> NewNode:
    """op(Expand(x, shape), y) -> Expand(op(x, y), shape), Where(Expand(c, shape), a, b) as well.

    1. Each other operand has one element, and no more dimensions than the expanded result.
    2. y is Expand(z, shape): op(Expand(x, shape), Expand(z, shape)) -> Expand(op(x, z), shape).
    """
    expands = [e for e in g.before_each(node, "Expand") if e is not None]
    g.require(expands, "no Expand before")
    sources = {e.output[0]: e.input[0] for e in expands}
    alone = not any(map(g.is_used_more_than_once, sources))
    g.require(alone, "the inner result is used elsewhere")
    (target, *others) = {e.input[1] for e in expands}
    g.require(not others, "the shapes are not the same")
    result = expands[0].output[0]
    for shape in (g.shape_or_none(name) for name in node.input if name not in sources):
        one = shape is not None and all(d == 1 for d in shape) and keeps_shape(g, result, shape)
        g.require(one, "another operand may have more than one element")
    known = has_kernel("Expand", g.type_or_none(node.output[0]), g.main_opset)
    g.require(known, "runtimes do not expand this type")
    return g.op.Expand(g.rewired(node, sources), target)


@rewrite("default", root="Reshape", after="Expand", priority="first", min_opset=8, sole_use=True)
def swap_expand_reshape(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(Expand(x, (n, 1, 1)), (0, 1, -1)) -> Expand(Reshape(x, (0, 1, -1)), (n, 1, 1)).

    x has three dimensions, n is anything.
    """
    expand = g.before(node, "Expand")
    x, shape = expand.input
    expected = int_values(g, node.input[1]) == (0, 1, -1)
    copies = int_attribute(node, "allowzero", 0) == 0
    g.require(expected and copies, "the new shape is not (0, 1, -1)")
    g.require(g.rank_or_none(x) == 3, "the rank is not 3")
    g.require(_is_n_1_1(g, shape), "the expanded shape is not (n, 1, 1)")
    return g.op.Expand(g.rewired(node, {expand.output[0]: x}), shape)


def _is_n_1_1(g: RewriteContext, name: str) -> bool:
    """Whether a shape has three elements and the last two are 1."""
    content = g.value_as_shape(name)
    if isinstance(content, tuple):
        return content[1:] == (1, 1)
    concat = g.producer_or_none(name, "Concat")
    if concat is None or g.shape_or_none(concat.input[0]) != (1,):
        return False
    pieces = [int_values(g, piece) for piece in g.inputs(concat)[1:]]
    return [v for piece in pieces for v in ((0,) if piece is None else piece)] == [1, 1]


@rewrite(
    "default",
    root="Where",
    after="Cast",
    behind="ShapeBasedExpandBroadcast",
    min_opset=9,
    sole_use=True,
)
def shape_based_expand_cast_where_swap(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Where(Cast(Expand(x, shape)), Expand(x, shape), c) -> Expand(Where(Cast(x), x, c), shape).

    1. c has one element, and no more dimensions than the expanded result.
    2. The branches may be exchanged: Where(Cast(Expand(x)), c, Expand(x)).
    """
    condition, *branches = g.inputs(node)
    cast = g.before_or_none(node, "Cast")
    expand = None if cast is None else g.before_or_none(cast, "Expand")
    if cast is None or expand is None:
        return g.no("the condition is not a Cast of an Expand")
    result, (x, target) = expand.output[0], g.inputs(expand)
    g.require(result in branches, "the expanded result is not a branch")
    others = [name for name in branches if name != result]
    g.require(len(others) == 1, "both branches are the expanded result")
    shape = g.shape_or_none(others[0])
    one = shape is not None and all(d == 1 for d in shape) and keeps_shape(g, result, shape)
    g.require(one, "the other branch may have more than one element")
    where = g.rewired(node, {condition: g.like(cast, x), result: x})
    return g.op.Expand(where, target)


@rewrite(
    "default",
    root="Unsqueeze",
    after="Expand",
    behind="ExpandUnsqueezeExpand",
    min_opset=13,
    sole_use=True,
)
def swap_expand_unsqueeze(g: RewriteContext, node: NodeProto) -> NewNode:
    """Unsqueeze(Expand(x, shape), axes) -> Expand(Unsqueeze(x, axes), shape with 1 at the axes).

    The shape is constant and x has the rank of the expanded result.
    """
    expand = g.before(node, "Expand")
    x, result = expand.input[0], expand.output[0]
    shape = g.known(int_values(g, expand.input[1]), "the expanded shape is not constant")
    rank = g.rank_of(x, "the ranks differ, or are not known")
    g.require(rank == g.rank_or_none(result), "the ranks differ, or are not known")
    target = list(padded(shape, rank))
    for axis in sorted(unsqueezed_axes(g, node, rank)):
        target.insert(axis, 1)
    return g.op.Expand(g.rewired(node, {result: x}), target)


def unsqueezed_axes(g: RewriteContext, node: NodeProto, rank: int) -> tuple[int, ...]:
    """Axes an Unsqueeze adds; refuses if they are not known.

    :param g: the rewrite
    :param node: the Unsqueeze
    :param rank: rank of its input
    """
    axes = g.known(axes_of(g, node), "the axes are not known")
    return g.known(normalize_axes(axes, rank + len(axes)) or None, "the axes are not known")


@rewrite("default", root="Expand", after="Unsqueeze", min_opset=8, sole_use=True)
def expand_unsqueeze_expand(g: RewriteContext, node: NodeProto) -> NewNode:
    """Expand(Unsqueeze(Expand(x, s), axes), t) -> Expand(Unsqueeze(x, axes), t).

    t has every dimension s changes; x has the rank of the first expanded result.
    """
    unsqueeze = g.before(node, "Unsqueeze")
    first = g.before(unsqueeze, "Expand")
    x, result = first.input[0], first.output[0]
    small = g.known(moved_shape(g, x), "the ranks differ, or are not known")
    wide = g.shape_of(result, "the ranks differ, or are not known")
    g.require(len(small) == len(wide), "the ranks differ, or are not known")
    axes = unsqueezed_axes(g, unsqueeze, len(wide))
    last = g.value_as_shape(node.input[1])
    uncovered = "the last shape does not have every dimension of the first one"
    if not isinstance(last, tuple):
        g.refuse(uncovered)
    rank, same = len(wide) + len(axes), dims_are_equal(g)
    kept = [d for i, d in enumerate(padded(last, rank)[-rank:]) if i not in axes]
    covers = (same(a, b) or same(t, b) for a, b, t in zip(small, wide, kept, strict=True))
    g.require(all(covers), uncovered)
    return g.op.Expand(g.rewired(unsqueeze, {result: x}), node.input[1])
