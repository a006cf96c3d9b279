"""Reading some elements: slices, gathers, advanced indexing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from ..writing.fx_nodes import never_negative, node_argument
from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import (
    Size,
    SymScalar,
    dim_of,
    dims_of,
    int_vector,
    product,
    scalar0d,
    shape_tensor,
    vector1d,
)
from .creation import constant_of_shape
from .operands import (
    BOOL,
    FLOAT,
    INT64,
    axis_of,
    cast,
    choose,
    const,
    reshape,
    shape_tensor_of,
    vector,
)
from .reduce import reduce
from .repeated_places import reduce_slices
from .view import MAX_INT, broadcast_tensors, permute


@aten("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(
    g: GraphWriter,
    x: str,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: Size = 1,
) -> str:
    """A Slice, or the tensor itself when everything is kept."""
    start = 0 if start is None else start
    end = MAX_INT if end is None else end
    axis = axis_of(dim, g.get_rank(x))
    if start == 0 and step == 1 and not isinstance(end, str):
        size = g.get_shape(x)[axis]
        if end >= (size if isinstance(size, int) else MAX_INT):
            return x
    limits = [vector1d(g, v) for v in (start, end)]
    steps = [] if step == 1 else [vector1d(g, step)]
    return g.op.Slice(x, *limits, int_vector([axis]), *steps)


@aten("torch_interpreter.last.default")
def last(g: GraphWriter, x: str, count: int, dim: int) -> str:
    """The last elements, see :mod:`torch_interpreter.exporting.sliding_windows`."""
    return g.op.Slice(x, int_vector([-count]), int_vector([MAX_INT]), int_vector([dim]))


@aten("aten.narrow.default", "aten.narrow_copy.default")
def narrow(
    g: GraphWriter,
    x: str,
    dim: int,
    start: Size,
    length: Size,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """x[start:start + length]."""
    first = from_the_start(g, x, dim, start, never_negative(node_argument(expected.node, 2)))
    return slice_(g, x, dim, first, add_sizes(g, first, length))


def from_the_start(g: GraphWriter, x: str, dim: int, position: Size, known: bool) -> Size:
    """A position which is not negative; a negative one counts from the end.

    :param g: builder
    :param x: the tensor
    :param dim: the dimension of the position
    :param position: an int or a symbolic int
    :param known: torch knows that a symbolic position is not negative
    """
    if known or (not isinstance(position, str) and position >= 0):
        return position
    size = dim_of(g, x, dim)
    if not isinstance(position, str):
        return add_sizes(g, size, position)
    negative = g.op.Cast(g.op.Less(position, int_vector([0])), to=INT64)
    return SymScalar(g.op.Add(position, g.op.Mul(negative, vector1d(g, size))))


def add_sizes(g: GraphWriter, a: Size, b: Size) -> Size:
    """The sum of ints or symbolic ints."""
    if isinstance(a, str) or isinstance(b, str):
        return SymScalar(g.op.Add(vector1d(g, a), vector1d(g, b)))
    return a + b


@aten("aten.select.int", "aten.select_copy.int")
def select(g: GraphWriter, x: str, dim: int, index: Size) -> str:
    """One position of a dimension, which disappears."""
    position = scalar0d(g, index, INT64)
    return g.op.Gather(x, position, axis=axis_of(dim, g.get_rank(x)))


@aten("aten.index_select.default")
def index_select(g: GraphWriter, x: str, dim: int, index: str) -> str:
    """Gather with a vector of positions."""
    rank = g.get_rank(x)
    if rank == 0:
        return g.op.Reshape(x, int_vector([]))
    return g.op.Gather(x, vector(g, index), axis=axis_of(dim, rank))


@aten("aten.gather.default")
def gather(g: GraphWriter, x: str, dim: int, index: str, *, sparse_grad: bool = False) -> str:
    """GatherElements; scalars become vectors."""
    rank = g.get_rank(x)
    index = cast(g, index, INT64)
    if rank == 0 or g.get_rank(index) == 0:
        flat, positions = (g.op.Reshape(v, int_vector([-1])) for v in (x, index))
        found = g.op.GatherElements(flat, positions, axis=0)
        return g.op.Reshape(found, shape_tensor_of(g, index))
    return g.op.GatherElements(x, index, axis=axis_of(dim, rank))


@aten("aten.take.default")
def take(g: GraphWriter, x: str, index: str) -> str:
    """A Gather in the flat tensor."""
    return g.op.Gather(g.op.Reshape(x, int_vector([-1])), index, axis=0)


@aten("aten.embedding.default")
def embedding(
    g: GraphWriter,
    weight: str,
    indices: str,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> str:
    """Gather; the other parameters are for the gradient."""
    return g.op.Gather(weight, indices, axis=0)


@aten("aten.one_hot.default")
def one_hot(g: GraphWriter, x: str, num_classes: Size = -1) -> str:
    """OneHot, the number of classes may come from the data."""
    if isinstance(num_classes, int) and num_classes < 0:
        depth: Tensor = g.op.Add(g.op.ReduceMax(x, keepdims=0), const(1, INT64))
    else:
        depth = scalar0d(g, num_classes, INT64)
    made = g.op.OneHot(vector(g, x), depth, int_vector([0, 1]), axis=-1)
    return made if g.get_rank(x) else g.op.Squeeze(made, int_vector([0]))


@aten("aten.nonzero.default", "aten.argwhere.default")
def nonzero(g: GraphWriter, x: str) -> str:
    """NonZero transposed: it has one row per dimension, torch one column per dimension.

    A scalar has no dimension.
    """
    found = x if g.get_type(x) in (BOOL, FLOAT, INT64) else cast(g, x, BOOL)
    columns = g.op.Transpose(g.op.NonZero(vector(g, found)), perm=[1, 0])
    if g.get_rank(x):
        return columns
    nothing, axes = int_vector([0]), int_vector([1])
    return g.op.Slice(columns, nothing, nothing, axes)


@aten("aten.nonzero_static.default")
def nonzero_static(g: GraphWriter, x: str, *, size: Size, fill_value: int = -1) -> str:
    """The first positions, then rows of one value until there are *size* of them."""
    filler = constant_of_shape(g, [size, g.get_rank(x)], fill_value, INT64)
    rows = g.op.Concat(nonzero(g, x), filler, axis=0)
    return g.op.Slice(rows, int_vector([0]), vector1d(g, size), int_vector([0]))


@aten("aten.nonzero_numpy.default", "aten.where.default")
def nonzero_numpy(g: GraphWriter, x: str) -> list[str]:
    """One vector per dimension, a scalar has the one of a vector."""
    rows = g.op.NonZero(vector(g, x))
    return [g.op.Gather(rows, const(i, INT64), axis=0) for i in range(max(g.get_rank(x), 1))]


@aten("aten.masked_select.default")
def masked_select(g: GraphWriter, x: str, mask: str) -> str:
    """Compress of the flat tensors."""
    x, mask = broadcast_tensors(g, [x, mask])
    flat, kept = (g.op.Reshape(v, int_vector([-1])) for v in (x, mask))
    return g.op.Compress(flat, kept, axis=0)


def positions(g: GraphWriter, indices: Sequence[str | None]) -> list[str | None]:
    """Replaces boolean masks by the positions they keep."""
    found: list[str | None] = []
    for index in indices:
        if index is None:
            found.append(None)
        elif g.get_type(index) in (BOOL, TensorProto.UINT8):
            rows = g.op.NonZero(index)
            found.extend(
                g.op.Gather(rows, const(i, INT64), axis=0) for i in range(g.get_rank(index))
            )
        else:
            found.append(cast(g, index, INT64))
    return found


def _place(axes: Sequence[int]) -> int:
    """Where torch puts the result of indices: at their place, or first if they are separated."""
    return axes[0] if list(axes) == list(range(axes[0], axes[-1] + 1)) else 0


class IndexPlan:
    """The places of the indexed dimensions, and the permutation that puts them first.

    :param g: builder
    :param x: indexed tensor
    :param indices: positions for each of the first dimensions, None to keep one entirely
    """

    def __init__(self, g: GraphWriter, x: str, indices: Sequence[str | None]) -> None:
        self.g = g
        self.rank = g.get_rank(x)
        self.axes = [i for i, index in enumerate(indices) if index is not None]
        self.others = [i for i in range(self.rank) if i not in self.axes]
        self.perm = [*self.axes, *self.others]
        self.tensors = broadcast_tensors(g, [i for i in indices if i is not None])
        self.index_rank = max(g.get_rank(i) for i in self.tensors)
        self.place = _place(self.axes)

    def columns(self) -> str:
        """The positions, those of a slice in the last dimension."""
        g, last = self.g, int_vector([self.index_rank])
        columns = [g.op.UnsqueezeAnyOpset(i, last) for i in self.tensors]
        return columns[0] if len(columns) == 1 else g.op.Concat(*columns, axis=-1)

    def result_permutation(self) -> list[int]:
        """The permutation from (index dimensions, other dimensions) to the order of torch."""
        k = self.index_rank
        head = list(range(k, k + self.place))
        tail = list(range(k + self.place, k + len(self.others)))
        return [*head, *range(k), *tail]


@aten("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index_tensor(g: GraphWriter, x: str, indices: Sequence[str | None]) -> str:
    """x[i, j, ...]: a Gather for one index, a GatherND for several, a Compress for a mask of the
    first dimension or of all of them. A Gather for each index if x would be transposed and each
    dimension of the result comes from one of them: ``x[:, i[:, None], j]``, so unfold."""
    first = indices[0]
    if len(indices) == 1 and first is not None and g.get_type(first) == BOOL:
        if g.get_rank(first) == g.get_rank(x) > 0:
            return g.op.Compress(x, g.op.Reshape(first, int_vector([-1])))
        if g.get_rank(first) == 1:
            return g.op.Compress(x, first, axis=0)
    indices = positions(g, indices)
    used = [(axis, i) for axis, i in enumerate(indices) if i is not None]
    if len(used) == 1:
        axis, index = used[0]
        return g.op.Gather(x, index, axis=axis)
    if used[0][0] and (outer := _outer_gathers(g, x, used)) is not None:
        return outer
    plan = IndexPlan(g, x, indices)
    found = g.op.GatherND(permute(g, x, plan.perm), plan.columns())
    return permute(g, found, plan.result_permutation())


def _outer_gathers(g: GraphWriter, x: str, used: Sequence[tuple[int, str]]) -> str | None:
    """One Gather for each index, None unless each dimension they make belongs to one of them.

    :param g: builder
    :param x: indexed tensor
    :param used: axes of x, in order, and their indices
    """
    if not all(g.has_shape(index) for _, index in used):
        return None
    shapes = [g.get_shape(index) for _, index in used]
    rank = max(map(len, shapes))
    own = [[rank - len(s) + k for k, d in enumerate(s) if d != 1] for s in shapes]
    if sorted(k for dims in own for k in dims) != list(range(rank)):
        return None
    labels: list[tuple[str, int]] = [("x", axis) for axis in range(g.get_rank(x))]
    for (axis, index), shape, dims in reversed(list(zip(used, shapes, own, strict=True))):
        ones = [k for k, d in enumerate(shape) if d == 1]
        squeezed = g.op.SqueezeAnyOpset(index, int_vector(ones)) if ones else index
        x = g.op.Gather(x, squeezed, axis=axis)
        labels[axis : axis + 1] = [("index", k) for k in dims]
    place = _place([axis for axis, _ in used])
    others = [label for label in labels if label[0] == "x"]
    order = [*others[:place], *(("index", k) for k in range(rank)), *others[place:]]
    return permute(g, x, [labels.index(label) for label in order])


@aten("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    g: GraphWriter, x: str, indices: Sequence[str | None], values: str, accumulate: bool = False
) -> str:
    """x[i, j, ...] = values: a Where for a mask and one value, a ScatterND otherwise."""
    values = cast(g, values, g.get_type(x))
    one_value = g.get_rank(values) == 0 or g.get_shape(values) == (1,)
    mask = indices[0] if len(indices) == 1 and one_value and not accumulate else None
    if mask is not None and g.get_type(mask) == BOOL:
        missing = g.get_rank(x) - g.get_rank(mask)
        if missing:
            axes = int_vector(range(g.get_rank(mask), g.get_rank(x)))
            mask = g.op.UnsqueezeAnyOpset(mask, axes)
        return choose(g, mask, values, x, g.get_type(x))
    plan = IndexPlan(g, x, positions(g, indices))
    moved = permute(g, x, plan.perm)
    updates = _updates(g, plan, moved, values)
    if accumulate:
        scattered = _accumulated(g, plan, moved, updates)
    else:
        scattered = g.op.ScatterND(moved, plan.columns(), updates)
    return permute(g, scattered, [int(i) for i in np.argsort(plan.perm)])


def _accumulated(g: GraphWriter, plan: IndexPlan, moved: str, updates: str) -> str:
    """Adds slices at positions that may repeat; the indexed dimensions become one."""
    sizes, count = dims_of(g, moved), len(plan.axes)
    place = plan.tensors[0]
    for size, index in zip(sizes[1:count], plan.tensors[1:], strict=True):
        length = vector1d(g, size)
        # no index reads an empty dimension, but onnxruntime refuses to divide by 0
        divisor = (
            int_vector([max(size, 1)])
            if isinstance(size, int)
            else g.op.Max(length, int_vector([1]))
        )
        place = g.op.Add(g.op.Mul(place, length), g.op.Mod(index, divisor))
    if count > 1:
        moved = reshape(g, moved, [product(g, sizes[:count]), *sizes[count:]])
    if plan.index_rank != 1:
        place = g.op.Reshape(place, int_vector([-1]))
        updates = reshape(g, updates, [dim_of(g, place, 0), *sizes[count:]])
    total = reduce_slices(g, moved, 0, place, updates, "add")
    return total if count == 1 else reshape(g, total, sizes)


def _updates(g: GraphWriter, plan: IndexPlan, moved: str, values: str) -> str:
    """Broadcasts the values to the shape of x[indices], the indexed dimensions first."""
    perm = plan.result_permutation()
    index_dims = [dim_of(g, plan.tensors[0], i) for i in range(plan.index_rank)]
    rest = [dim_of(g, moved, i) for i in range(len(plan.axes), plan.rank)]
    first = [*index_dims, *rest]
    expanded = g.op.Expand(values, shape_tensor(g, [first[i] for i in perm]))
    return permute(g, expanded, [int(i) for i in np.argsort(perm)])


@aten("aten.isin.Tensor_Tensor")
def isin(
    g: GraphWriter, elements: str, tests: str, *, assume_unique: bool = False, invert: bool = False
) -> str:
    """Compares every element with every test."""
    flat = g.op.Reshape(tests, int_vector([-1]))
    wide = g.op.UnsqueezeAnyOpset(elements, int_vector([g.get_rank(elements)]))
    equal = g.op.Cast(g.op.Equal(wide, flat), to=TensorProto.INT32)
    count = reduce(g, "ReduceSum", equal, -1, False)
    found = g.op.Cast(count, to=BOOL)
    return g.op.Not(found) if invert else found
