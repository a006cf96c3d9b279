"""Operators of torchvision on boxes."""

from __future__ import annotations

import numpy as np

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import int_vector
from .operands import FLOAT, INT64, cast, const


@aten("torchvision.nms.default")
def nms(g: GraphWriter, dets: str, scores: str, iou_threshold: float) -> str:
    """The boxes that no better one overlaps, the highest score first.

    ONNX takes any two opposite corners, whatever the order of the coordinates.
    """
    boxes = g.op.UnsqueezeAnyOpset(cast(g, dets, FLOAT), int_vector([0]))
    rated = g.op.UnsqueezeAnyOpset(cast(g, scores, FLOAT), int_vector([0, 1]))
    limit = np.array([iou_threshold], dtype=np.float32)
    kept = g.op.NonMaxSuppression(boxes, rated, g.op.Shape(scores), limit)
    return g.op.Gather(kept, const(2, INT64), axis=1)


@aten("torchvision.roi_align.default")
def roi_align(
    g: GraphWriter,
    x: str,
    rois: str,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> str:
    """The mean of points of each box; the first column of the boxes is their image."""
    if g.main_opset < 16 and aligned:
        raise ValueError("roi_align(aligned=True) needs target_opset=16")
    bounds = (int_vector([v]) for v in (1, 5, 1))
    images = cast(g, g.op.Gather(rois, const(0, INT64), axis=1), INT64)
    mode = "half_pixel" if aligned else "output_half_pixel"
    return g.op.RoiAlign(
        x,
        g.op.Slice(rois, *bounds),
        images,
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
        **({"coordinate_transformation_mode": mode} if g.main_opset >= 16 else {}),
    )


@aten("torchvision.roi_pool.default")
def roi_pool(
    g: GraphWriter,
    x: str,
    rois: str,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> list[str | None]:
    """The highest values of each part of a box; their positions are not computed."""
    shape = [pooled_height, pooled_width]
    return [g.op.MaxRoiPool(x, rois, pooled_shape=shape, spatial_scale=spatial_scale), None]
