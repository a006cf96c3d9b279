"""Parts between zeros."""

from __future__ import annotations

import pytest

from xoptim.analysis.values.zeros import Part, parts_among_zeros
from xoptim.authoring import Refusal, RewriteContext
from xoptim.authoring.context import context_of
from xoptim.testing import optimizer_of

#: the last node -> the axis, the parts
PARTS = {
    "z = ConstantOfShape(two) y = Concat<axis = 0>(none, x, z)": (0, [Part(2, 4, "x")]),
    "y = Concat<axis = -1>(x, some)": (0, [Part(0, 2, "x"), Part(2, 4, "some")]),
    "y = Pad(x, around)": (0, [Part(1, 3, "x")]),
    "y = ScatterND(none, row, one)": (0, [Part(1, 2, "one")]),
    "a = ScatterND(none, row, one) y = ScatterND<reduction = \"add\">(a, first, one)": (
        0, [Part(1, 2, "one"), Part(0, 1, "one")],
    ),
}  # fmt: skip
REFUSED = {
    "y = Concat<axis = 0>(x, u)": "the length of a part is not known",
    "y = Pad(x, around, half)": "zeros are not added along one axis",
    "y = ScatterND(x, row, one)": "rows are not written on zeros",
    "y = ScatterND(none, rows, one)": "the rows are not known",
    "m = Mul(none, x) y = ScatterND(m, row, one)": "rows are not written on zeros",
}


def context(body: str) -> RewriteContext:
    """A graph that gives y; 0 * x may be NaN."""
    return context_of(
        optimizer_of(f"""g (float[2] x, float[n] u, int64[1, 1] rows) => (y) <
            float[2] none = {{0, -0.0}}, float[2] some = {{0, 1}}, int64[1] two = {{2}},
            int64[2] around = {{1, 1}}, float half = {{0.5}}, int64[1, 1] row = {{1}},
            int64[1, 1] first = {{0}}, float[1] one = {{1}}
        > {{ {body} }}""")
    )


@pytest.mark.parametrize("body", PARTS)
def test_parts(body: str) -> None:
    g = context(body)
    assert parts_among_zeros(g, g.before("y")) == PARTS[body]


@pytest.mark.parametrize("body", REFUSED)
def test_refuses(body: str) -> None:
    g = context(body)
    with pytest.raises(Refusal) as refused:
        parts_among_zeros(g, g.before("y"))
    assert refused.value.reason == REFUSED[body]
