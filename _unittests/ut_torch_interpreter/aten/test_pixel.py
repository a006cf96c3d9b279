"""Blocks of pixels moved to channels and back."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

IMAGE = torch.arange(2 * 8 * 4 * 6).reshape(2, 8, 4, 6)
DYNAMIC = {0: "a", 2: "h", 3: "w"}


def shuffle(x):
    return torch.pixel_shuffle(x, 2)


def unshuffle(x):
    return torch.pixel_unshuffle(x, 2)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.bool]
)
def test_types(dtype):
    x = IMAGE.to(dtype)
    onx = check_export(shuffle, (x,), ({0: "a"},), [(x[:1],)])
    assert ("DepthToSpace" in op_types(onx)) is dtype.is_floating_point
    check_export(unshuffle, (x,), ({0: "a"},), [(x[:1],)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("function", [shuffle, unshuffle])
def test_dynamic_sizes(function, dtype):
    x = IMAGE.to(dtype)
    check_export(function, (x,), (DYNAMIC,), [(x[:1, :, :2, :4],)])


@pytest.mark.parametrize("function", [shuffle, unshuffle])
@pytest.mark.parametrize("rank", [3, 5])
def test_other_ranks(function, rank):
    x = IMAGE.float()[0] if rank == 3 else IMAGE.float()[None]
    check_export(function, (x,), ({rank - 2: "h", rank - 1: "w"},), [(x[..., :2, :2],)])
