"""Moves a Pad between Reshape nodes that only add or remove dimensions 1."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import add
from xbuilder.operators.op_traits import RESHAPES

from ...analysis.arguments import optional_input
from ...analysis.constants import int_values
from ...analysis.pads import pads_of
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import proven_equal, without_ones
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


def same_pad(g: RewriteContext, pad: NodeProto, x: str, pads: np.ndarray) -> NewNode:
    """The same Pad of another result, on all its axes."""
    value = optional_input(pad, 2)
    return g.like(pad, x, pads.ravel(), *([value] if value else []))


@rewrite("default", root=RESHAPES, after="Pad", min_opset=11)
def pad_between_reshapes(g: RewriteContext, node: NodeProto) -> NewNode:
    """Squeeze(Pad(Unsqueeze(x))) -> Pad(x), dimensions 1 are added and removed around the Pad.

    1. Any Reshape, Squeeze, Unsqueeze, Flatten: the first one moves, adds or removes dimensions 1
       only, and they are not padded; the result has the dimensions of x, once padded.
    2. If it has others, and comes from a Reshape to a shape that copies no dimension:
       Reshape(Pad(x)).

    The padding is constant, not negative. Nothing else reads the padded tensor.
    """
    pad = g.before(node, "Pad")
    g.require_sole_use("what is padded is used elsewhere", pad.output[0])
    first = g.before(pad, *RESHAPES)
    x, unknown = first.input[0], "a shape is not known for every size"
    before, middle = g.shape_of(x), g.known(moved_shape(g, pad.input[0]), unknown)
    moved = pads_of(g, pad, len(middle))
    g.require((moved >= 0).all(), "the padding is negative")
    places = [[i for i, d in enumerate(dims) if d != 1] for dims in (before, middle)]
    same = proven_equal(g, without_ones(before), without_ones(middle))
    g.require(same, "more than dimensions 1 are moved")
    g.require(moved.sum() == moved[:, places[1]].sum(), "a dimension 1 is padded")
    pads = np.zeros((2, len(before)), dtype=np.int64)
    pads[:, places[0]] = moved[:, places[1]]
    new = same_pad(g, pad, x, pads)
    after = tuple(add(d, int(p)) for d, p in zip(before, pads.sum(axis=0), strict=True))
    if proven_equal(g, after, g.known(moved_shape(g, node.output[0]), unknown)):
        return new
    target = int_values(g, node.input[1]) if node.op_type == "Reshape" else None
    copies = target is None or 0 in target
    g.require(not copies, "the result does not have the dimensions of what is padded")
    return g.like(node, new, node.input[1])
