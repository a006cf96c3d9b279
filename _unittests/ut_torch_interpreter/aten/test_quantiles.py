"""Quantiles of one level."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

X = torch.randn(3, 7, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.75])
def test_every_interpolation(q: float, how: str) -> None:
    fct = lambda x: torch.quantile(x, q, 1, interpolation=how)  # noqa: E731
    with_nan = X.clone()
    with_nan[1, 2] = float("nan")
    found = check_export(fct, (X,), ({0: "a"},), [(X[:1],), (with_nan,)])
    assert len(op_types(found)) <= 10
    check_export(fct, (X,), ({0: "a", 1: "b"},), [(X[:2, :4],), (X[:1, :1],), (with_nan,)])


@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_dimensions(dim: int | None, keepdim: bool) -> None:
    fct = lambda x: torch.quantile(x, 0.4, dim, keepdim)  # noqa: E731
    check_export(fct, (X,))
    check_export(fct, (X.double(),), ({0: "a"},), [(X[:2].double(),)])
    check_export(fct, (X[0],), ({0: "a"},), [(X[0, :5],)])
    check_export(fct, (X[0, 0],))


@pytest.mark.parametrize("how", ["linear", "midpoint"])
@pytest.mark.parametrize("q", [0.25, 0.5])
def test_infinities_are_those_of_torch(q: float, how: str) -> None:
    inf = float("inf")
    rows = torch.tensor([[1, inf, inf, 2], [-inf, 2, -inf, 1], [inf] * 4, [-inf] * 4, [1, 2, 3, 4]])
    fct = lambda x: torch.quantile(x, q, 1, interpolation=how)  # noqa: E731
    check_export(fct, (X[:, :4],), ({0: "a"},), [(rows,)])
    check_export(fct, (X,), ({0: "a", 1: "b"},), [(rows,), (rows[:, :3],)])
