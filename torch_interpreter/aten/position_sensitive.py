"""Position-sensitive poolings of torchvision: each part of a box reads channels of its own."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import Size, dim_of, first_integers, int_vector, scalar0d
from .boxes import roi_align
from .operands import INT64, cast, const, f64, reshape

DOUBLE = TensorProto.DOUBLE


def _channels(g: GraphWriter, x: str, parts: int) -> int:
    """The number of channels of the result."""
    channels = g.get_shape(x)[1]
    if not isinstance(channels, int):
        raise ValueError("a position-sensitive pooling needs a static number of channels")
    return channels // parts


@aten("torchvision.ps_roi_align.default")
def ps_roi_align(
    g: GraphWriter,
    x: str,
    rois: str,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> list[str | None]:
    """The mean of points of each part of a box; the numbers of its channels are not computed.

    RoiAlign computes every part in every channel, and each part keeps its own.
    """
    parts = pooled_height * pooled_width
    every = roi_align(
        g, x, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned=True
    )
    count, channels = dim_of(g, rois, 0), _channels(g, x, parts)
    pairs = reshape(g, every, [count, channels, parts * parts])
    own = g.op.Gather(pairs, int_vector(list(range(0, parts * parts, parts + 1))), axis=2)
    found = reshape(g, own, [count, channels, pooled_height, pooled_width])
    if sampling_ratio <= 0:
        empty = _without_points(g, rois, spatial_scale, (pooled_width, pooled_height))
        found = g.op.Where(empty, const(math.nan, g.get_type(x)), found)
    return [found, None]


def _without_points(g: GraphWriter, rois: str, scale: float, parts: tuple[int, int]) -> str:
    """The boxes with a part without a point, whose mean is nan in torchvision.

    :param g: the graph
    :param rois: the boxes
    :param scale: of their coordinates
    :param parts: along the width, along the height
    """
    itype = g.get_type(rois)
    first, last = (
        g.op.Mul(g.op.Gather(rois, int_vector(c), axis=1), const(scale, itype))
        for c in ((1, 2), (3, 4))
    )
    steps = g.op.Ceil(g.op.Div(g.op.Sub(last, first), const(parts, itype)))
    across, down = (g.op.Gather(steps, int_vector([i]), axis=1) for i in (0, 1))
    points = g.op.Mul(across, down)
    return g.op.UnsqueezeAnyOpset(g.op.Equal(points, const(0, itype)), int_vector([2, 3]))


def _inside(g: GraphWriter, boxes: str, columns: tuple[int, int], parts: int, size: Size) -> str:
    """The pixels of each part of the boxes along an axis: boxes, parts, pixels.

    :param g: the graph
    :param boxes: the corners of the boxes, whole numbers in doubles
    :param columns: the column of the first pixel, of the last one
    :param parts: number of parts of a box
    :param size: number of pixels
    """
    first, last = (g.op.Gather(boxes, const([c], INT64), axis=1) for c in columns)
    step = g.op.Div(g.op.Max(g.op.Sub(last, first), f64(1)), f64(parts))
    numbers = np.arange(parts, dtype=np.float64).reshape(1, -1)
    start = g.op.Add(g.op.Floor(g.op.Mul(step, numbers)), first)
    end = g.op.Add(g.op.Ceil(g.op.Mul(step, numbers + 1)), first)
    border = g.op.Sub(scalar0d(g, size, DOUBLE), f64(1))
    start, end = (
        g.op.UnsqueezeAnyOpset(g.op.Min(g.op.Max(v, f64(0)), border), int_vector([2]))
        for v in (start, end)
    )
    pixels = cast(g, first_integers(g, size), DOUBLE)
    return g.op.And(g.op.GreaterOrEqual(pixels, start), g.op.Less(pixels, end))


@aten("torchvision.ps_roi_pool.default")
def ps_roi_pool(
    g: GraphWriter,
    x: str,
    rois: str,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> list[str | None]:
    """The mean of each part of a box, 0 if it is empty; the numbers of its channels are not
    computed. The last row and the last column of an image are in no part."""
    itype, count = g.get_type(x), dim_of(g, rois, 0)
    scaled = g.op.Mul(rois, const(spatial_scale, g.get_type(rois)))
    # the closest integers, away from 0 for a half
    wide = cast(g, scaled, DOUBLE)
    whole = g.op.Mul(g.op.Sign(wide), g.op.Floor(g.op.Add(g.op.Abs(wide), f64(0.5))))
    height, width = dim_of(g, x, 2), dim_of(g, x, 3)
    rows = _inside(g, whole, (2, 4), pooled_height, height)
    columns = _inside(g, whole, (1, 3), pooled_width, width)
    # boxes, channels, parts along each axis, pixels along each axis
    rows = g.op.UnsqueezeAnyOpset(rows, int_vector([1, 3, 5]))
    columns = g.op.UnsqueezeAnyOpset(columns, int_vector([1, 2, 4]))
    inside = g.op.And(rows, columns)
    images = cast(g, g.op.Gather(rois, const(0, INT64), axis=1), INT64)
    channels = _channels(g, x, pooled_height * pooled_width)
    pixels = reshape(
        g,
        g.op.Gather(x, images, axis=0),
        [count, channels, pooled_height, pooled_width, height, width],
    )
    axes = int_vector([4, 5])
    total = g.op.ReduceSumAnyOpset(g.op.Where(inside, pixels, const(0, itype)), axes, keepdims=0)
    area = g.op.ReduceSumAnyOpset(cast(g, inside, itype), axes, keepdims=0)
    return [g.op.Div(total, g.op.Max(area, const(1, itype))), None]
