"""Histograms."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

torch.manual_seed(0)
# values that are edges, beyond the edges, and only one of them
VALUES = [torch.randn(4, 5), torch.randn(7, 3), torch.arange(12.0).reshape(4, 3) / 2]
SHAPES = ({0: "a", 1: "b"},)
CALLS = {
    "range of the values": lambda x: torch.histogram(x, 6),
    "given range": lambda x: torch.histogram(x, 5, range=(-1.0, 2.0)),
    "empty range": lambda x: torch.histogram(x, 3, range=(1.0, 1.0)),
    "edges": lambda x: torch.histogram(x, torch.tensor([-1.0, 0.0, 0.5, 4.0]).to(x.dtype)),
    "density": lambda x: torch.histogram(x, torch.tensor([-1.0, 0.0, 0.5, 4.0]), density=True),
    "weights": lambda x: torch.histogram(x, 4, weight=x.abs() + 1),
    "weights and density": lambda x: torch.histogram(x, 4, weight=x.abs() + 1, density=True),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_values(name):
    check_export(CALLS[name], (VALUES[0],), SHAPES, [(v,) for v in VALUES[1:]])


@pytest.mark.parametrize("name", ["range of the values", "edges", "weights"])
def test_none_one_and_doubles(name):
    check_export(CALLS[name], (torch.ones(1, 1),), others=[(torch.zeros(1, 1),)])
    check_export(CALLS[name], (torch.randn(2, 3),), SHAPES, [(torch.ones(0, 3),)])
    check_export(CALLS[name], (VALUES[0].double(),), atol=1e-12)


POINTS = {
    "numbers": lambda x: torch.histogramdd(x, [2, 3], range=[-1.0, 1.0, -2.0, 2.0]),
    "weights": lambda x: torch.histogramdd(x, [4, 2], weight=x[:, 0].abs()),
    "density": lambda x: torch.histogramdd(x, [4, 2], density=True),
    "edges": lambda x: torch.histogramdd(
        x, [torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([-2.0, 0.0, 0.5, 3.0])]
    ),
}


@pytest.mark.parametrize("name", sorted(POINTS))
def test_points(name):
    def model(x):
        found = POINTS[name](x)
        return [found.hist, *found.bin_edges]

    check_export(model, (torch.randn(9, 2),), ({0: "n"},), [(torch.randn(15, 2),)])


def test_one_number_of_intervals():
    """torch reads the number of points."""
    check_export(lambda x: torch.histogramdd(x, 3).hist, (torch.randn(9, 2),))
