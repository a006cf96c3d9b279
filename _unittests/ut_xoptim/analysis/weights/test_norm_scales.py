"""Products of scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.analysis.weights.norm_scales import is_all_ones, multiplied
from xoptim.testing import model_from_text, optimizer_of


def test_ones_are_neutral(g: Any) -> None:
    for a, b, expected in (("one", "X", "X"), ("X", "one", "X"), ("one", "one", "one")):
        assert multiplied(g, a, b) == expected


def test_product_of_constants(g: Any) -> None:
    value = multiplied(g, "a", "b")
    assert isinstance(value, np.ndarray)
    assert value.tolist() == [10, 21] and value.dtype == np.float32


def test_refused_products(g: Any) -> None:
    assert multiplied(g, "a", "X") is multiplied(g, "X", "Y") is None
    assert multiplied(g, "big", "b") is None, "infinity"


def test_a_scalar(g: Any) -> None:
    """The product has the shape of the first one."""
    text = """agraph (float[2] X) => (float[2] Y) <
        float[2] a = {2, 3}, float[2] one = {1, 1}, float c = {5}, float[1, 1] d = {7}> {
        Y = Neg(X) }"""
    queries = GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), None)
    for a, b, expected in (("a", "c", [10, 15]), ("a", "d", [14, 21]), ("one", "c", [5, 5])):
        value = multiplied(queries, a, b)
        assert isinstance(value, np.ndarray)
        assert value.tolist() == expected


def test_ones_that_are_expanded() -> None:
    text = """agraph (float[a] X) => (float[a] Y) <float one = {1}, float two = {2}> {
        s = Shape(X) u = Expand(one, s) v = Expand(two, s) w = Add(u, v) Y = Add(w, X) }"""
    queries = optimizer_of(text)
    assert [is_all_ones(queries, n) for n in ("one", "u", "v", "w", "X")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert multiplied(queries, "u", "X") == "X"
