"""Removes the Transpose nodes around a Slice or a Pad."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import normalize_axes

from ...analysis.axes import slice_axes
from ...analysis.constants import Ints
from ...analysis.pads import pads_of
from ...analysis.permutations import compose, inverse, is_identity
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..indexing.pad import same_pad
from ..indexing.slices import INDEX_TYPES
from .transpose import perms_of


@rewrite("default", root="Transpose", after=("Slice", "Pad"), min_opset=11, sole_use=True)
def transpose_slice_transpose(g: RewriteContext, second: NodeProto) -> NewNode:
    """Transpose(Slice(Transpose(x, p), axes=a), q) -> Transpose(Slice(x, axes=p[a]), p[q]).

    1. The permutations cancel: the Slice is left.
    2. A Pad whose padding, or its axes, are constant, instead of the Slice.
    """
    middle = g.before(second, "Slice", "Pad")
    first = g.before(middle, "Transpose")
    p, q = perms_of(g, first, second)
    x, perm = first.input[0], compose(p, q)
    new = (
        _moved_slice(g, middle, x, p) if middle.op_type == "Slice" else _moved_pad(g, middle, x, p)
    )
    return new if is_identity(perm) else g.op.Transpose(new, perm=perm)


def _moved_slice(g: RewriteContext, cut: NodeProto, x: str, perm: Ints) -> NewNode:
    """A Slice before a Transpose instead of after it."""
    _, starts, ends, *others = g.inputs(cut)
    axes = normalize_axes(slice_axes(g, cut) or (), len(perm))
    axes = g.known(axes or None, "the axes are not known")
    dtype = g.known(INDEX_TYPES.get(g.type_of(starts)), "the bounds are not integers")
    moved = np.array([perm[a] for a in axes], dtype=dtype)
    return g.like(cut, x, starts, ends, moved, *others[1:])


def _moved_pad(g: RewriteContext, pad: NodeProto, x: str, perm: Ints) -> NewNode:
    """A Pad before a Transpose instead of after it."""
    pads = pads_of(g, pad, len(perm))
    return same_pad(g, pad, x, pads[:, inverse(perm)])
