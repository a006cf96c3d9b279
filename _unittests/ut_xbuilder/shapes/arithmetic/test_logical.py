"""Comparisons and logic give booleans; contents are in test_values."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer

from xbuilder.facts.facts import ResultFacts

SIZES = [{"a": 2, "b": 3}, {"a": 4, "b": 1}]


@pytest.mark.parametrize(
    "op_type", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor"]
)
def test_binary(op_type: str) -> None:
    """Booleans, broadcast."""
    dtype = np.bool_ if op_type in ("And", "Or", "Xor") else np.float32
    inputs = [In(("a", 1), dtype), In(("b",), dtype)]
    facts = check_runs(op_type, inputs, SIZES, [("a", "b")])
    assert facts[0].type == 9


@pytest.mark.parametrize("op_type", ["Not", "IsNaN", "IsInf"])
def test_unary(op_type: str) -> None:
    """Booleans of the same shape."""
    inputs = [In(("a", "b"), np.bool_ if op_type == "Not" else np.float32)]
    check_runs(op_type, inputs, SIZES, [("a", "b")])
    assert infer(op_type, [ResultFacts(0, None, 2)])[0] == ResultFacts(9, None, 2)
