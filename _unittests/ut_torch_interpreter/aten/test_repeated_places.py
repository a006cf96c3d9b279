"""Reductions of values that may reach the same place."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

X, ROWS = torch.randn(4, 5, 6), torch.randn(3, 5, 6)
PUT = torch.ops.aten.index_put
SUMS = {
    "index_add": lambda x, i, s: x.index_add(0, i, s),
    "index_reduce": lambda x, i, s: x.index_reduce(0, i, s, "mean"),
    "index_put": lambda x, i, s: x.index_put((i,), s, accumulate=True),
    "inner": lambda x, i, s: PUT(x, [None, i], s[:1, :3], True),
    "two": lambda x, i, s: x.index_put((i, i), s[:, 0], accumulate=True),
    "three": lambda x, i, s: x.index_put((i, i - 2, i), s[:, 0, 0], accumulate=True),
    "apart": lambda x, i, s: PUT(x, [i, None, i], s[..., 0], True),
    "matrix": lambda x, i, s: x.index_put((i[:, None], i - 3), s[:, None, 0], accumulate=True),
    "one matrix": lambda x, i, s: x.index_put((i.expand(2, 3),), s, accumulate=True),
    "mask": lambda x, i, s: x.index_put((x > 0,), s[0, 0, 0], accumulate=True),
    "put": lambda x, i, s: x.put(i, s[:, 0, 0], accumulate=True),
    "bincount": lambda x, i, s: torch.bincount(i, s[:, 0, 0]),
    "embedding_bag": lambda x, i, s: torch.nn.functional.embedding_bag(
        i, x[:, 0], i.clamp(0, 0).cumsum(0), mode="sum"
    ),
}


@pytest.mark.parametrize("name", sorted(SUMS))
def test_repeated_places(name):
    """ScatterND of onnxruntime loses values of a large tensor, when rows meet."""
    index = torch.tensor([0, 3, 3])
    onx = check_export(SUMS[name], (X, index, ROWS), atol=1e-5)
    assert "ScatterND" not in op_types(onx)
    dims = ({0: "a", 1: "b"}, {0: "c"}, {0: "c", 1: "b"})
    if name not in ("one matrix", "inner"):
        others = [(torch.randn(5, 6, 6), torch.tensor([1, 1, 4, 2]), torch.randn(4, 6, 6))]
        check_export(SUMS[name], (X, index, ROWS), dims, others, atol=1e-5)


def test_no_place_in_an_empty_dimension():
    none = torch.zeros(0, dtype=torch.int64)
    values = torch.zeros(0, 6)
    check_export(SUMS["two"], (X[:, :0], none, torch.zeros(0, 5, 6)))
    fct = lambda x, i, v: PUT(x, [i, i], v, True)  # noqa: E731
    dims = ({0: "a", 1: "b"}, {0: "c"}, {0: "c"})
    check_export(fct, (X, torch.tensor([0, 3]), X[0, :2]), dims, [(X[:, :0], none, values)])
