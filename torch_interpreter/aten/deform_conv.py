"""The deformable convolution of torchvision: a tensor moves the points a kernel reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import dim_of, first_integers, int_vector, product, scalar0d
from .operands import INT64, cast, const, reshape
from .resize import grid_sampler


@aten("torchvision.deform_conv2d.default")
def deform_conv2d(
    g: GraphWriter,
    x: str,
    weight: str,
    offset: str,
    mask: str,
    bias: str,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> str:
    """DeformConv, or before opset 19, a convolution of one point on the values GridSample reads."""
    if g.main_opset >= 19:
        return g.op.DeformConv(
            *(x, weight, offset, bias, *([mask] if use_mask else [])),
            dilations=[dilation_h, dilation_w],
            group=groups,
            offset_group=offset_groups,
            pads=[pad_h, pad_w, pad_h, pad_w],
            strides=[stride_h, stride_w],
        )
    if g.main_opset < 16:
        raise ValueError("deform_conv2d needs target_opset=16")
    kernel = _static(g, weight, (0, 1, 2, 3))
    (channels,) = _static(g, x, (1,))
    points, batch = kernel[2] * kernel[3], dim_of(g, x, 0)
    height, width = (dim_of(g, offset, axis) for axis in (2, 3))
    moves = reshape(g, offset, [batch, offset_groups, points, 2, height, width])
    steps = ((stride_h, pad_h, dilation_h), (stride_w, pad_w, dilation_w))
    places = [_places(g, x, moves, axis, kernel[2:], steps[axis]) for axis in (1, 0)]
    together = product(g, [batch, offset_groups])
    rows = product(g, [points, height])
    grid = reshape(g, g.op.Concat(*places, axis=5), [together, rows, width, 2])
    own = channels // offset_groups
    image = reshape(g, x, [together, own, dim_of(g, x, 2), dim_of(g, x, 3)])
    read = grid_sampler(g, image, grid, 0, 0, False)
    read = reshape(g, read, [batch, offset_groups, own, points, height, width])
    if use_mask:
        factors = reshape(g, mask, [batch, offset_groups, 1, points, height, width])
        read = g.op.Mul(read, factors)
    columns = reshape(g, read, [batch, channels * points, height, width])
    flat = reshape(g, weight, [kernel[0], kernel[1] * points, 1, 1])
    return g.op.Conv(columns, flat, bias, group=groups)


def _places(
    g: GraphWriter,
    x: str,
    moves: str,
    axis: int,
    kernel: Sequence[int],
    steps: tuple[int, int, int],
) -> str:
    """The places of the points of the kernel along an axis, from -1 to 1 between the borders.

    :param g: the graph
    :param x: the image
    :param moves: batch, groups, points, axes, rows, columns
    :param axis: 0 for rows, 1 for columns
    :param kernel: rows and columns of the kernel
    :param steps: stride, padding, dilation along the axis
    """
    itype = g.get_type(x)
    stride, pad, dilation = steps
    numbers = first_integers(g, dim_of(g, moves, 4 + axis))
    shape = [1, 1, 1, -1, 1] if axis == 0 else [1, 1, 1, 1, -1]
    starts = g.op.Reshape(g.op.Mul(numbers, const(stride, INT64)), int_vector(shape))
    inside = np.indices(kernel)[axis].reshape(1, 1, -1, 1, 1) * dilation - pad
    fixed = cast(g, g.op.Add(starts, inside.astype(np.int64)), itype)
    place = g.op.Add(g.op.Gather(moves, const(axis, INT64), axis=3), fixed)
    # the centre of a pixel is at one half of its size
    size = scalar0d(g, dim_of(g, x, 2 + axis), itype)
    twice = g.op.Add(g.op.Mul(place, const(2, itype)), const(1, itype))
    found = g.op.Sub(g.op.Div(twice, size), const(1, itype))
    return g.op.UnsqueezeAnyOpset(found, int_vector([5]))


def _static(g: GraphWriter, x: str, axes: Sequence[int]) -> list[int]:
    """Dimensions that the converter reads."""
    sizes = [dim_of(g, x, axis) for axis in axes]
    if any(isinstance(size, str) for size in sizes):
        raise ValueError("deform_conv2d needs a static kernel and a static number of channels")
    return [int(size) for size in sizes]
