"""Masks that make weights too small for a normal float."""

from __future__ import annotations

import pytest

from xoptim.analysis.values.tiny_weights import has_subnormal_weights
from xoptim.authoring.context import context_of
from xoptim.testing import optimizer_of

#: nodes -> whether the scores are known to be lowered by -100
LOWERED = {
    "y = Add(x, mask)": True,
    "y = Add(mask, x)": True,
    "y = Add(x, little)": False,
    "y = Add(x, low)": False,
    "y = Sub(x, mask)": False,
    "y = Add(x, row)": False,
    "t = Transpose(mask) y = Add(x, t)": True,
    "s = Shape(x) e = Expand(mask, s) u = Unsqueeze(e, one) q = Squeeze(u, one) y = Add(x, q)": True,
    "a = Add(x, mask) y = Reshape(a, four)": True,
    "y = Where(c, x, low)": True,
    "y = Where(c, low, x)": True,
    "y = Where(c, x, lower)": False,
    "y = Where(c, x, little)": False,
    "y = Neg(x)": False,
}


@pytest.mark.parametrize("body", LOWERED)
def test_makes_tiny_weights(body: str) -> None:
    text = f"""g (float[2, 2] x, bool[2, 2] c) => (y) <float[2, 2] mask = {{0, -100, 0, 0}},
        float[2, 2] little = {{0, -80, 0, 0}}, float[2] row = {{0, -100}}, float low = {{-100}},
        float lower = {{-10000}}, int64[1] one = {{1}}, int64[1] four = {{4}}> {{ {body} }}"""
    g = context_of(optimizer_of(text))
    assert has_subnormal_weights(g, "y") is LOWERED[body]


@pytest.mark.parametrize(("steps", "expected"), [(5, True), (6, False)])
def test_number_of_nodes(steps: int, expected: bool) -> None:
    """A mask that is further is not looked for."""
    nodes = [f"a{i} = Add(a{i - 1}, x)" for i in range(1, steps + 1)]
    text = f"""g (float[2, 2] x) => (y) <float[2, 2] mask = {{0, -100, 0, 0}}>
        {{ a0 = Add(x, mask) {" ".join(nodes)} y = Identity(a{steps}) }}"""
    g = context_of(optimizer_of(text))
    assert has_subnormal_weights(g, f"a{steps}") is expected


@pytest.mark.parametrize("kind", ["float16", "double"])
def test_other_types(kind: str) -> None:
    """Nothing is said of other types."""
    text = f"""g ({kind}[2, 2] x, bool[2, 2] c) => (y, z) <{kind}[2, 2] mask = {{0, -100, 0, 0}},
        {kind} low = {{-100}}> {{ y = Add(x, mask) z = Where(c, x, low) }}"""
    g = context_of(optimizer_of(text))
    assert not has_subnormal_weights(g, "y") and not has_subnormal_weights(g, "z")
