"""Convolutions: removes a null bias, merges a Pad into the padding."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.attributes import has_reference

from ...analysis.constants import Ints, is_filled_with
from ...analysis.neighbours import consumers_of
from ...analysis.pads import adds_zeros, pads_of
from ...analysis.reshapes import added_ones
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite


@rewrite("default", "canonicalize", root="Conv", priority="first")
def conv_bias_null(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Conv(X, W, 0) -> Conv(X, W)."""
    names = g.inputs(node)
    if len(names) < 3:
        return g.no("there is no bias")
    if not is_filled_with(g, names[2], 0):
        return g.no("the bias is not a constant made of zeros")
    return g.like(node, *names[:2])


@rewrite("default", root="Conv", after=("Pad", "Unsqueeze", "Reshape"))
def pad_conv(g: RewriteContext, node: NodeProto) -> NewNode:
    """Conv(Pad(X, pads), W, B) -> Conv(X, W, B, pads) when the padding is made of zeros.

    1. The padding is constant, not negative, on spatial dimensions only; the mode is `constant`.
    2. `auto_pad` is missing or is `NOTSET`: the two paddings are added.
    3. Dimensions 1 are added in between, by an Unsqueeze or a Reshape: `Conv(Unsqueeze(X), ...)`.
    4. Only convolutions read the padded tensor, one of them if dimensions are added in between.
    """
    pad, added_axes = _pad_before(g, node)
    reference = has_reference(pad) or has_reference(node)
    g.require(not reference, "an attribute belongs to the function")
    mode = g.get_attribute_with_default(node, "auto_pad", "NOTSET")
    g.require(mode == "NOTSET", "the padding depends on the shape")
    g.require(adds_zeros(g, pad), "the values added are not zeros")
    added = _spatial_padding(g, pad, added_axes)
    known = g.get_attribute_with_default(node, "pads", [0] * len(added))
    total = [a + b for a, b in zip(known, added, strict=True)]
    x: str | NewNode = pad.input[0]
    if added_axes:
        x = g.op.Unsqueeze(x, axes=added_axes)
    return g.like(node, x, *node.input[1:], pads=total, auto_pad=None)


def _pad_before(g: RewriteContext, conv: NodeProto) -> tuple[NodeProto, Ints]:
    """The Pad before a convolution, and the axes of the dimensions 1 added in between."""
    pad = g.before_or_none(conv, "Pad")
    if pad is not None:
        padded = pad.output[0]
        alone = g.is_used_only_by(padded, *consumers_of(g, padded, "Conv"))
        g.require(alone, "the padded tensor is used elsewhere")
        return pad, ()
    middle = g.before(conv, "Unsqueeze", "Reshape")
    pad = g.before(middle, "Pad")
    results = (pad.output[0], middle.output[0])
    g.require_sole_use("the padded tensor is used elsewhere", *results)
    return pad, added_ones(g, middle)


def _spatial_padding(g: RewriteContext, pad: NodeProto, added: Ints) -> list[int]:
    """Padding of the spatial dimensions, beginnings then ends; refuses a padding of others.

    :param added: axes of the dimensions 1 added to its result, counted after they are added
    """
    pads = pads_of(g, pad, g.rank_or_none(pad.input[0]))
    for axis in added:
        pads = np.insert(pads, axis, 0, axis=1)
    spatial = pads.shape[1] > 2 and (pads >= 0).all() and not pads[:, :2].any()
    g.require(spatial, "the padding is negative, or not on spatial dimensions only")
    return [int(p) for p in pads[:, 2:].ravel()]
