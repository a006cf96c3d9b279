"""Repeats rows with one Gather instead of an Expand between an Unsqueeze and a Reshape."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Dim, Shape

from ...analysis.axes import moved_axes
from ...analysis.reshapes import moved_shape, reshaped
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

#: most indices written in the model
_INDICES = 1024


@rewrite("default", "uncanonicalize", root="Reshape", after="Expand", sole_use=True, min_opset=13)
def expand_reshape_gather(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Reshape(Expand(Unsqueeze(x))) -> Gather(x, [0, 0, 1, 1, ...]), rows are copied once.

    1. The new dimension follows the one the Reshape merges it with: each row is repeated, `[0, 0,
       1, 1]`. It is how heads are repeated for the queries that share them.
    2. It comes before: all of them are repeated, `[0, 1, 0, 1]`.

    The merged dimension is not the last one, it is an integer of 1024 at most. Nothing is computed
    out of the other dimensions, the nodes that put them in the two shapes go away.
    """
    expand = g.known(g.before_or_none(node, "Expand"), "no Expand before")
    new = g.known(g.before_or_none(expand, "Unsqueeze"), "no Unsqueeze before")
    axes = moved_axes(g, new)
    g.require(len(axes) == 1, "not one dimension is new")
    axis, before = axes[0], g.known(moved_shape(g, new.input[0]), "a shape is not known")
    wide = g.shape_of(expand.output[0], "a shape is not known")
    after = g.known(reshaped(g, node), "a shape is not known")
    times = wide[axis] if len(wide) == len(before) + 1 else 0
    spread = (*before[:axis], times, *before[axis:])
    g.require(proven_equal(g, wide, spread), "another dimension is expanded")
    for merged in (axis - 1, axis):
        if 0 <= merged < len(before) - 1 and _is_merged(g, before, merged, times, after):
            rows = np.arange(before[merged], dtype=np.int64)
            every = rows.repeat(int(times)) if merged < axis else np.tile(rows, int(times))
            return g.op.Gather(new.input[0], every, axis=merged)
    g.refuse("the new dimension is not merged with an integer beside it")


def _is_merged(g: RewriteContext, before: Shape, axis: int, times: Dim, after: Shape) -> bool:
    """Whether the result has so many times the elements of an axis, few enough of them."""
    rows = before[axis]
    if not isinstance(rows, int) or not isinstance(times, int) or not 1 < rows * times <= _INDICES:
        return False
    return proven_equal(g, after, (*before[:axis], rows * times, *before[axis + 1 :]))
