"""Fractional max pooling, with the numbers that place the windows."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

F = torch.nn.functional
torch.manual_seed(0)


@pytest.mark.parametrize("count", [(3, 2), (1, 4)])
def test_planes(count):
    def model(x, samples):
        return torch.ops.aten.fractional_max_pool2d(x, [2, 3], list(count), samples)

    def arguments(batch, height, width):
        return torch.randn(batch, 3, height, width), torch.rand(batch, 3, 2)

    shapes = ({0: "batch", 2: "height", 3: "width"}, {0: "batch"})
    others = [arguments(1, 6, 11), arguments(3, 12, 7)]
    missing = arguments(2, 7, 8)
    missing[0][:, :, 2:4, 3] = torch.nan
    infinite = (torch.full((1, 3, 6, 6), -torch.inf), torch.rand(1, 3, 2))
    check_export(model, arguments(2, 7, 8), shapes, [*others, missing, infinite])


def test_volumes():
    """torch reads the sizes of a volume."""

    def model(x, samples):
        return F.fractional_max_pool3d_with_indices(x, 2, (3, 2, 4), _random_samples=samples)

    samples = torch.rand(2, 2, 3, dtype=torch.float64)
    check_export(model, (torch.randn(2, 2, 5, 6, 7, dtype=torch.float64), samples))


def test_without_batch():
    def model(x, samples):
        return torch.ops.aten.fractional_max_pool2d(x, [2, 2], [4, 3], samples)

    check_export(model, (torch.randn(3, 8, 6), torch.rand(1, 3, 2)))
