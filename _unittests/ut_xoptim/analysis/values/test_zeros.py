"""Results made of zeros."""

from __future__ import annotations

import pytest

from xoptim.analysis.values.zeros import is_zeros
from xoptim.authoring.context import context_of
from xoptim.testing import optimizer_of

ZEROS = {
    "y = ConstantOfShape(s)": True,
    "y = ConstantOfShape <value = int64[1] {0}> (s)": True,
    "y = ConstantOfShape <value = float[1] {1}> (s)": False,
    "y = Identity(none)": True,
    "y = Identity(some)": False,
    "y = Mul(none, x)": False,
}


@pytest.mark.parametrize("body", ZEROS)
def test_is_zeros(body: str) -> None:
    """0 * x may be NaN."""
    text = f"""g (float[2] x, int64[2] s) => (y)
        <float[2] none = {{0, -0.0}}, float[2] some = {{0, 1}}> {{ {body} }}"""
    g = context_of(optimizer_of(text))
    assert is_zeros(g, "y") is ZEROS[body]
