"""Sequences of different lengths."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from ut_torch_interpreter.export_checks import check_export, op_types

ARGS = (torch.randn(3, 2), torch.randn(5, 2), torch.randn(4, 2))
OTHERS = [tuple(torch.randn(n, 2) for n in sizes) for sizes in ((6, 2, 3), (2, 2, 9), (2, 2, 2))]
DYNAMIC = tuple({0: torch.export.Dim(name, max=64)} for name in "abc")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_dynamic_lengths(batch_first, side):
    def model(x, y, z):
        return pad_sequence([x, y, z], batch_first, padding_value=-1.5, padding_side=side)

    check_export(model, ARGS, DYNAMIC, OTHERS)


def test_vectors():
    others = [(torch.randn(6), torch.randn(2)), (torch.randn(2), torch.randn(2))]
    args = (torch.randn(3), torch.randn(5))
    check_export(lambda x, y: pad_sequence([x, y]), args, ({0: "a"}, {0: "b"}), others)


def test_known_lengths():
    onx = check_export(lambda x, y, z: pad_sequence([x, y, z], batch_first=True), ARGS)
    assert "Max" not in op_types(onx)
