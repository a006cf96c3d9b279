"""Infinities that can be seen."""

from __future__ import annotations

import pytest

from xoptim.analysis.values.infinities import may_hold_infinities
from xoptim.authoring.context import context_of
from xoptim.testing import optimizer_of

SEEN = {
    "y = Neg(x)": False,
    "y = Mul(huge, huge)": True,
    "y = Mul(two, two)": False,
    "y = Where(c, x, huge)": True,
    "y = Where(c, x, two)": False,
    "w = Where(c, huge, x) t = Transpose(w) u = Unsqueeze(t, axis) y = Cast <to = 1> (u)": True,
    "w = Where(c, huge, x) y = Add(x, w)": True,
    "w = Where(c, huge, x) y = Neg(w)": False,
    "w = Where(c, many, x) y = Add(w, x)": True,
    "y = Cast <to = 7> (big)": False,
}


@pytest.mark.parametrize("body", SEEN)
def test_seen_infinite(body: str) -> None:
    """Only results that hold infinities are followed, not results computed from them."""
    text = f"""g (float[2, 2] x, bool[2, 2] c) => (y) <float huge = {{-3e38}}, float two = {{2}},
        int64[1] axis = {{0}}, float[2] many = {{1, 1e30}}, int32 big = {{2000000000}}> {{ {body} }}"""
    g = context_of(optimizer_of(text))
    assert may_hold_infinities(g, "y") is SEEN[body]


@pytest.mark.parametrize(("narrow", "expected"), [(0, False), (10, True), (16, False), (1, False)])
def test_seen_infinite_once_narrowed(narrow: int, expected: bool) -> None:
    """float16 cannot hold 1e9."""
    text = "g (float[2] x, bool[2] c) => (y) <float big = {-1e9}> { y = Where(c, x, big) }"
    g = context_of(optimizer_of(text))
    assert may_hold_infinities(g, "y", narrow) is expected
