"""Slice and its neighbours."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import normalize_axes

from ..api import NewNode, RewriteContext, rewrite
from ..reading.arguments import optional_input
from ..reading.constants import Ints, int_values
from ..reading.shapes import known_rank

#: types an index may have
INDEX_TYPES: dict[int | None, type[np.signedinteger]] = {
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
}


def slice_axes(g: RewriteContext, node: NodeProto) -> Ints | None:
    """Axes of a Slice as they are written, the first ones if they are missing.

    :param g: the optimizer
    :param node: a Slice whose arguments are inputs (opset 10)
    :return: axes, None if they are not constant or if nobody knows how many there are
    """
    name = optional_input(node, 3)
    if name:
        return int_values(g, name)
    starts = g.try_infer_shape(optional_input(node, 1))
    if starts is None or len(starts) != 1 or not isinstance(starts[0], int):
        return None
    return tuple(range(starts[0]))


def _merged(
    g: RewriteContext, first: NodeProto, second: NodeProto, index: int, dtype: type
) -> np.ndarray | NewNode:
    """One argument of both Slice, one after the other; missing steps are 1."""
    pieces: list[str | np.ndarray] = []
    known: list[int] | None = []
    for node in (first, second):
        name = optional_input(node, index)
        values = int_values(g, name) if name else (1,) * len(slice_axes(g, node) or ())
        known = None if known is None or values is None else [*known, *values]
        pieces.append(name or np.array(values, dtype=dtype))
    return g.op.Concat(*pieces, axis=0) if known is None else np.array(known, dtype=dtype)


@rewrite("default", root="Slice", after="Slice", min_opset=10)
def slice_slice(g: RewriteContext, second: NodeProto) -> NewNode:
    """Slice(Slice(x, axes=a), axes=b) -> Slice(x, axes=a+b) when a and b are disjoint.

    1. Bounds and steps are constant: so are the new ones.
    2. They are not: the new ones are concatenated, if both have the same type.
    3. Missing axes are the first ones, missing steps are 1.
    4. Something else reads the first Slice, which stays: bounds and steps are constant.
    """
    first = g.before(second, "Slice")
    nodes, x = (first, second), first.input[0]
    a, b = slice_axes(g, first), slice_axes(g, second)
    rank = known_rank(g, second.input[0]) or known_rank(g, x)
    axes = None if a is None or b is None else normalize_axes((*a, *b), rank)
    axes = g.known(axes, "the axes are not known, or not disjoint")
    names = [n for node in nodes for n in node.input[1:] if n]
    types = {g.try_infer_type(n) for n in names}
    if all(int_values(g, n) is not None for n in names):
        types = {TensorProto.INT64}
    else:
        alone = not g.is_used_more_than_once(second.input[0])
        g.require(alone, "an inner result is used elsewhere")
    index_type = INDEX_TYPES.get(types.pop()) if len(types) == 1 else None
    dtype = g.known(index_type, "the bounds cannot be merged")
    used = 4 if any(optional_input(n, 4) for n in nodes) else 3
    starts, ends, *steps = (_merged(g, *nodes, i, dtype) for i in (1, 2, 4)[: used - 1])
    return g.op.Slice(x, starts, ends, np.array(axes, dtype=dtype), *steps)
