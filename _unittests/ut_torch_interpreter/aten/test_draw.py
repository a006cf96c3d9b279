"""Random choices and permutations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, run_ort

from torch_interpreter import to_onnx


def drawn(fct: Any, x: torch.Tensor, other: torch.Tensor | None = None) -> np.ndarray:
    """The values a model with a dynamic dimension draws."""
    onx = to_onnx(Fct1(fct), (x,), dynamic_shapes=({0: "a"},))
    return run_ort(onx, [x if other is None else other])[0]


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial(replacement: bool) -> None:
    x = torch.tensor([[1.0, 0.0, 3.0], [5.0, 5.0, 0.0]]).repeat(2000, 1)
    found = drawn(lambda x: torch.multinomial(x, 2, replacement), x[:10], x)
    assert found.shape == (4000, 2) and found.dtype == np.int64
    assert set(found[::2].ravel()) == {0, 2} and set(found[1::2].ravel()) == {0, 1}
    # the standard deviation of these frequencies is close to 0.01
    assert abs((found[::2, 0] == 2).mean() - 0.75) < 0.05
    assert abs((found[1::2, 0] == 0).mean() - 0.5) < 0.05
    if not replacement:
        assert (found[:, 0] != found[:, 1]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_multinomial_of_a_vector(dtype: torch.dtype) -> None:
    found = drawn(lambda x: torch.multinomial(x, 3), torch.ones(5, dtype=dtype))
    assert found.shape == (3,) and len(set(found)) == 3


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32])
def test_randperm(dtype: torch.dtype) -> None:
    x = torch.zeros(100)
    for n in (100, 1, 0):
        found = drawn(lambda x: torch.randperm(x.shape[0], dtype=dtype), x, x[:n])
        assert torch.from_numpy(found).dtype == dtype
        assert sorted(found) == list(range(n))
    found = drawn(lambda x: torch.randperm(100) + x.sum().long(), x)
    assert sorted(found) == list(range(100)) and list(found) != list(range(100))


def test_normal() -> None:
    x = torch.zeros(4000, 3)
    found = drawn(lambda x: x.clone().normal_(2.0, 3.0), x[:7], x)
    assert found.shape == (4000, 3)
    assert abs(found.mean() - 2) < 0.2 and abs(found.std() - 3) < 0.2


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_bernoulli(dtype: torch.dtype) -> None:
    x = torch.zeros(4000, 2, dtype=dtype)
    p = torch.tensor([0.25, 1.0])
    found = drawn(lambda x: torch.empty_like(x).bernoulli_(0.25), x[:10], x)
    assert torch.from_numpy(found).dtype == dtype and set(found.ravel()) == {0, 1}
    assert abs(found.mean() - 0.25) < 0.05
    halves = drawn(lambda x: torch.empty_like(x).bernoulli_(), x[:10], x)
    assert abs(halves.mean() - 0.5) < 0.05
    found = drawn(lambda x: torch.empty_like(x).bernoulli_(p), x[:10], x)
    assert abs(found[:, 0].mean() - 0.25) < 0.05 and (found[:, 1] == 1).all()
    for p01 in (0.0, 1.0):
        assert (drawn(lambda x, p=p01: torch.bernoulli(x, p), x.float()) == p01).all()


def test_normal_in_place() -> None:
    x = torch.zeros(4000, 2)
    found = drawn(lambda x: x.clone().normal_(3, 2), x[:10], x)
    assert found.shape == x.shape and abs(found.mean() - 3) < 0.2 and abs(found.std() - 2) < 0.2
    assert (drawn(lambda x: x.clone().normal_(3, 0.0), x[:10], x) == 3).all()
