"""Recognizes `rotate_half` of rotary embeddings: two halves swapped, one of them negated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from ...authoring import RewriteContext
from ..axes import axis_of


class RotatedHalves(NamedTuple):
    """Halves `a, b` along the last axis, turned into `(-b, a)` or `(b, -a)`.

    :param result: the result that holds them
    :param side: `right` if b is negated, `left` if a is
    :param sizes: both sizes, which are equal
    """

    result: str
    side: str
    sizes: np.ndarray


def rotated_halves(g: RewriteContext, split: NodeProto) -> RotatedHalves:
    """Reads the nodes after a Split in two halves; refuses any other use."""
    g.require(len(split.output) == 2, "there are not two halves")
    rank = g.rank_of(split.input[0])
    on_last = axis_of(g, split, rank) == rank - 1
    g.require(on_last, "the axis is not the last one")
    sizes = [g.shape_of(name)[-1] for name in split.output]
    even = sizes[0] == sizes[1] and isinstance(sizes[0], int)
    g.require(even, "the halves may not have the same size")
    a, b = split.output
    side, moved = ("left", a) if g.after_or_none(a, "Neg") is not None else ("right", b)
    neg = g.after(moved, "Neg")
    concat = g.after(neg, "Concat")
    expected = [b, neg.output[0]] if side == "left" else [neg.output[0], a]
    g.require(list(concat.input) == expected, "Concat does not exchange the halves")
    g.require(axis_of(g, concat, rank, None) == rank - 1, "the axis is not the last one")
    return RotatedHalves(concat.output[0], side, np.array(sizes, np.int64))
