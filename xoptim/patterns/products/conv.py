"""Convolutions: removes a null bias, merges a Pad into the padding."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import normalize_axes
from xbuilder.nodes.attributes import has_reference

from ...analysis.arguments import optional_input
from ...analysis.constants import Ints, int_values, is_filled_with
from ...analysis.reshapes import added_ones
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite


@rewrite("default", "canonicalize", root="Conv", priority="first")
def conv_bias_null(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Conv(X, W, 0) -> Conv(X, W)."""
    x, w, *bias = g.inputs(node)
    if not bias:
        return g.no("there is no bias")
    if not is_filled_with(g, bias[0], 0):
        return g.no("the bias is not a constant made of zeros")
    return g.like(node, x, w)


@rewrite("default", root="Conv", after=("Pad", "Unsqueeze", "Reshape"), sole_use=True)
def pad_conv(g: RewriteContext, node: NodeProto) -> NewNode:
    """Conv(Pad(X, pads), W, B) -> Conv(X, W, B, pads) when the padding is made of zeros.

    1. The padding is constant, not negative, on spatial dimensions only; the mode is `constant`.
    2. `auto_pad` is missing or is `NOTSET`: the two paddings are added.
    3. Dimensions 1 are added in between, by an Unsqueeze or a Reshape: `Conv(Unsqueeze(X), ...)`.
    4. Nothing else reads the padded tensor.
    """
    pad, added_axes = _pad_before(g, node)
    reference = has_reference(pad) or has_reference(node)
    g.require(not reference, "an attribute belongs to the function")
    mode = g.get_attribute_with_default(node, "auto_pad", "NOTSET")
    g.require(mode == "NOTSET", "the padding depends on the shape")
    g.require(_adds_zeros(g, pad), "the values added are not zeros")
    added = _spatial_padding(g, pad, added_axes)
    added = g.known(added, "the padding is not known or not on spatial dimensions only")
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
        return pad, ()
    middle = g.before(conv, "Unsqueeze", "Reshape")
    pad = g.before(middle, "Pad")
    g.require(not g.is_used_more_than_once(pad.output[0]), "the padded tensor is used elsewhere")
    return pad, added_ones(g, middle)


def _adds_zeros(g: RewriteContext, pad: NodeProto) -> bool:
    if g.get_attribute_with_default(pad, "mode", "constant") != "constant":
        return False
    value = optional_input(pad, 2)
    if value:
        return is_filled_with(g, value, 0)
    return bool(g.get_attribute_with_default(pad, "value", 0.0) == 0)


def _spatial_padding(g: RewriteContext, pad: NodeProto, added: Ints) -> list[int] | None:
    """Padding of the spatial dimensions, beginnings then ends; None if other dimensions are padded.

    :param g: the optimizer
    :param pad: the Pad
    :param added: axes of the dimensions 1 added to its result, counted after they are added
    """
    pads = g.get_attribute_with_default(pad, "pads", None)
    if pads is None:
        pads = int_values(g, optional_input(pad, 1))
    if pads is None or any(p < 0 for p in pads):
        return None
    rank: int | None = len(pads) // 2
    axes: tuple[int, ...] | None = tuple(range(len(pads) // 2))
    given = optional_input(pad, 3)
    if given:
        rank, values = g.rank_or_none(pad.input[0]), int_values(g, given)
        axes = None if values is None or rank is None else normalize_axes(values, rank)
    if axes is None or rank is None or len(pads) != 2 * len(axes):
        return None
    rank += len(added)
    if rank < 3:
        return None
    places = [i for i in range(rank) if i not in added]
    full = np.zeros((2, rank), dtype=np.int64)
    full[:, [places[a] for a in axes]] = np.array(pads).reshape((2, -1))
    return None if full[:, :2].any() else [int(p) for p in full[:, 2:].ravel()]
