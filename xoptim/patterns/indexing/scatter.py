"""ScatterND on zeros; ScatterND and ScatterElements that overwrite everything."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import Dim, Shape
from xbuilder.operators.domains import MICROSOFT

from ...analysis.axes import axis_of, moved_axes
from ...analysis.constants import scalar_value
from ...analysis.permutations import perm_of
from ...analysis.shapes import dims_are_equal, proven_equal
from ...analysis.values.masks import is_range
from ...analysis.values.uniform import is_always
from ...analysis.values.zeros import rows_written
from ...authoring import NewNode, Refusal, Rewrite, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import register_pattern, rewrite

#: types every runtime adds with ScatterND
_ADDED = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64})


@rewrite(
    "fix",
    "specialize",
    root="ScatterND",
    min_opset=16,
    precision="approximate",
    name="AddReductionScatterND",
)
def add_reduction_scatter_nd(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """ScatterND(zeros, indices, updates) -> ScatterND(zeros, indices, updates, reduction=add).

    1. The data is a constant, or a ConstantOfShape.
    2. Constant indices are not repeated: the last update would be the result, not the sum.

    Unknown indices may be repeated: never in the default set.
    """
    if g.get_attribute_with_default(node, "reduction", "none") != "none":
        return g.no("there is already a reduction")
    data, indices, updates = node.input
    g.require(is_always(g, data, 0), "the data is not made of zeros")
    g.require(g.type_or_none(updates) in _ADDED, "runtimes may not add this type")
    g.require(not _repeats(g, node), "an index is repeated")
    return g.like(node, data, indices, updates, reduction="add")


def _repeats(g: RewriteContext, scatter: NodeProto) -> bool:
    """Whether the same place is known to be written twice."""
    found = g.constant_or_none(scatter.input[1])
    if found is None or found.ndim == 0:
        return False
    rows = found.reshape(-1, found.shape[-1])
    shape = g.shape_or_none(scatter.input[0]) or ()
    if len(shape) >= rows.shape[1]:
        dims = np.array([d if isinstance(d, int) else 0 for d in shape[: rows.shape[1]]], np.int64)
        rows = np.where(rows < 0, rows + dims, rows)
    return len(np.unique(rows, axis=0)) < len(rows)


@rewrite("default", "specialize", root="ScatterND", min_opset=11, name="ScatterNDEverything")
def scatter_nd_everything(g: RewriteContext, node: NodeProto) -> str | NewNode | Refusal:
    """ScatterND(x, ((0,), (1,), ..., (n-1,)), updates) -> updates, x has n rows.

    1. The indices are constant.
    2. They are Unsqueeze(Range(0, n, 1), -1).
    3. Several ScatterND write every row once, each of them consecutive rows, which are constant:
       ScatterND(ScatterND(x, i, u), j, v) -> Concat(u, v).

    Nothing of x remains: `x[:] = updates` in torch. Refused when there is a reduction, or when
    something else reads an inner result.
    """
    if g.get_attribute_with_default(node, "reduction", "none") != "none":
        return g.no("there is a reduction")
    data, indices, updates = g.inputs(node)
    rows = _all_rows(g, indices)
    before = g.producer_or_none(data, "ScatterND")
    if rows is None and before is None:
        return g.no("the indices are not 0, 1, 2, ...")
    shape = g.shape_of(data)
    g.require(g.type_or_none(updates), "the type of the updates is not known")
    if rows is not None and shape != () and dims_are_equal(g)(rows, shape[0]):
        return updates
    g.require(before is not None, "some rows may stay")
    following = g.next_nodes(node.output[0])
    follows = any(n.op_type == node.op_type and n.input[0] == node.output[0] for n in following)
    g.require(not follows, "another one follows")
    parts = [rows_written(g, node)]
    while before is not None and sum(p.end - p.start for p in parts) != shape[0]:
        g.require_sole_use("an inner result is used elsewhere", before.output[0])
        adds = g.get_attribute_with_default(before, "reduction", "none") != "none"
        g.require(not adds, "there is a reduction")
        g.look_at(before)
        parts.append(rows_written(g, before))
        before = g.producer_or_none(before.input[0], "ScatterND")
    parts.sort()
    ends = [0, *(part.end for part in parts)]
    whole = [*(part.start for part in parts), shape[0]] == ends
    g.require(whole, "some rows may stay")
    return g.op.Concat(*(part.name for part in parts), axis=0)


@rewrite(
    "default",
    "specialize",
    root="Transpose",
    after="ScatterND",
    min_opset=13,
    sole_use=True,
    name="ScatterNDInterleaved",
)
def scatter_nd_interleaved(g: RewriteContext, node: NodeProto) -> NewNode:
    """Transpose(ScatterND(ScatterND(x, (0, 2, 4, ...), u), (1, 3, 5, ...), v)) ->
    Reshape(Concat(Unsqueeze(Transpose(u)), Unsqueeze(Transpose(v)), axis=-1)).

    k ScatterND write every row once, each of them one row every k, from its own first one: `y[...,
    0::2] = u`, `y[..., 1::2] = v` in torch, for rotary embeddings and positional encodings.

    1. The rows become the last axis, their number is known.
    2. There is no reduction, nothing else reads an inner result.
    """
    scatters, shape = [g.before(node, "ScatterND")], g.shape_of(node.input[0])
    count, rank = shape[0] if shape else None, len(shape)
    perm = g.known(perm_of(g, node, rank), "the permutation is not known")
    last = perm[-1:] == (0,) and isinstance(count, int) and count > 0
    g.require(last, "the rows do not become the last axis, or their number is not known")
    while (before := g.producer_or_none(scatters[-1].input[0], "ScatterND")) is not None:
        scatters.append(before)
    step = len(scatters)
    g.require(step > 1, "there is one ScatterND")
    g.look_at(*scatters)
    plain = {g.get_attribute_with_default(s, "reduction", "none") for s in scatters} == {"none"}
    g.require(plain, "there is a reduction")
    parts = sorted(rows_written(g, scatter, step) for scatter in scatters)
    every = [(p.start, len(range(p.start, p.end, step)) * step) for p in parts]
    g.require(every == [(i, count) for i in range(step)], "the rows are not written in turn")
    moved = [g.op.Transpose(part.name, perm=perm) for part in parts]
    stacked = g.op.Concat(*(g.op.Unsqueeze(m, axes=[rank]) for m in moved), axis=rank)
    return g.op.Reshape(stacked, [*[0] * (rank - 1), count])


def _all_rows(g: RewriteContext, indices: str) -> Dim | None:
    """The number of rows of `((0,), (1,), ...)`, None for other indices."""
    found = g.constant_or_none(indices) if g.is_constant(indices) else None
    if found is not None:
        count = len(found) if found.ndim == 2 and found.shape[1] == 1 else 0
        return count if count and (found[:, 0] == np.arange(count)).all() else None
    shape = g.shape_or_none(indices)
    column = g.producer_or_none(indices, "Unsqueeze")
    if column is None or shape is None or len(shape) != 2 or shape[1] != 1:
        return None
    return shape[0] if is_range(g, column.input[0]) else None


@rewrite("default", "specialize", root="ScatterElements", min_opset=11)
def scatter_elements_concat(g: RewriteContext, node: NodeProto) -> str | NewNode | Refusal:
    """ScatterElements(ScatterElements(x, 0, u), 1, v) -> Concat(u, v), x has two rows.

    1. Each writes a whole row along the axis: its indices are a constant that is repeated, its
       updates have one element along the axis and the dimensions of x along the others.
    2. Together they write every row, in any order; the last one that writes a row is kept.
    3. One is enough for a single row: the result is u.

    Nothing of x remains: `x[:, t] = ...` in a loop of torch. Refused when there is a reduction, or
    when something else reads an inner result.
    """
    following = g.next_nodes(node.output[0])
    follows = any(n.op_type == node.op_type and n.input[0] == node.output[0] for n in following)
    g.require(not follows, "another one follows")
    shape = g.shape_of(node.input[0])
    axis = g.known(axis_of(g, node, len(shape)), "the axis is not known")
    count, rows = shape[axis], dict[int, str]()
    scatter: NodeProto | None = node
    while scatter is not None and isinstance(count, int) and len(rows) < count:
        row = _row_of(g, scatter, shape, axis)
        if row is None:
            return g.no("it may not write a row")
        if scatter is not node:
            g.look_at(scatter)
        rows.setdefault(row, scatter.input[2])
        data = scatter.input[0]
        scatter = None if g.is_used_more_than_once(data) else g.producer_or_none(data, node.op_type)
    g.require(len(rows) == count, "some rows may stay")
    pieces = [rows[row] for row in sorted(rows)]
    return g.op.Concat(*pieces, axis=axis) if len(pieces) > 1 else pieces[0]


def _row_of(g: RewriteContext, scatter: NodeProto, shape: Shape, axis: int) -> int | None:
    """The row a ScatterElements writes along an axis, None if it may write anything else."""
    _, indices, updates = scatter.input
    written = (*shape[:axis], 1, *shape[axis + 1 :])
    whole = all(
        proven_equal(g, g.shape_or_none(name) or (), written) for name in (indices, updates)
    )
    same = axis_of(g, scatter, len(shape)) == axis
    adds = g.get_attribute_with_default(scatter, "reduction", "none") != "none"
    if not same or not whole or adds:
        return None
    repeated = g.producer_or_none(indices, "Expand")
    if repeated is None:
        value = g.graph.constants.uniform_value(indices)
    else:
        value = scalar_value(g, repeated.input[0])
    row, count = None if value is None else int(value.item()), shape[axis]
    if row is None or not isinstance(count, int) or not -count <= row < count:
        return None
    return row % count


@register_pattern(
    "specialize",
    roots=("ScatterND",),
    min_opset=16,
    precision="rounding",
)
class GatherGradPattern(Rewrite):
    """ScatterND(zeros, Unsqueeze(i, -1), dy, reduction=add) -> GatherGrad(shape, i, dy).

    The zeros are a constant, or a ConstantOfShape, which a Transpose may follow (a gather along
    another axis). The indices may be of one coordinate in another way: they are squeezed.
    com.microsoft.GatherGrad only exists in the builds of onnxruntime for training: the pattern is
    in no set.
    """

    for_training_build = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
        """Recognizes the gradient of Gather along the first axis."""
        if g.get_attribute_with_default(node, "reduction", "none") != "add":
            return g.no("the updates are not added")
        data, updates = node.input[0], node.input[2]
        g.require(is_always(g, data, 0), "the data is not made of zeros")
        indices = self._indices(g, node.input[1])
        return g.op.GatherGrad(self._shape(g, data), indices, updates, axis=0, domain=MICROSOFT)

    def _shape(self, g: RewriteContext, zeros: str) -> Operand:
        """The shape of the zeros."""
        move = g.producer_or_none(zeros, "Transpose")
        made = g.producer_or_none(zeros if move is None else move.input[0], "ConstantOfShape")
        perm = move is not None and perm_of(g, move)
        if made is None or perm is None:
            return np.array(g.static_shape(zeros, "the shape is not known"), np.int64)
        return g.op.Gather(made.input[0], list(perm)) if perm else str(made.input[0])

    def _indices(self, g: RewriteContext, name: str) -> Operand:
        """The rows of indices of one coordinate."""
        rank = g.rank_of(name)
        column = g.producer_or_none(name, "Unsqueeze")
        if column is not None and moved_axes(g, column) == (rank - 1,):
            g.look_at(column)
            return str(column.input[0])
        g.require(g.shape_of(name)[-1:] == (1,), "the indices have several coordinates")
        return g.op.Squeeze(name, axes=[rank - 1])
