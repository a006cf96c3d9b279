"""Constants of any precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.analysis.small_graph import optimizer

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.analysis.constants import (
    int_values,
    is_filled_with,
    is_number,
    same_numbers,
    scalar_constant,
    scalar_index,
)
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


def test_scalar_constant() -> None:
    g = optimizer("Y = Neg(X)")
    assert scalar_constant(g, "two", None) == 2 and scalar_constant(g, "two", 0) == 2
    assert scalar_constant(g, "one1", 1) == 1
    assert scalar_constant(g, "one1", 0) is None and scalar_constant(g, "one1", None) is None
    assert scalar_constant(g, "deep", 2) is None and scalar_constant(g, "deep", 3) == 2
    assert scalar_constant(g, "w", 2) is None and scalar_constant(g, "X", 2) is None
    assert is_number(g, "two", 2, 0) and not is_number(g, "two", 3, 0)
    assert g.rank_or_none("X") == 2 and g.rank_or_none("missing") is None


def test_is_filled(g: Any) -> None:
    assert (
        is_filled_with(g, "one", 1)
        and not is_filled_with(g, "one", 0)
        and not is_filled_with(g, "a", 2)
    )
    assert not is_filled_with(g, "X", 1)


@pytest.mark.parametrize("is_known", [False, True])
def test_integers_that_are_proven(is_known: bool) -> None:
    """A difference of two sizes is 0 once they are known to be equal."""
    model = model_from_text("""g (float[a] x, float[b] z) => (float[c] y) {
        n = Shape(x) m = Shape(z) d = Sub(n, m) p = Concat <axis = 0> (d, d) y = Pad(x, p) }""")
    g = GraphBuilder(model)
    if is_known:
        g.constraints.add_equal("a", "b", "a test")
    asked = GraphBuilderPatternOptimization(g, ["Identity"])
    assert int_values(asked, "p") == ((0, 0) if is_known else None)
    assert scalar_index(asked, "d") == (0 if is_known else None)
    assert int_values(asked, "n") is None and scalar_index(asked, "n") is None
    asked.optimize()
    assert [node.op_type for node in g.nodes].count("Pad") == (0 if is_known else 1)
