"""Reductions of segments."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

REDUCTIONS = ("sum", "mean", "max", "min", "prod")
torch.manual_seed(0)


@pytest.mark.parametrize("initial", [None, 1.5])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_lengths(reduce, initial):
    """One of the segments is empty."""

    def model(x, lengths):
        return torch.segment_reduce(x, reduce, lengths=lengths, axis=0, initial=initial)

    others = [
        (torch.randn(3, 4), torch.tensor([3])),
        (torch.randn(0, 4), torch.tensor([0, 0])),
    ]
    args = (torch.randn(6, 3), torch.tensor([2, 0, 1, 3]))
    check_export(model, args, ({0: "n", 1: "c"}, {0: "s"}), others)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_offsets(reduce):
    def model(x, offsets):
        return torch.segment_reduce(x, reduce, offsets=offsets, axis=0)

    args = (torch.randn(6), torch.tensor([0, 2, 2, 6]))
    check_export(model, args, ({0: "n"}, {0: "s"}), [(torch.randn(5), torch.tensor([0, 5]))])


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_lengths_of_each_row(reduce):
    def model(x, lengths):
        return torch.segment_reduce(x, reduce, lengths=lengths, axis=1)

    args = (torch.randn(2, 5, 3, dtype=torch.float64), torch.tensor([[2, 3, 0], [1, 1, 3]]))
    check_export(model, args, ({0: "b", 1: "n"}, {0: "b", 1: "s"}), atol=1e-12)
