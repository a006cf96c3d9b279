"""Pools with reductions and crops where onnxruntime has no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import FLOATS, HALF_FLOATS

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from .missing import from_float, in_float, missing_types


@rewrite("onnxruntime", "fix", root="GlobalLpPool", precision="rounding")
def missing_global_lp_pool(g: RewriteContext, node: NodeProto) -> NewNode:
    """GlobalLpPool(x, p) -> ReduceL2(x), ReduceL1(x), or ReduceSum(|x| ** p) ** (1 / p).

    1. x has three dimensions at least; float16 and bfloat16 become float.
    """
    kind = missing_types(g, node)[0]
    g.require(kind in FLOATS, "the type is not a float")
    rank = g.rank_of(node.input[0])
    g.require(rank > 2, "there is nothing to reduce")
    axes = list(range(2, rank))
    x, p = in_float(g, node.input[0], kind), g.get_attribute_with_default(node, "p", 2)
    if p == 1:
        return from_float(g, g.op.ReduceL1(x, axes=axes, keepdims=1), kind)
    if p == 2:
        return from_float(g, g.op.ReduceL2(x, axes=axes, keepdims=1), kind)
    g.require(p > 0, "p is not positive")
    dtype = np.float64 if kind == TensorProto.DOUBLE else np.float32
    powers = g.op.Pow(g.op.Abs(x), np.array(p, dtype=dtype))
    total = g.op.ReduceSum(powers, axes=axes, keepdims=1)
    return from_float(g, g.op.Pow(total, np.array(1 / p, dtype=dtype)), kind)


@rewrite("onnxruntime", "fix", root="RoiAlign", precision="rounding")
def missing_roi_align(g: RewriteContext, node: NodeProto) -> NewNode:
    """RoiAlign(x, rois, batch) -> AveragePool(com.microsoft.CropAndResize(Pad(x), boxes, batch)).

    1. The mode is avg, sampling_ratio is positive: with 0, regions do not have as many samples.
    2. x is float, rois as well; float16 and bfloat16 become float.

    Samples of a region are the pixels of a larger crop. RoiAlign takes 0 for those that are more
    than one pixel away from the image, and the closest pixel for those that are less: x is
    extended by one pixel. A sample which is one pixel away exactly may be on either side.
    """
    kind = missing_types(g, node)[0]
    g.require(kind in (TensorProto.FLOAT, *HALF_FLOATS), "the type is not float")
    mode = g.get_attribute_with_default(node, "mode", "avg")
    g.require(mode == "avg", "the mode is not avg")
    ratio = g.get_attribute_with_default(node, "sampling_ratio", 0)
    g.require(ratio > 0, "the number of samples depends on the region")
    heights = g.get_attribute_with_default(node, "output_height", 1) * ratio
    widths = g.get_attribute_with_default(node, "output_width", 1) * ratio
    x, rois = (in_float(g, name, kind) for name in node.input[:2])
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1], dtype=np.int64)
    boxes = _boxes(g, node, rois, np.array([widths, heights], dtype=np.float32))
    crops = g.op.CropAndResize(
        g.op.Pad(x, pads, mode="edge"),
        boxes,
        g.op.Cast(node.input[2], to=TensorProto.INT32),
        np.array([heights, widths], dtype=np.int32),
        domain=MICROSOFT,
    )
    if ratio == 1:
        return from_float(g, crops, kind)
    window = [ratio, ratio]
    return from_float(g, g.op.AveragePool(crops, kernel_shape=window, strides=window), kind)


def _boxes(g: RewriteContext, node: NodeProto, rois: Any, counts: np.ndarray) -> NewNode:
    """The first and last samples of each region, as CropAndResize reads them: y, x, y, x between
    0 and 1, in the image extended by one pixel.

    :param rois: the regions, in float
    :param counts: number of samples of a region along x, along y
    """
    mode = g.get_attribute_with_default(node, "coordinate_transformation_mode", "half_pixel")
    scale = g.get_attribute_with_default(node, "spatial_scale", 1.0)
    scaled: Any = rois if scale == 1 else g.op.Mul(rois, np.array(scale, dtype=np.float32))
    if mode == "half_pixel":
        scaled = g.op.Sub(scaled, np.array(0.5, dtype=np.float32))
    parts = g.op.Split(scaled, np.array([2, 2], dtype=np.int64), axis=1, outputs=2)
    sizes = g.op.Sub(parts[1], parts[0])
    if mode != "half_pixel":
        sizes = g.op.Max(sizes, np.array(1, dtype=np.float32))
    steps = g.op.Div(sizes, counts)
    start = g.op.Add(parts[0], np.array(1, dtype=np.float32))
    first = g.op.Add(start, g.op.Mul(steps, np.array(0.5, dtype=np.float32)))
    last = g.op.Add(start, g.op.Mul(steps, counts - np.float32(0.5)))
    # height, width
    shape = g.op.Cast(g.op.Shape(node.input[0], start=2, end=4), to=TensorProto.FLOAT)
    limits = g.op.Add(shape, np.array(1, dtype=np.float32))
    order = np.array([1, 0], dtype=np.int64)
    found = [g.op.Div(g.op.Gather(p, order, axis=1), limits) for p in (first, last)]
    return g.op.Concat(*found, axis=1)
