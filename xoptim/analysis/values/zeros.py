"""The parts that Concat, Pad and ScatterND write between zeros."""

from __future__ import annotations

from typing import NamedTuple

from onnx import NodeProto

from xbuilder.dims import normalize_axis

from ...authoring import RewriteContext
from ..axes import axis_of
from ..pads import adds_zeros, pads_of
from ..places import length_along
from .uniform import is_always

#: most ScatterND that write rows of one result
_STEPS = 16


class Part(NamedTuple):
    """A part between zeros along an axis.

    :param start: its first position
    :param end: its last position, excluded
    :param name: the result
    :param step: distance of two positions
    """

    start: int
    end: int
    name: str
    step: int = 1


def parts_among_zeros(g: RewriteContext, node: NodeProto) -> tuple[int, list[Part]]:
    """The axis of a Concat, of a Pad, or of ScatterND nodes on zeros, and its parts that are not
    zeros; refuses any other node.

    :param node: a Concat, a Pad or a ScatterND
    """
    rank = g.rank_of(node.output[0])
    if node.op_type == "Concat":
        return _concatenated(g, node, rank)
    return _surrounded(g, node, rank) if node.op_type == "Pad" else (0, _scattered(g, node))


def _concatenated(g: RewriteContext, node: NodeProto, rank: int) -> tuple[int, list[Part]]:
    axis = g.known(axis_of(g, node, rank, None), "the axis is not known")
    parts, position = [], 0
    for name in node.input:
        length = length_along(g, name, axis)
        if not is_always(g, name, 0):
            parts.append(Part(position, position + length, name))
        position += length
    return axis, parts


def _surrounded(g: RewriteContext, pad: NodeProto, rank: int) -> tuple[int, list[Part]]:
    """The part a Pad surrounds with zeros, along one axis."""
    pads = pads_of(g, pad, rank)
    axes = [axis for axis in range(rank) if pads[:, axis].any()]
    one = len(axes) == 1 and not (pads < 0).any() and adds_zeros(g, pad)
    g.require(one, "zeros are not added along one axis")
    length = length_along(g, pad.input[0], axes[0])
    start = int(pads[0, axes[0]])
    return axes[0], [Part(start, start + length, pad.input[0])]


def _scattered(g: RewriteContext, node: NodeProto, depth: int = _STEPS) -> list[Part]:
    """Consecutive rows that replace zeros, or are added to zeros, beside other rows."""
    data = node.input[0]
    before = g.producer_or_none(data, "ScatterND") if depth else None
    parts = [] if before is None else _scattered(g, before, depth - 1)
    zeros = before is not None or is_always(g, data, 0)
    g.require(zeros, "rows are not written on zeros")
    reduction = g.get_attribute_with_default(node, "reduction", "none")
    g.require(reduction in ("none", "add"), "the reduction may keep a zero")
    g.look_at(before)
    return [*parts, rows_written(g, node)]


def rows_written(g: RewriteContext, node: NodeProto, step: int = 1) -> Part:
    """The rows that a ScatterND writes, a row every `step` ones; refuses others."""
    data, rows, updates = node.input
    length = length_along(g, data, 0)
    indices = g.constant_of(rows, "the rows are not known")
    g.require(indices.ndim == 2 and indices.shape[1] == 1, "what is written is not whole rows")
    found = [normalize_axis(int(i), length) for i in indices.ravel()]
    start = g.known(found[0] if found else None, "no row is written")
    end = start + step * (len(found) - 1) + 1
    follow = found == list(range(start, end, step))
    g.require(follow, "the rows do not follow each other")
    return Part(start, end, updates, step)
