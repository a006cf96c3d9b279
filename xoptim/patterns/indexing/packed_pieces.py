"""Pieces of a dimension a Reshape split, such as queries, keys and values of one product: one
Split."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.axes import axis_of, moved_axes
from ...analysis.constants import Ints, int_values
from ...analysis.kernels import require_fast
from ...analysis.permutations import perm_of
from ...analysis.reshapes import moved_shape
from ...authoring import RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from .split import pieces_along

#: onnxruntime, one thread: contiguous pieces, then n Squeeze, take 0.7 to 0.95 of the time of
#: pieces along an inner axis where runs of elements are shorter, 1.0 to 1.5 elsewhere
_RUN = 32


@rewrite(
    "default",
    root=("Gather", "Split"),
    after=("Reshape", "Transpose"),
    priority="first",
    min_opset=13,
)
def packed_pieces(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """Gather(Transpose(Reshape(x, (a, 3, b, c)), p), i), i = 0, 1, 2 -> Split(Transpose(Reshape(x,
    (a, 3 * b, c)), q)).

    1. The indices are scalars, each appears once; or Split and n Squeeze do the same, and the
       last dimension is long enough when there is a Transpose.
    2. There may be no Transpose.

    Nothing else reads the inner results; both dimensions are known, the second one comes just after
    the first one in the Reshape.
    """
    before = g.before(node, "Transpose", "Reshape")
    moved = before.output[0]
    axis = g.known(axis_of(g, node, g.rank_or_none(moved)), "the axis is not known")
    reshape, perm = _moved(g, before)
    dims = moved_shape(g, reshape.output[0]) or ()
    source = perm[axis] if perm else axis
    pair = dims[source : source + 2]
    count, length = (d if isinstance(d, int) else 0 for d in (*pair, 0, 0)[:2])
    g.require(count > 1 and length > 0, "the dimension of the pieces or the next one is not known")
    pieces = _gathered(g, node, moved, axis, count) or _squeezed(g, node, axis, count)
    long_runs = dims[-1] if isinstance(dims[-1], int) else 0
    faster = node.op_type == "Gather" or not perm or long_runs >= _RUN
    require_fast(g, faster, "pieces that are contiguous are faster")
    target = _joined(g, reshape, source, count * length)
    new: Operand = g.like(reshape, reshape.input[0], target)
    if perm:
        perm = tuple(p - (p > source) for p in perm if p != source)
        new = g.op.Transpose(new, perm=perm)
        axis = perm.index(source)
    split = g.op.Split(new, [length] * count, axis=axis, outputs=count)
    return {name: split[i] for i, name in enumerate(pieces)}


def _moved(g: RewriteContext, before: NodeProto) -> tuple[NodeProto, Ints]:
    """The Reshape, and the permutation that follows, empty if there is none."""
    if before.op_type == "Reshape":
        return before, ()
    reshape = g.before(before, "Reshape")
    alone = g.is_used_only_by(reshape.output[0], before)
    g.require(alone, "the Reshape is used elsewhere")
    return reshape, g.known(perm_of(g, before), "the permutation is not known")


def _gathered(g: RewriteContext, node: NodeProto, x: str, axis: int, count: int) -> list[str]:
    """The result of the Gather of each index, empty if the node is not one of them."""
    if node.op_type != "Gather":
        return []
    pieces = pieces_along(g, x, axis, count)
    scalars = all(g.rank_or_none(piece.input[1]) == 0 for piece in pieces.values())
    g.require(scalars, "an index is not a scalar")
    alone = g.is_used_only_by(x, *pieces.values())
    g.require(alone, "the moved result is used elsewhere")
    g.look_at(*pieces.values())
    return [pieces[i].output[0] for i in range(count)]


def _squeezed(g: RewriteContext, node: NodeProto, axis: int, count: int) -> list[str]:
    """The results of the Squeeze after each part of length 1."""
    g.require(len(node.output) == count, "the parts have several elements")
    alone = g.is_used_only_by(node.input[0], node)
    g.require(alone, "the moved result is used elsewhere")
    names: list[str] = []
    for part in node.output:
        squeeze = g.reader_of(part, "Squeeze", reason="no Squeeze after each part")
        g.require(moved_axes(g, squeeze) == (axis,), "another axis is squeezed")
        g.look_at(squeeze)
        names.append(squeeze.output[0])
    return names


def _joined(g: RewriteContext, reshape: NodeProto, source: int, length: int) -> list[int]:
    """The target of a Reshape once a dimension is merged with the next one."""
    target = g.known(int_values(g, reshape.input[1]), "the shape is not a constant")
    g.require(0 not in target[source:], "the shape copies a dimension that is moved")
    return [*target[:source], length, *target[source + 2 :]]
