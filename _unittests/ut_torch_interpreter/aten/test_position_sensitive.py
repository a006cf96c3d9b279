"""Position-sensitive poolings, with the schemas of torchvision: it has no build for every torch."""

from __future__ import annotations

import math

import pytest
import torch
from ut_torch_interpreter.aten.test_boxes import _pixel
from ut_torch_interpreter.export_checks import Fct2, check_export

from torch_interpreter import ConversionError, to_onnx


def _part_mean(rows, columns, corners, sizes, image, sampling):
    """The mean of the points of a part, nan if it has none."""
    (y, x), (h, w) = corners, sizes
    down, across = (sampling if sampling > 0 else math.ceil(v) for v in (h, w))
    if down * across == 0:
        return torch.tensor(math.nan)
    points = [
        _pixel(image, y + (rows + (r + 0.5) / down) * h, x + (columns + (c + 0.5) / across) * w)
        for r in range(down)
        for c in range(across)
    ]
    return torch.stack(points).mean() if points else torch.tensor(0.0)


def _align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    found, _ = _empty(input, rois, spatial_scale, pooled_height, pooled_width)
    for n, channel, i, j in _indices(found):
        image, *corners = rois[n].tolist()
        x1, y1, x2, y2 = (c * spatial_scale - 0.5 for c in corners)
        own = input[int(image), (channel * pooled_height + i) * pooled_width + j]
        sizes = ((y2 - y1) / pooled_height, (x2 - x1) / pooled_width)
        found[n, channel, i, j] = _part_mean(i, j, (y1, x1), sizes, own[None], sampling_ratio)
    return found, torch.zeros_like(found, dtype=torch.int32)


def _pool(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    found, _ = _empty(input, rois, spatial_scale, pooled_height, pooled_width)

    def part(i, first, last, count, size):
        step = max(last - first, 1) / count
        ends = (math.floor(i * step) + first, math.ceil((i + 1) * step) + first)
        return slice(*(min(max(end, 0), size - 1) for end in ends))

    for n, channel, i, j in _indices(found):
        image, *corners = rois[n].tolist()
        whole = [math.floor(abs(c * spatial_scale) + 0.5) * (1 if c > 0 else -1) for c in corners]
        rows = part(i, whole[1], whole[3], pooled_height, input.shape[2])
        columns = part(j, whole[0], whole[2], pooled_width, input.shape[3])
        own = input[int(image), (channel * pooled_height + i) * pooled_width + j]
        values = own[rows, columns]
        found[n, channel, i, j] = values.mean() if values.numel() else 0
    return found, torch.zeros_like(found, dtype=torch.int32)


def _indices(found):
    return torch.ones_like(found).nonzero().tolist()


def _empty(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio=None):
    channels = input.shape[1] // (pooled_height * pooled_width)
    values = input.new_empty((rois.shape[0], channels, pooled_height, pooled_width))
    return values, torch.empty_like(values, dtype=torch.int32)


@pytest.fixture(scope="module")
def operators():
    """The operators of torchvision, those of this file when it is not there."""
    for name, fct in (("ps_roi_align", _align), ("ps_roi_pool", _pool)):
        if not hasattr(torch.ops.torchvision, name):
            operator = torch.library.custom_op(f"torchvision::{name}", fct, mutates_args=())
            operator.register_fake(_empty)
    return torch.ops.torchvision


def _boxes(n):
    torch.manual_seed(n)
    corners = torch.rand(n, 2) * 10
    images = torch.arange(n).reshape(-1, 1) % 2
    return torch.cat([images, corners, corners + torch.rand(n, 2) * 10 + 1], dim=1)


# outside, partly outside, of no size, upside down
CORNERS = torch.tensor([[0, 30.0, 30, 60, 60], [1, -9, -5, 3, 4], [1, 5, 5, 5, 5], [0, 6, 6, 2, 2]])
SHAPES = ({0: "batch", 2: "height", 3: "width"}, {0: "n"})


def _others():
    x = torch.randn(2, 12, 9, 8)
    return (x, _boxes(3)), [(torch.randn(3, 12, 7, 11), _boxes(2)), (x, _boxes(0)), (x, CORNERS)]


@pytest.mark.parametrize("sampling", [2, -1])
def test_means_of_points_of_parts(operators, sampling):
    def model(x, rois):
        return operators.ps_roi_align(x, rois, 0.5, 3, 2, sampling)[0]

    args, others = _others()
    check_export(model, args, SHAPES, others)


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_means_of_parts(operators, scale):
    def model(x, rois):
        return operators.ps_roi_pool(x, rois, scale, 3, 2)[0]

    args, others = _others()
    check_export(model, args, SHAPES, others)


def test_unknown_channels(operators):
    fct = Fct2(lambda x, rois: operators.ps_roi_pool(x, rois, 1.0, 3, 2)[0])
    args, _ = _others()
    channels = {1: torch.export.Dim("groups", min=2) * 6}
    with pytest.raises(ConversionError, match="static number of channels"):
        to_onnx(fct, args, dynamic_shapes=(channels, {}))
