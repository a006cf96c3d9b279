"""Bags of embeddings."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export

TABLE = torch.randn(5, 6)
INDICES = torch.tensor([0, 3, 3, 1, 4, 2, 0])
# the second bag is empty, so is the last one
OFFSETS = torch.tensor([0, 2, 2, 6, 7])
MODES = ["sum", "mean", "max"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [None, 3])
def test_offsets(mode, padding):
    def model(table, indices, offsets):
        return F.embedding_bag(indices, table, offsets, mode=mode, padding_idx=padding)

    others = [(TABLE, INDICES[:3], OFFSETS[:2]), (TABLE, INDICES, OFFSETS[:3])]
    check_export(model, (TABLE, INDICES, OFFSETS), (None, {0: "n"}, {0: "b"}), others)


def test_operators_are_not_decomposed(capsys):
    """Whatever the form of the operator, and for an index counted from the end."""

    def model(table, indices, offsets):
        plain = torch.embedding_bag(table, indices, offsets)[0]
        without = (False, 1, False, None, False, -2)
        return plain, torch.embedding_bag(table, indices, offsets, *without)[0]

    check_export(model, (TABLE, INDICES, OFFSETS), (None, {0: "n"}, {0: "b"}), verbose=1)
    assert "decomposed" not in capsys.readouterr().out


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_bags(mode):
    def model(table, indices):
        return F.embedding_bag(indices, table, mode=mode)

    check_export(model, (TABLE, INDICES[:6].reshape(2, 3)))


def test_weights_and_last_offset():
    def model(table, indices, offsets, weights):
        return F.embedding_bag(
            indices,
            table,
            offsets,
            mode="sum",
            per_sample_weights=weights,
            include_last_offset=True,
        )

    check_export(model, (TABLE, INDICES, OFFSETS, torch.rand(7)))


def test_module():
    bag = torch.nn.EmbeddingBag(5, 4, mode="mean", padding_idx=0)
    check_export(lambda i, o: bag(i, o), (INDICES.to(torch.int32), OFFSETS.to(torch.int32)))
