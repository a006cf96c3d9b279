"""Deformable convolution, with the schema of torchvision: it has no build for every torch."""

from __future__ import annotations

import math

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter import ConversionError, to_onnx


def _pixel(image: torch.Tensor, y: float, x: float) -> torch.Tensor:
    """Bilinear interpolation, 0 outside the image."""
    found = torch.zeros(image.shape[0], dtype=image.dtype)
    for i in (math.floor(y), math.floor(y) + 1):
        for j in (math.floor(x), math.floor(x) + 1):
            if 0 <= i < image.shape[1] and 0 <= j < image.shape[2]:
                found += image[:, i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return found


def _deform_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor,
    bias: torch.Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> torch.Tensor:
    rows, columns = weight.shape[2:]
    batch, _, height, width = offset.shape
    moves = offset.reshape(batch, offset_groups, rows, columns, 2, height, width)
    read = input.new_zeros(batch, input.shape[1], rows, columns, height, width)
    own = input.shape[1] // offset_groups
    for b, group, r, c, i, j in torch.cartesian_prod(
        *(torch.arange(n) for n in (batch, offset_groups, rows, columns, height, width))
    ).tolist():
        dy, dx = moves[b, group, r, c, :, i, j].tolist()
        part = slice(group * own, (group + 1) * own)
        y = i * stride_h - pad_h + r * dilation_h + dy
        x = j * stride_w - pad_w + c * dilation_w + dx
        read[b, part, r, c, i, j] = _pixel(input[b, part], y, x)
        if use_mask:
            place = (group * rows + r) * columns + c
            read[b, part, r, c, i, j] *= mask[b, place, i, j]
    split = read.reshape(batch, groups, -1, height, width)
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)
    found = torch.einsum("bgkij,gok->bgoij", split, kernels).flatten(1, 2)
    return found + bias.reshape(-1, 1, 1)


def _shaped(input, weight, offset, *args):
    return input.new_empty((offset.shape[0], weight.shape[0], *offset.shape[2:]))


@pytest.fixture(scope="module")
def operator():
    """The operator of torchvision, the one of this file when it is not there."""
    if not hasattr(torch.ops.torchvision, "deform_conv2d"):
        name = "torchvision::deform_conv2d"
        torch.library.custom_op(name, _deform_conv2d, mutates_args=()).register_fake(_shaped)
    return torch.ops.torchvision.deform_conv2d


class Deformed(torch.nn.Module):
    """A kernel of 3 x 2, a stride, a padding and a dilation that differ along the axes."""

    def __init__(self, operator, groups: int):
        super().__init__()
        self.operator, self.groups = operator, groups
        self.weight = torch.nn.Parameter(torch.randn(6, 4 // groups, 3, 2))
        self.bias = torch.nn.Parameter(torch.randn(6))

    def forward(self, x, offset, mask=None):
        given = x.new_zeros((x.shape[0], 1)) if mask is None else mask
        moved = offset.shape[1] // 12
        steps = (1, 2, 1, 2, 2, 1, self.groups, moved, mask is not None)
        return self.operator(x, self.weight, offset, given, self.bias, *steps)


def _arguments(batch, moved, masked, height=4, width=5):
    torch.manual_seed(batch)
    sizes = (batch, height - 2, (width + 4 - 2) // 2 + 1)
    x, offset = torch.randn(batch, 4, height, width), torch.randn(sizes[0], 12 * moved, *sizes[1:])
    mask = (torch.rand(sizes[0], 6 * moved, *sizes[1:]),) if masked else ()
    return (x, offset * 3, *mask)


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize(("groups", "moved", "masked"), [(1, 1, False), (2, 2, True), (1, 2, True)])
def test_points_are_moved(operator, opset, groups, moved, masked):
    args = _arguments(2, moved, masked)
    any_size = {0: "batch", 2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
    onx = check_export(
        Deformed(operator, groups),
        args,
        (any_size,) * len(args),
        [_arguments(1, moved, masked), _arguments(3, moved, masked, 6, 7)],
        target_opset=opset,
    )
    assert ("DeformConv" in op_types(onx)) == (opset == 20)


def test_before_grids(operator):
    with pytest.raises(ConversionError, match="target_opset=16"):
        to_onnx(Deformed(operator, 1), _arguments(2, 1, False), target_opset=15)
