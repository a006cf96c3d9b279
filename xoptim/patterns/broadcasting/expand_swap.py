"""Moves an Expand after its reader, which then computes less data."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto

from xbuilder.dims import Shape, is_static
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
#: those that leave some axes whole; products read a Transpose, attentions a Squeeze of an Expand
_ALONE = (*ALONG, "Reshape", "Unsqueeze")


@rewrite(
    "default",
    root=(*_UNARY, *_BROADCASTING, "PRelu", *_ALONE),
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
    4. f is Reshape or Unsqueeze, it has as many axes or more, those that change stay whole; or f is
       CumSum, LayerNormalization, LogSoftmax, Slice or Softmax, along other axes. The new shape is
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
    if node.op_type in _ALONE:
        new, moved = _moved(g, node, expands[wide])
        g.require(len(moved) >= g.rank_of(wide), "an attention may read the heads it repeats")
        content = g.value_as_shape(target)
        if isinstance(content, tuple) and proven_equal(g, content, moved):
            return g.op.Expand(new, target)
        g.require(is_static(moved), "the expanded shape is not constant, and has to change")
        return g.op.Expand(new, list(moved))
    whole = wide if node.op_type in _BROADCASTING else expands[wide].input[0]
    for shape in (g.shape_or_none(name) for name in names if name not in sources):
        one = shape is not None and all(d == 1 for d in shape) and keeps_shape(g, whole, shape)
        g.require(one, "another operand may have more than one element")
    return g.op.Expand(g.rewired(node, sources), target)


def _moved(g: RewriteContext, node: NodeProto, expand: NodeProto) -> tuple[NewNode, Shape]:
    """An operator before an Expand instead of after it; then the dimensions to expand, 1 for those
    that do not change. It moves whole axes, or leaves those that change as they are."""
    x, unknown = expand.input[0], "a shape is not known for every size"
    small, after = (g.known(moved_shape(g, n), unknown) for n in (x, node.output[0]))
    wide = g.shape_of(expand.output[0], unknown)
    g.require(len(small) == len(wide), "the ranks differ")
    g.require(len(node.output) == 1, "it gives several results")
    changed = [i for i, same in enumerate(map(dims_are_equal(g), small, wide)) if not same]
    places = [moved_axis(g, node, wide, i, after) for i in changed]
    moved = {j: i for i, j in zip(changed, places, strict=True) if j is not None}
    g.require(len(moved) == len(changed), "an axis that changes does not stay whole")
    target = tuple(wide[moved[j]] if j in moved else 1 for j in range(len(after)))
    if node.op_type == "Reshape":
        return g.like(node, x, _narrowed(g, node, small, moved)), target
    if node.op_type == "Squeeze":
        return g.like(node, x, axes=axes_of(g, node)), target
    return g.rewired(node, {expand.output[0]: x}), target


def _narrowed(
    g: RewriteContext, node: NodeProto, small: Shape, moved: Mapping[int, int]
) -> str | list[int]:
    """The shape a Reshape reads when some dimensions become 1.

    :param node: the Reshape
    :param small: shape of its new input
    :param moved: the new place of these dimensions -> the old one
    """
    target = g.known(int_values(g, node.input[1]), "the new shape is not constant")
    changed = {*moved.values()} - {*moved}
    copies = [j for j, d in enumerate(target) if d == 0]
    same = int_attribute(node, "allowzero", 0) == 0 and not changed & {*copies}
    g.require(same, "the new shape is not one that copies other dimensions")
    ones = all(small[i] == 1 for i in moved.values())
    g.require(ones, "a dimension that changes is not known to be 1")
    new = [1 if j in moved and (d or moved[j] != j) else d for j, d in enumerate(target)]
    return node.input[1] if new == [*target] else new


@rewrite("default", root="Expand", after=MOVED, min_opset=8, sole_use=True)
def expand_unsqueeze_expand(g: RewriteContext, node: NodeProto) -> NewNode:
    """Expand(Unsqueeze(Expand(x, s), axes), t) -> Expand(Unsqueeze(x, axes), t).

    1. t has every dimension s changes; x has the rank of the first expanded result.
    2. Reshape, Squeeze or Transpose, instead of Unsqueeze, keep whole the axes that change.
    """
    move = g.before(node, *MOVED)
    new, target = _moved(g, move, g.before(move, "Expand"))
    last, same = g.value_as_shape(node.input[1]), dims_are_equal(g)
    uncovered = "the last shape does not have every dimension of the first one"
    if not isinstance(last, tuple):
        g.refuse(uncovered)
    covers = zip(target, padded(last, len(target))[-len(target) :], strict=True)
    g.require(all(a == 1 or same(a, b) for a, b in covers), uncovered)
    return g.op.Expand(new, node.input[1])
