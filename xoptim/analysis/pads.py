"""Padding of a Pad: the number of elements along each axis, and whether they are zeros."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import normalize_axes

from ..authoring.context import RewriteContext
from .arguments import optional_input
from .constants import int_values, is_filled_with

_AXES = "the axes of the padding are not known"


def pads_of(g: RewriteContext, pad: NodeProto, rank: int | None) -> np.ndarray:
    """The padding of a Pad, before and after, along each axis; refuses if it is not known.

    :param pad: a Pad
    :param rank: rank of the padded tensor, None if only the padding tells it
    :return: two rows, as many columns as the rank
    """
    written = g.get_attribute_with_default(pad, "pads", None)
    values = int_values(g, optional_input(pad, 1)) if written is None else written
    values = g.known(values, "the padding is not constant")
    name = optional_input(pad, 3)
    if rank is None and not name:
        rank = len(values) // 2
    axes = int_values(g, name) if name else range(rank or 0)
    axes = g.known(None if axes is None else normalize_axes(axes, rank), _AXES)
    g.require(len(values) == 2 * len(axes), "the padding does not have the rank of what is padded")
    full = np.zeros((2, g.known(rank, _AXES)), dtype=np.int64)
    full[:, [*axes]] = np.array(values, dtype=np.int64).reshape((2, -1))
    return full


def adds_zeros(g: RewriteContext, pad: NodeProto) -> bool:
    """Whether what a Pad adds is made of zeros."""
    if g.get_attribute_with_default(pad, "mode", "constant") != "constant":
        return False
    value = optional_input(pad, 2)
    if value:
        return is_filled_with(g, value, 0)
    return bool(g.get_attribute_with_default(pad, "value", 0.0) == 0)
