"""Pools regions of images with crops and products, where onnxruntime has no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_node, make_tensor_value_info

from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import FLOATS, HALF_FLOATS

from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from .missing import from_float, in_float, missing_types

_FLOAT, _DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


@rewrite("onnxruntime", "fix", root="RoiAlign", precision="rounding")
def missing_roi_align(g: RewriteContext, node: NodeProto) -> NewNode:
    """RoiAlign(x, rois, batch) -> AveragePool(com.microsoft.CropAndResize(Pad(x), boxes, batch)).

    1. The mode is avg, sampling_ratio is positive: with 0, regions do not have as many samples.
    2. x is float, rois as well; float16 and bfloat16 become float.
    3. Otherwise Scan over the regions: MatMul(MatMul(rows, x[batch]), columns), where each row is
       the average of the weights of the pixels in the samples of a bin, each column as well.

    Samples of a region are the pixels of a larger crop. RoiAlign takes 0 for those that are more
    than one pixel away from the image, and the closest pixel for those that are less: x is
    extended by one pixel. A sample which is one pixel away exactly may be on either side.
    """
    kind = missing_types(g, node)[0]
    g.require(kind in FLOATS, "the type is not a float")
    mode = g.get_attribute_with_default(node, "mode", "avg")
    g.require(mode == "avg", "the mode is not avg")
    ratio = g.get_attribute_with_default(node, "sampling_ratio", 0)
    if ratio <= 0 or kind == _DOUBLE:
        return _scanned(g, node, kind)
    heights = g.get_attribute_with_default(node, "output_height", 1) * ratio
    widths = g.get_attribute_with_default(node, "output_width", 1) * ratio
    x = in_float(g, node.input[0], kind)
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1], dtype=np.int64)
    crops = g.op.CropAndResize(
        g.op.Pad(x, pads, mode="edge"),
        _boxes(g, node, kind, np.array([widths, heights], dtype=np.float32)),
        g.op.Cast(node.input[2], to=TensorProto.INT32),
        np.array([heights, widths], dtype=np.int32),
        domain=MICROSOFT,
    )
    if ratio == 1:
        return from_float(g, crops, kind)
    window = [ratio, ratio]
    return from_float(g, g.op.AveragePool(crops, kernel_shape=window, strides=window), kind)


def _corners(
    g: RewriteContext, node: NodeProto, kind: int, rois: Operand
) -> tuple[Operand, Operand]:
    """The first corner of each region in pixels and its size: x, y; in float or in double."""
    dtype = np.float64 if kind == _DOUBLE else np.float32
    mode = g.get_attribute_with_default(node, "coordinate_transformation_mode", "half_pixel")
    scale = g.get_attribute_with_default(node, "spatial_scale", 1.0)
    scaled: Any = rois if scale == 1 else g.op.Mul(rois, np.array(scale, dtype=dtype))
    if mode == "half_pixel":
        scaled = g.op.Sub(scaled, np.array(0.5, dtype=dtype))
    first, last = g.op.Split(scaled, np.array([2, 2], dtype=np.int64), axis=1, outputs=2)
    sizes = g.op.Sub(last, first)
    return first, sizes if mode == "half_pixel" else g.op.Max(sizes, np.array(1, dtype=dtype))


def _boxes(g: RewriteContext, node: NodeProto, kind: int, counts: np.ndarray) -> NewNode:
    """The first and last samples of each region, as CropAndResize reads them: y, x, y, x between
    0 and 1, in the image extended by one pixel.

    :param kind: type of the regions
    :param counts: number of samples of a region along x, along y
    """
    corner, sizes = _corners(g, node, kind, in_float(g, node.input[1], kind))
    steps = g.op.Div(sizes, counts)
    start = g.op.Add(corner, np.array(1, dtype=np.float32))
    first = g.op.Add(start, g.op.Mul(steps, np.array(0.5, dtype=np.float32)))
    last = g.op.Add(start, g.op.Mul(steps, counts - np.float32(0.5)))
    # height, width
    shape = g.op.Cast(g.op.Shape(node.input[0], start=2, end=4), to=_FLOAT)
    limits = g.op.Add(shape, np.array(1, dtype=np.float32))
    order = np.array([1, 0], dtype=np.int64)
    found = [g.op.Div(g.op.Gather(p, order, axis=1), limits) for p in (first, last)]
    return g.op.Concat(*found, axis=1)


def _scanned(g: RewriteContext, node: NodeProto, kind: int) -> NewNode:
    """The products of each region, one after the other: an image is never copied for a region.
    Scan refuses to run no step: there is one region more, which is left out."""
    dtype = np.float64 if kind == _DOUBLE else np.float32
    nowhere = np.zeros((1, 4), dtype=dtype)
    rois = g.op.Concat(in_float(g, node.input[1], kind), nowhere, axis=0)
    batch: Any = g.op.Concat(node.input[2], np.zeros(1, dtype=np.int64), axis=0)
    # no image is read for an empty region: its index may be any number
    last = g.op.Sub(g.op.Shape(node.input[0], start=0, end=1), np.array([1], dtype=np.int64))
    batch = g.op.Max(g.op.Min(batch, last), np.array(0, dtype=np.int64))
    corner, sizes = _corners(g, node, kind, rois)
    weights = [_weights(g, node, kind, corner, sizes, axis) for axis in (1, 0)]
    found = g.op.Scan(*weights, batch, body=_body(g, node, kind), num_scan_inputs=3)
    return g.op.Slice(found, *(np.array([i], dtype=np.int64) for i in (0, -1, 0)))


def _weights(
    g: RewriteContext, node: NodeProto, kind: int, corner: Operand, sizes: Operand, axis: int
) -> NewNode:
    """The weight of each pixel in each bin of each region, along x (0) or y (1)."""
    dtype = np.float64 if kind == _DOUBLE else np.float32
    to = _DOUBLE if kind == _DOUBLE else _FLOAT
    zero, one, half, before = (np.array(v, dtype=dtype) for v in (0, 1, 0.5, -1))
    count = g.get_attribute_with_default(node, ("output_width", "output_height")[axis], 1)
    ratio = g.get_attribute_with_default(node, "sampling_ratio", 0)
    index = np.array([axis], dtype=np.int64)
    # dimensions are those of regions, bins, samples, pixels
    start, size = (g.op.Unsqueeze(g.op.Gather(v, index, axis=1), axes=[2]) for v in (corner, sizes))
    step = g.op.Div(size, np.array(count, dtype=dtype))
    if ratio > 0:
        samples: Any = np.full((1, 1, 1), ratio, dtype=dtype)
        places: Any = np.arange(ratio, dtype=dtype)
    else:
        samples = g.op.Ceil(step)
        flat = g.op.Concat(g.op.Reshape(samples, [-1]), np.zeros(1, dtype=dtype), axis=0)
        places = g.op.Range(zero, g.op.ReduceMax(flat, keepdims=0), one)
    shares = g.op.Div(one, g.op.Max(samples, one))
    bins = np.arange(count, dtype=dtype).reshape((1, -1, 1))
    offsets = g.op.Mul(g.op.Add(places, half), shares)
    at = g.op.Add(start, g.op.Mul(step, g.op.Add(bins, offsets)))
    length = g.op.Cast(g.op.Shape(node.input[0], start=3 - axis, end=4 - axis), to=to)
    inside = g.op.And(g.op.GreaterOrEqual(at, before), g.op.LessOrEqual(at, length))
    inside = g.op.And(inside, g.op.Less(places, samples))
    closest = g.op.Max(g.op.Min(at, g.op.Sub(length, one)), zero)
    pixels = g.op.Range(zero, g.op.Squeeze(length), one)
    distances = g.op.Abs(g.op.Sub(g.op.Unsqueeze(closest, axes=[3]), pixels))
    hats = g.op.Max(g.op.Sub(one, distances), zero)
    means = g.op.Unsqueeze(g.op.Where(inside, shares, zero), axes=[2])
    return g.op.Squeeze(g.op.MatMul(means, hats), axes=[2])


def _body(g: RewriteContext, node: NodeProto, kind: int) -> GraphProto:
    """The values of one region from its rows, its columns, the index of its image."""
    wide = kind if kind not in HALF_FLOATS else _FLOAT
    names = ("rows", "columns", "index", "image", "wide", "lines", "turned", "bins", "region")
    rows, columns, index, image, full, lines, turned, bins, region = map(g.unique_name, names)
    nodes = [
        make_node("Gather", [node.input[0], index], [image], axis=0),
        make_node("Cast", [image], [full], to=wide),
        make_node("MatMul", [rows, full], [lines]),
        make_node("Transpose", [columns], [turned], perm=[1, 0]),
        make_node("MatMul", [lines, turned], [bins]),
        make_node("Cast", [bins], [region], to=kind),
    ]
    inputs = [make_tensor_value_info(n, wide, [None, None]) for n in (rows, columns)]
    inputs.append(make_tensor_value_info(index, TensorProto.INT64, []))
    height = g.get_attribute_with_default(node, "output_height", 1)
    width = g.get_attribute_with_default(node, "output_width", 1)
    shape = g.shape_or_none(node.input[0])
    output = make_tensor_value_info(region, kind, [shape[1] if shape else None, height, width])
    return make_graph(nodes, "region", inputs, [output])
