"""Operators of torchvision, with the same schemas: it has no build for every torch."""

from __future__ import annotations

import math

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct2, check_export, op_types

from torch_interpreter import ConversionError, to_onnx


def _overlap(a, b):
    low, high = torch.maximum(a[:2], b[:2]), torch.minimum(a[2:], b[2:])
    common = (high - low).clamp(min=0).prod()
    return common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common)


def _nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    kept: list[int] = []
    for i in scores.argsort(descending=True).tolist():
        if all(_overlap(dets[i], dets[j]) <= iou_threshold for j in kept):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _pixel(image, y, x):
    """Bilinear interpolation: 0 beyond one pixel around the image."""
    height, width = image.shape[-2:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return torch.zeros(image.shape[0])
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - top, x - left
    above = image[:, top, left] * (1 - dx) + image[:, top, right] * dx
    below = image[:, bottom, left] * (1 - dx) + image[:, bottom, right] * dx
    return above * (1 - dy) + below * dy


def _roi_align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    found = torch.zeros(rois.shape[0], input.shape[1], pooled_height, pooled_width)
    for n, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (c * spatial_scale - 0.5 * aligned for c in corners)
        width, height = x2 - x1, y2 - y1
        if not aligned:
            width, height = max(width, 1.0), max(height, 1.0)
        h, w = height / pooled_height, width / pooled_width
        rows, columns = (sampling_ratio if sampling_ratio > 0 else math.ceil(v) for v in (h, w))
        for i in range(pooled_height):
            for j in range(pooled_width):
                points = [
                    _pixel(
                        input[int(image)],
                        y1 + (i + (r + 0.5) / rows) * h,
                        x1 + (j + (c + 0.5) / columns) * w,
                    )
                    for r in range(rows)
                    for c in range(columns)
                ]
                found[n, :, i, j] = torch.stack(points).mean(0)
    return found


def _roi_pool(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    found = torch.zeros(rois.shape[0], input.shape[1], pooled_height, pooled_width)
    for n, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (math.floor(c * spatial_scale + 0.5) for c in corners)
        h, w = max(y2 - y1 + 1, 1) / pooled_height, max(x2 - x1 + 1, 1) / pooled_width
        for i in range(pooled_height):
            for j in range(pooled_width):
                rows = slice(max(math.floor(i * h) + y1, 0), max(math.ceil((i + 1) * h) + y1, 0))
                columns = slice(max(math.floor(j * w) + x1, 0), max(math.ceil((j + 1) * w) + x1, 0))
                part = input[int(image), :, rows, columns].flatten(1)
                if part.shape[1]:
                    found[n, :, i, j] = part.amax(1)
    return found, torch.zeros_like(found, dtype=torch.int32)


def _highest(input, rois, spatial_scale, pooled_height, pooled_width):
    values = input.new_empty((rois.shape[0], input.shape[1], pooled_height, pooled_width))
    return values, torch.empty_like(values, dtype=torch.int32)


def _kept(dets, scores, iou_threshold):
    size = torch.library.get_ctx().new_dynamic_size()
    return dets.new_empty(size, dtype=torch.int64)


def _pooled(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    return input.new_empty((rois.shape[0], input.shape[1], pooled_height, pooled_width))


@pytest.fixture(scope="module")
def operators():
    """The operators of torchvision, those of this file when it is not there."""
    if not hasattr(torch.ops.torchvision, "nms"):
        nms = torch.library.custom_op("torchvision::nms", _nms, mutates_args=())
        nms.register_fake(_kept)
        align = torch.library.custom_op("torchvision::roi_align", _roi_align, mutates_args=())
        align.register_fake(_pooled)
        pool = torch.library.custom_op("torchvision::roi_pool", _roi_pool, mutates_args=())
        pool.register_fake(_highest)
    return torch.ops.torchvision


def _boxes(n):
    torch.manual_seed(n)
    corners = torch.rand(n, 2) * 20
    return torch.cat([corners, corners + torch.rand(n, 2) * 20 + 1], dim=1), torch.rand(n)


@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_boxes_that_do_not_overlap(operators, threshold):
    def model(boxes, scores):
        return operators.nms(boxes, scores, threshold)

    shapes = ({0: "n"}, {0: "n"})
    onx = check_export(model, _boxes(10), shapes, [_boxes(30), _boxes(2)])
    assert "NonMaxSuppression" in op_types(onx)


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [2, -1])
def test_means_of_boxes(operators, aligned, ratio):
    x = torch.randn(2, 3, 24, 20)
    rois = torch.cat([torch.tensor([[0.0], [1], [0], [1]]), _boxes(4)[0]], dim=1)

    def model(x, rois):
        return operators.roi_align(x, rois, 0.5, 3, 2, ratio, aligned)

    check_export(model, (x, rois), ({}, {0: "n"}), [(x, rois[:1]), (x, rois[[1, 0, 3, 2, 0]])])


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_highest_values_of_boxes(operators, scale):
    x = torch.randn(2, 3, 24, 20)
    rois = torch.cat([torch.tensor([[0.0], [1], [0], [1]]), _boxes(4)[0]], dim=1)
    rois[3, 1:] = torch.tensor([30.0, 30.0, 60.0, 60.0])  # outside

    def model(x, rois):
        return operators.roi_pool(x, rois, scale, 3, 2)[0]

    onx = check_export(model, (x, rois), ({}, {0: "n"}), [(x, rois[:1]), (x, rois[[1, 0, 3, 2]])])
    assert op_types(onx) == ["MaxRoiPool"]


def test_opset_without_alignment(operators):
    x = torch.randn(1, 3, 8, 8)
    with pytest.raises(ConversionError, match="target_opset=16"):
        fct = Fct2(lambda x, rois: operators.roi_align(x, rois, 1.0, 2, 2, 2, True))
        to_onnx(fct, (x, torch.tensor([[0.0, 1, 1, 5, 5]])), target_opset=15)
