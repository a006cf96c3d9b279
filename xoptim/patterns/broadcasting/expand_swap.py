"""Moves an Expand after its reader, which then computes less data."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto

from xbuilder.dims import Shape, is_static, normalize_axes
from xbuilder.operators.domains import CUDA_DOMAIN, CUDA_UNARY
from xbuilder.operators.op_traits import BROADCASTING, ELEMENTWISE_UNARY
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import int_attribute
from ...analysis.axes import axes_of
from ...analysis.constants import int_values
from ...analysis.moved_axes import ALONG, MOVED, moved_axis
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import dims_are_equal, keeps_shape, padded, proven_equal
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: operators of one operand, those of other domains included
_UNARY = (*sorted(ELEMENTWISE_UNARY), *(f"{CUDA_DOMAIN}::{op}" for op in CUDA_UNARY))
#: those whose operands are broadcast together
_BROADCASTING = tuple(sorted(BROADCASTING - {"PRelu"}))


@rewrite(
    "default",
    root=(*_UNARY, *_BROADCASTING, "PRelu", *ALONG, *MOVED),
    reads="Expand",
    behind=("ExpandUnsqueezeExpand", "ShapeBasedExpandBroadcast"),
    min_opset=8,
    aliases=(
        *("ExpandSwap", "ExpandWhereSwap", "ShapeBasedExpandCastWhereSwap"),
        *("SwapExpandReshape", "SwapExpandUnsqueeze"),
    ),
)
def shape_based_expand_swap(g: RewriteContext, node: NodeProto) -> NewNode:
    """f(Expand(x, shape), y) -> Expand(f(x, y), shape), nothing else reads the Expand.

    1. f applies to each element; y has one element, and no more dimensions than the result.
    2. y is Expand(z, shape): op(Expand(x, shape), Expand(z, shape)) -> Expand(op(x, z), shape).
    3. y is an operator of one operand on the same Expand: Where(Cast(Expand(x)), Expand(x), c) ->
       Expand(Where(Cast(x), x, c)).
    4. f is Reshape, Squeeze, Transpose or Unsqueeze, the axes that change stay whole; or CumSum,
       LayerNormalization, LogSoftmax, Slice or Softmax, along other axes. The new shape is
       constant, or is the same one.
    """
    expands = {e.output[0]: e for e in g.before_each(node, "Expand") if e is not None}
    g.require(expands, "no Expand before")
    (target, *others) = {e.input[1] for e in expands.values()}
    g.require(not others, "the shapes are not the same")
    names = [name for name in g.inputs(node) if name]
    inner = [n for name in names if (n := g.producer_or_none(name, *_UNARY)) is not None]
    inner = [n for n in inner if n.input[0] in expands]
    sources: dict[str, str | NewNode] = {name: e.input[0] for name, e in expands.items()}
    sources.update({n.output[0]: g.rewired(n, sources) for n in inner})
    alone = all(g.is_used_only_by(name, node, *inner) for name in sources)
    g.require(alone, "the inner result is used elsewhere")
    first = [i for i, name in enumerate(node.input) if name in sources] == [0]
    g.require(first or node.op_type in _BROADCASTING, "the result of Expand is a parameter")
    wide, kind = next(iter(expands)), g.type_of(node.output[0])
    known = kind == g.type_or_none(wide) or has_kernel("Expand", kind, g.main_opset)
    g.require(known, "runtimes do not expand this type")
    g.look_at(*inner)
    if node.op_type in (*ALONG, *MOVED):
        return _moved(g, node, expands[wide])
    for shape in (g.shape_or_none(name) for name in names if name not in sources):
        one = shape is not None and all(d == 1 for d in shape) and keeps_shape(g, wide, shape)
        g.require(one, "another operand may have more than one element")
    return g.op.Expand(g.rewired(node, sources), target)


def _moved(g: RewriteContext, node: NodeProto, expand: NodeProto) -> NewNode:
    """An Expand after an operator that moves whole axes, or leaves those that change as they
    are."""
    x, sizes, unknown = *expand.input, "a shape is not known for every size"
    small, after = (g.known(moved_shape(g, n), unknown) for n in (x, node.output[0]))
    wide = g.shape_of(expand.output[0], unknown)
    g.require(len(small) == len(wide), "the ranks differ")
    g.require(len(node.output) == 1, "it gives several results")
    changed = [i for i, same in enumerate(map(dims_are_equal(g), small, wide)) if not same]
    places = {i: moved_axis(g, node, wide, i, after) for i in changed}
    moved = {place: i for i, place in places.items() if place is not None}
    g.require(len(moved) == len(places), "an axis that changes does not stay whole")
    target = tuple(wide[moved[j]] if j in moved else 1 for j in range(len(after)))
    content = g.value_as_shape(sizes)
    if not isinstance(content, tuple) or not proven_equal(g, content, target):
        g.require(is_static(target), "the expanded shape is not constant, and has to change")
        sizes = list(target)
    new = g.rewired(node, {expand.output[0]: x})
    if node.op_type == "Squeeze":
        new = g.like(node, x, axes=axes_of(g, node))
    elif node.op_type == "Reshape":
        new = g.like(node, x, _narrowed(g, node, small, moved))
    return g.op.Expand(new, sizes)


def _narrowed(
    g: RewriteContext, node: NodeProto, small: Shape, moved: Mapping[int, int]
) -> str | list[int]:
    """The shape a Reshape reads when some dimensions become 1.

    :param g: the rewrite
    :param node: the Reshape
    :param small: shape of its new input
    :param moved: the new place of these dimensions -> the old one
    """
    target = g.known(int_values(g, node.input[1]), "the new shape is not constant")
    g.require(int_attribute(node, "allowzero", 0) == 0, "the new shape is not copied where it is 0")
    ones = all(small[i] == 1 for i in moved.values())
    g.require(ones, "a dimension that changes is not known to be 1")
    new = [1 if j in moved and (d or moved[j] != j) else d for j, d in enumerate(target)]
    return node.input[1] if new == [*target] else new


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
