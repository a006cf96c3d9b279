"""Fused CUDA kernels: their shapes are those of what they replace."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xbuilder.shapes.shape_cases import infer

from xbuilder.facts.facts import ResultFacts
from xbuilder.operators.domains import CUDA_DOMAIN

CUDA: dict[str, Any] = {"domain": CUDA_DOMAIN, "opset": 1}
X, ROW = ResultFacts(1, ("a", 3)), ResultFacts(1, (3,))


@pytest.mark.parametrize("op_type", ["AddAdd", "AddMul", "MulAdd", "MulMul", "MulSub", "SubMul"])
def test_fused(op_type: str) -> None:
    """Three operands are broadcast."""
    assert infer(op_type, [ROW, X, ROW], **CUDA)[0] == X
    four = ResultFacts(1, ("a", 2, "b", 3))
    given = {"attributes": {"transposeMiddle": 1}, **CUDA}
    assert infer(op_type, [four, ROW, ROW], **given)[0].shape == ("a", "b", 2, 3)


def test_shared() -> None:
    """Two results."""
    assert infer("AddSharedInput", [ROW, X, ROW], 2, **CUDA) == [X, ROW]


@pytest.mark.parametrize("op_type", ["MulSigmoid", "NegXplus1", "ReplaceZero", "Rotary"])
def test_same_shape(op_type: str) -> None:
    """Like the first input."""
    assert infer(op_type, [X], **CUDA)[0] == X


def test_shapes_as_contents() -> None:
    """The shape is the first input."""
    shape = ResultFacts(7, (2,), None, ("a", 3))
    assert infer("ScatterNDOfShape", [shape, ResultFacts(7), X], **CUDA)[0] == X
    assert infer("TriMatrix", [shape, ResultFacts(1)], **CUDA)[0] == X


@pytest.mark.parametrize(("suffix", "elem_type"), [("FP16", 10), ("FP32", 1)])
def test_transpose_cast(suffix: str, elem_type: int) -> None:
    """A transposed matrix."""
    found = infer(f"Transpose2DCast{suffix}", [X], **CUDA)[0]
    assert found == ResultFacts(elem_type, (3, "a"))
