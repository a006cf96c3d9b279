"""Interpolation, padding, grids."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export

torch.manual_seed(0)
IMAGE = {1: torch.randn(2, 3, 8), 2: torch.randn(2, 3, 8, 6), 3: torch.randn(1, 3, 4, 6, 8)}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("scale", [2, 0.5, 1.5])
def test_nearest(n, scale):
    check_export(lambda x: F.interpolate(x, scale_factor=scale), (IMAGE[n],), ({0: "a"},))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("scale", [2, 0.5, 1.5])
def test_linear(n, align, scale):
    def model(x):
        return F.interpolate(x, scale_factor=scale, mode=LINEAR[n], align_corners=align)

    check_export(model, (IMAGE[n],), ({0: "a"},), atol=1e-4)


@pytest.mark.parametrize("align", [True, False])
def test_bicubic(align):
    def model(x):
        return F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=align)

    check_export(model, (IMAGE[2],), ({0: "a"},), atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_size(mode):
    check_export(lambda x: F.interpolate(x, size=(13, 5), mode=mode), (IMAGE[2],), atol=1e-4)
    check_export(
        lambda x, y: F.interpolate(x, size=y.shape[2:], mode=mode),
        (IMAGE[2], torch.randn(2, 3, 11, 9)),
        ({0: "a"}, {2: "h", 3: "w"}),
        [(IMAGE[2], torch.randn(2, 3, 5, 17))],
        atol=1e-4,
    )


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate"])
def test_pad(mode):
    check_export(lambda x: F.pad(x, (1, 2), mode=mode), (IMAGE[1],), ({0: "a"},))
    check_export(lambda x: F.pad(x, (1, 2, 3, 0), mode=mode), (IMAGE[2],), ({0: "a"},))


def test_constant_pad():
    check_export(lambda x: F.pad(x, (1, -2, 0, 3), value=2.5), (IMAGE[2],))
    check_export(lambda x: F.pad(x, (1, 1)), (torch.arange(6).reshape(2, 3),))
    check_export(lambda x: F.pad(x, (1, 1), value=True), (IMAGE[1] > 0,))
    check_export(lambda x: F.pad(x, (0, 0)) + 1, (IMAGE[1],))
    check_export(lambda x: F.pad(x, (0, x.shape[0])), (IMAGE[1],), ({0: "a"},), [(IMAGE[1][:1],)])


def test_circular_pad():
    check_export(lambda x: F.pad(x, (1, 2), mode="circular"), (IMAGE[1],), target_opset=19)
    check_export(lambda x: F.pad(x, (1, 2), mode="circular"), (IMAGE[1],))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("opset", [18, 20])
def test_grid_sample(mode, padding, opset):
    grid = torch.rand(2, 4, 5, 2) * 2.4 - 1.2

    def model(x, y):
        return F.grid_sample(x, y, mode=mode, padding_mode=padding, align_corners=True)

    check_export(model, (IMAGE[2], grid), target_opset=opset, atol=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 3), (4, 5), (12, 9)], ids=str)
def test_antialias(mode, size):
    check_export(lambda x: F.interpolate(x, size=size, mode=mode, antialias=True), (IMAGE[2],))


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("pad", [(-1, 1), (2, -1), (-1, -2), (-1, 2, 1, -1)], ids=str)
def test_circular_pad_with_negative_sizes(opset, pad):
    x = torch.randn(1, 2, 5, 6) if len(pad) == 4 else torch.randn(1, 2, 5)
    check_export(
        lambda x: F.pad(x, pad, mode="circular"), (x,), ({0: "a", 2: "b"},), target_opset=opset
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(4, 5), (14, 15), (1, 20)], ids=str)
def test_antialias_with_aligned_corners(mode, size):
    x = torch.rand(1, 2, 9, 11)
    check_export(
        lambda x: F.interpolate(x, size=size, mode=mode, align_corners=True, antialias=True),
        (x,),
        ({0: "a", 2: "h", 3: "w"},),
        [(torch.rand(2, 2, 6, 16),)],
        atol=1e-4,
    )
    check_export(
        lambda x: F.interpolate(x, size=size, mode=mode, align_corners=True, antialias=True),
        (x,),
        atol=1e-4,
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("scale", [2.0, (0.7, 0.5)])
@pytest.mark.parametrize("shapes", [None, ({2: "h", 3: "w"},)])
def test_antialias_with_aligned_corners_and_scales(mode, scale, shapes):
    def fct(x):
        return torch.nn.functional.interpolate(
            x, scale_factor=scale, mode=mode, align_corners=True, antialias=True
        )

    others = [(torch.rand(1, 2, 7, 5),)] if shapes else []
    check_export(fct, (torch.rand(1, 2, 6, 8),), shapes, others)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size, scale", [(100, 0.57), (10, 0.7), (50, 1.14)])
def test_sizes_are_rounded_as_torch_does(mode, size, scale):
    def fct(x):
        return torch.nn.functional.interpolate(x, scale_factor=(scale, 1.0), mode=mode)

    x = torch.rand(1, 1, size, 4)
    # a distance of one float32 between two scales is 100 times as much between two positions
    check_export(fct, (x,), atol=1e-4)
    check_export(fct, (x,), ({2: "h"},), [(torch.rand(1, 1, 13, 4),)], atol=1e-4)


@pytest.mark.parametrize("mode", ["replicate", "reflect"])
@pytest.mark.parametrize("pad", [(-4, 5), (3, -4), (2, -1), (-1, -2)])
def test_pad_that_removes_values(mode, pad):
    if mode == "reflect":
        pad = tuple(min(p, 3) for p in pad)
    x = torch.arange(24.0).reshape(2, 3, 4)
    check_export(lambda x: F.pad(x, pad, mode=mode), (x,), ({0: "a"},), [(x[:1],)])
