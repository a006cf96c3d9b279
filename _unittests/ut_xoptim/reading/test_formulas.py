"""Constants of any precision, products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.reading.formulas import (
    is_number,
    only_inner_uses,
    other_input,
    product,
    product_of,
    reader,
    same_numbers,
    scalar_constant,
)
from xoptim.reading.movement import known_rank, producer
from xoptim.testing import model_from_text

SLOPE = 0.7978845608028654
BFLOAT16_SLOPE = 0.796875


@pytest.mark.parametrize(
    ("dtype", "found"),
    [
        (np.float64, SLOPE),
        (np.float64, 0.7978845608),
        (np.float64, float(np.float32(SLOPE))),
        (np.float64, float(np.float16(SLOPE))),
        (np.float32, SLOPE),
        (np.float32, 0.79788456),
        (np.float32, float(np.float16(SLOPE))),
        (np.float32, BFLOAT16_SLOPE),
        (np.float16, SLOPE),
    ],
)
def test_same_numbers(dtype: Any, found: float) -> None:
    assert same_numbers(np.array(found, dtype=dtype), SLOPE)


@pytest.mark.parametrize(
    ("dtype", "found"),
    [
        (np.float64, 0.79788),
        (np.float32, 0.79788),
        (np.float32, 0.7979),
        (np.float16, 0.8),
        (np.float32, -SLOPE),
        (np.float32, 0),
        (np.float32, np.nan),
        (np.float32, np.inf),
    ],
)
def test_other_numbers(dtype: Any, found: float) -> None:
    assert not same_numbers(np.array(found, dtype=dtype), SLOPE)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, 2.0, 3.0, -1.0])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_short_numbers_must_be_equal(dtype: Any, value: float) -> None:
    assert same_numbers(np.array(value, dtype=dtype), value)
    near = np.nextafter(np.array(value, dtype=dtype), np.array(10, dtype=dtype))
    assert not same_numbers(near, value)


def test_arrays_nan_and_shapes() -> None:
    assert same_numbers(np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf]))
    assert not same_numbers(np.array([1.0, np.nan]), np.array([np.nan, 1.0]))
    assert not same_numbers(np.array([1.0]), np.array([1.0, 1.0]))
    assert same_numbers(np.array(3), 3) and not same_numbers(np.array(3), 2)


@settings(deadline=None, max_examples=200)
@given(st.floats(1e-3, 1e3))
def test_rounding_to_any_type_is_accepted(value: float) -> None:
    for dtype in (np.float64, np.float32, np.float16):
        assert same_numbers(np.array(value).astype(dtype), value)


@settings(deadline=None, max_examples=200)
@given(st.floats(1e-3, 1e3), st.sampled_from([0.99, 1.01, -1.0]))
def test_a_percent_away_is_refused(value: float, factor: float) -> None:
    for dtype in (np.float64, np.float32, np.float16):
        assert not same_numbers(np.array(value * factor).astype(dtype), value)


def optimizer(body: str) -> Any:
    text = f"""agraph (float[a, 4] X, float[a, 4] Z, float U) => (float[a, 4] Y) <
        float two = {{2}}, float[1] one1 = {{1}}, float[1, 1, 1] deep = {{2}},
        float[4] w = {{1, 2, 3, 4}}> {{ {body} }}"""
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    return GraphBuilderPatternOptimization(builder, None)


def test_scalar_constant() -> None:
    g = optimizer("Y = Neg(X)")
    assert scalar_constant(g, "two", None) == 2 and scalar_constant(g, "two", 0) == 2
    assert scalar_constant(g, "one1", 1) == 1
    assert scalar_constant(g, "one1", 0) is None and scalar_constant(g, "one1", None) is None
    assert scalar_constant(g, "deep", 2) is None and scalar_constant(g, "deep", 3) == 2
    assert scalar_constant(g, "w", 2) is None and scalar_constant(g, "X", 2) is None
    assert is_number(g, "two", 2, 0) and not is_number(g, "two", 3, 0)
    assert known_rank(g, "X") == 2 and known_rank(g, "missing") is None


def test_neighbours() -> None:
    g = optimizer("n = Neg(X) m = Mul(n, Z) k = com.microsoft.Gelu(m) Y = Add(k, Z)")
    assert producer(g, "n", "Neg").output[0] == "n" and producer(g, "n", "Abs") is None
    assert producer(g, "X", "Neg") is None and producer(g, "k", "Gelu") is None
    assert reader(g, "n", "Mul").output[0] == "m" and reader(g, "n", "Add") is None
    assert reader(g, "Z", "Mul") is None and reader(g, "Y", "Mul") is None
    assert reader(g, "m", "Gelu") is None, "another domain"
    mul = g.node_before("m")
    assert other_input(mul, "n") == "Z" and other_input(mul, "Z") == "n"
    assert other_input(mul, "X") is None
    nodes = [g.node_before("n"), mul]
    assert only_inner_uses(g, nodes, mul) and not only_inner_uses(g, [mul, *nodes], nodes[0])


def test_product() -> None:
    g = optimizer("a = Mul(X, two) b = Div(Z, two) Y = Mul(a, b)")
    found = product(g, g.node_before("Y"))
    assert found.names == ["X", "Z"] and not found.divisors
    assert [(float(v), d) for v, d in found.scalars] == [(2, False), (2, True)]
    assert [n.output[0] for n in found.nodes] == ["b", "a", "Y"]
    assert not found.has_scalar(1), "two scalars"


def test_product_of_one_scalar() -> None:
    g = optimizer("a = Mul(X, Z) Y = Div(a, two)")
    found = product_of(g, "Y")
    assert found.names == ["X", "Z"] and found.has_scalar(0.5) and not found.has_scalar(2)
    assert found.keeps_shape(0) and found.keeps_shape(None)
    assert product_of(g, "X").nodes == []


def test_product_stops_at_other_uses() -> None:
    g = optimizer("a = Mul(X, two) b = Mul(a, Z) Y = Add(b, a)")
    found = product_of(g, "b")
    assert found.names == ["a", "Z"] and len(found.nodes) == 1


def test_product_and_divisions() -> None:
    g = optimizer("a = Div(X, Z) b = Mul(a, Z) Y = Div(two, b)")
    found = product_of(g, "Y")
    assert found.divisors == ["b"] and not found.has_scalar(2)
    assert product_of(g, "b").names == ["a", "Z"], "a division by a result is not a factor"


def test_product_is_bounded() -> None:
    g = optimizer(
        "r0 = Mul(X, Z) "
        + " ".join(f"r{i + 1} = Mul(r{i}, Z)" for i in range(30))
        + " Y = Neg(r30)"
    )
    assert len(product_of(g, "r30").nodes) <= 6


def test_shape_of_a_product() -> None:
    g = optimizer("a = Mul(U, one1) Y = Mul(X, deep)")
    assert not product_of(g, "a").keeps_shape(0) and product_of(g, "a").keeps_shape(1)
    assert not product_of(g, "Y").keeps_shape(2) and not product_of(g, "Y").keeps_shape(None)
