"""Merges Reduce* with a Reshape, Squeeze, Unsqueeze or Reduce* after it; removes a
reduction of one element."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.nodes.attributes import find_attribute

from ...analysis.arguments import int_attribute, optional_input
from ...analysis.axes import moved_axes, reduced_axes
from ...analysis.constants import Ints
from ...analysis.kernels import require_fast
from ...analysis.reshapes import moved_shape, reshaped
from ...analysis.shapes import proven_equal
from ...analysis.values.rounding_sums import takes_any_order
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

_MOVES = ("Reshape", "Squeeze", "Unsqueeze")
_NO_AXES = "the axes are not known, or there is none"


@rewrite("default", "canonicalize", root="Reduce*", read_by=_MOVES, aliases="ReduceUnsqueeze")
def reduce_reshape(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Reshape(Reduce*(x, axes, keepdims=1), shape) -> Reduce*(x, axes, keepdims=0), or the reverse.

    1. The shape of the result is proven to be the one of x without the reduced axes, or with 1
       there if the reduction removes them. The axes are an attribute, an input, or missing (every
       axis).
    2. A Squeeze, or an Unsqueeze, of the reduced axes, of all of them: the rank of x is known.
    """
    x, result = node.input[0], node.output[0]
    after = g.known(g.after_or_none(result, *_MOVES), "its only use is not a Reshape")
    g.require(after.input[0] == result, "its only use is not a Reshape")
    kept = g.known(int_attribute(node, "keepdims", 1), "the dimensions are not kept")
    moves = after.op_type == "Reshape" or kept == (after.op_type == "Squeeze")
    g.require(moves, "the dimensions are kept" if kept else "the dimensions are not kept")
    axes = g.known(reduced_axes(g, node, g.rank_of(x)) or None, _NO_AXES)
    _require_same_axes(g, after, x, axes, kept == 0)
    # onnxruntime gives the wrong shape for negative axes, empty tensors and keepdims=0
    given = optional_input(node, 1) or find_attribute(node, "axes") is not None
    return {after.output[0]: g.like(node, x, axes=axes if given else None, keepdims=1 - kept)}


def _require_same_axes(
    g: RewriteContext, after: NodeProto, x: str, axes: Ints, restores: bool
) -> None:
    """Refuses unless a node only removes, or only restores, the reduced axes."""
    if after.op_type != "Reshape":
        g.require(moved_axes(g, after) == tuple(sorted(axes)), "other axes are moved")
        return
    unknown = "a shape is not known for every size"
    dims = enumerate(g.shape_of(x, unknown))
    left = tuple(1 if i in axes else d for i, d in dims if restores or i not in axes)
    same = proven_equal(g, left, g.known(reshaped(g, after), unknown))
    g.require(same, "the Reshape does more than moving the axes")


#: reductions that are the same whether axes are reduced together or in turn
_CHAINED = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")


@rewrite("default", "canonicalize", root=_CHAINED, after=_CHAINED, precision="rounding")
def reduce_reduce(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reduce*(Reduce*(x, a), b) -> Reduce*(x, a and b): adaptive poolings are written so.

    1. The same operator, Max, Mean, Min, Prod or Sum; Mean, Prod and Sum for floats only.
    2. Both keep the dimensions, or none does.
    3. Nothing else reads the inner result, the axes are the first ones or the last ones, because
       it then takes 0.1 to 1.0 of the time, and up to 1.8 for other axes.
    """
    inner = g.before(node, node.op_type)
    g.require_sole_use("the inner result is used elsewhere", inner.output[0])
    x = inner.input[0]
    g.require(takes_any_order(g, inner), "integers may be rounded in another order")
    keeps = {int_attribute(n, "keepdims", 1) for n in (inner, node)}
    g.require(len(keeps) == 1 and None not in keeps, "one keeps the dimensions, the other does not")
    rank = g.rank_of(x)
    a = reduced_axes(g, inner, rank)
    left = [i for i in range(rank) if keeps == {1} or i not in (a or ())]
    b = reduced_axes(g, node, len(left))
    if not a or not b:
        g.refuse(_NO_AXES)
    axes = sorted({*a, *(left[i] for i in b)})
    fast = axes[-1] - axes[0] < len(axes) and (axes[0] == 0 or axes[-1] == rank - 1)
    require_fast(g, fast, "they are not the first axes, nor the last ones")
    return g.like(node, x, axes=axes)


@rewrite("default", "canonicalize", root=_CHAINED, behind="ReduceReshape")
def reduce_one(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """Reduce*(x, axes) -> x, or Squeeze(x, axes), when the dimensions along the axes are 1.

    Max, Mean, Min, Prod or Sum of one element is this element.
    """
    x = node.input[0]
    shape = g.known(moved_shape(g, x), "a shape is not known for every size")
    axes = g.known(reduced_axes(g, node, len(shape)) or None, _NO_AXES)
    g.require(all(shape[i] == 1 for i in axes), "there may be several elements")
    kept = g.known(int_attribute(node, "keepdims", 1), "the dimensions are kept or not")
    return x if kept else g.op.Squeeze(x, axes=list(axes))
