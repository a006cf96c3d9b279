"""Products of scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.reading.norm_scales import can_multiply, multiplied
from xoptim.testing import model_from_text


@pytest.fixture
def g() -> Any:
    text = """agraph (float[2] X) => (float[2] Y) <
        float[2] one = {1, 1}, float[2] a = {2, 3}, float[2] b = {5, 7}, float[2] big = {3e38, 1}> {
        Y = Neg(X) }"""
    return GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), None)


def test_ones_are_neutral(g: Any) -> None:
    for a, b, expected in (("one", "X", "X"), ("X", "one", "X"), ("one", "one", "one")):
        assert can_multiply(g, a, b) and multiplied(g, a, b) == expected


def test_product_of_constants(g: Any) -> None:
    assert can_multiply(g, "a", "b")
    value = g.get_computed_constant(multiplied(g, "a", "b"))
    assert value.tolist() == [10, 21] and value.dtype == np.float32


def test_refused_products(g: Any) -> None:
    assert not can_multiply(g, "a", "X") and not can_multiply(g, "X", "Y")
    assert not can_multiply(g, "big", "b"), "infinity"
