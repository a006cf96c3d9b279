"""The first result read through nodes that keep the order of the elements."""

from __future__ import annotations

import pytest

from xoptim.analysis.same_elements import source_of_reshapes
from xoptim.authoring.context import context_of
from xoptim.testing import optimizer_of

BODY = """e = Exp(x) r = Reshape(e, rows) u = Unsqueeze(r, first) s = Squeeze(u, first)
    y = Reshape(s, rows)"""


@pytest.mark.parametrize(
    ("last", "expected", "seen"),
    [
        (None, "e", {"Reshape", "Unsqueeze", "Squeeze"}),
        (6, "r", {"Reshape", "Unsqueeze", "Squeeze"}),
        (5, "y", set()),
    ],
)
def test_first_of_the_same_elements(last: int | None, expected: str, seen: set[str]) -> None:
    g = context_of(
        optimizer_of(f"""g (float[m, 2, 3] x) => (float[n, 6] y)
            <int64[2] rows = {{-1, 6}}, int64[1] first = {{0}}> {{ {BODY} }}""")
    )
    assert source_of_reshapes(g, "y", last) == expected
    assert {r.op_type for r in g.visited} == seen


def test_nothing_moves() -> None:
    g = context_of(optimizer_of("g (float[m] x) => (float[m] y) { y = Neg(x) }"))
    assert source_of_reshapes(g, "y") == "y" and not g.visited
