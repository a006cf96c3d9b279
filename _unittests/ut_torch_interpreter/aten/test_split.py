"""Cutting a tensor into pieces."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

X = torch.arange(42, dtype=torch.float32).reshape(6, 7)
Y = torch.arange(84, dtype=torch.float32).reshape(12, 7)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_split(size, dim):
    check_export(lambda x: torch.split(x, size, dim=dim), (X,))
    check_export(lambda x: torch.split(x, size, dim=1), (X,), ({0: "a"},), [(Y,)])


def test_split_sizes():
    check_export(lambda x: torch.split(x, [1, 4, 2], dim=1), (X,), ({0: "a"},), [(Y,)])
    check_export(lambda x: torch.split(x, [3, 0, 3]), (X,))
    check_export(lambda x: torch.split(x, [6]), (X,))


@pytest.mark.parametrize("chunks", [1, 2, 3, 4, 9])
def test_chunk(chunks):
    check_export(lambda x: torch.chunk(x, chunks, dim=1), (X,), ({0: "a"},), [(Y,)])
    check_export(lambda x: torch.chunk(x, chunks), (X,))


def test_tensor_split():
    check_export(lambda x: torch.tensor_split(x, 3, dim=1), (X,), ({0: "a"},), [(Y,)])
    check_export(lambda x: torch.tensor_split(x, (1, 3), dim=1), (X,))
    check_export(lambda x: torch.tensor_split(x, (2, 5)), (X,))


def test_unbind():
    check_export(lambda x: torch.unbind(x, dim=1), (X,), ({0: "a"},), [(Y,)])
    check_export(lambda x: torch.unbind(x), (X,))


def test_one_piece_is_used():
    check_export(lambda x: torch.split(x, 2, dim=1)[1] + 1, (X,))


def test_dynamic_axis():
    def model(x):
        a, b = torch.split(x, [2, x.shape[0] - 2])
        return a + 1, b * 2

    check_export(model, (X,), ({0: "a"},), [(Y,)])


@pytest.mark.parametrize("sections", [1, 2, 3, 5])
def test_tensor_split_of_a_dynamic_dimension(sections):
    others = [(torch.randn(2, n),) for n in (5, 6, 9, 11)]
    check_export(
        lambda x: torch.tensor_split(x, sections, 1), (torch.randn(2, 7),), ({1: "n"},), others
    )


@pytest.mark.parametrize("n", [0, 1, 2])
def test_differences(n):
    onx = check_export(lambda x: x.diff(n, dim=1), (X,), ({0: "a"},), [(Y,)])
    assert len(onx.graph.node) == max(3 * n, 1)
    check_export(lambda x: x.long().diff(n, dim=0, prepend=x[:1].long()), (X,), ({0: "a"},), [(Y,)])


def test_differences_of_booleans_between_two_tensors():
    def model(x):
        return (x > 9).diff(dim=0, prepend=x[:2] > 1, append=x[:0] > 2)

    check_export(model, (X,), ({0: "a"},), [(Y,), (X[:1],)])
