"""Halves that are exchanged, one of them with the other sign."""

from __future__ import annotations

import pytest

from xoptim.analysis.attention.rotated_halves import rotated_halves
from xoptim.authoring.context import context_of
from xoptim.authoring.deduction import Refusal
from xoptim.testing import optimizer_of

SPLIT = "a, b = Split<axis = -1>(x, sizes) "
RIGHT = SPLIT + "n = Neg(b) y = Concat<axis = -1>(n, a)"
LEFT = SPLIT + "n = Neg(a) y = Concat<axis = 1>(b, n)"


def _read(body: str, sizes: str = "2, 2"):
    count = sizes.count(",") + 1
    g = context_of(
        optimizer_of(f"""g (float[m, 4] x) => (float[m, 4] y)
            <int64[{count}] sizes = {{{sizes}}}> {{ {body} }}""")
    )
    return rotated_halves(g, next(n for n in g.graph.nodes if n.op_type == "Split"))


@pytest.mark.parametrize(("body", "side"), [(RIGHT, "right"), (LEFT, "left")])
def test_exchanged(body: str, side: str) -> None:
    found = _read(body)
    assert (found.result, found.side, found.sizes.tolist()) == ("y", side, [2, 2])


@pytest.mark.parametrize(
    ("body", "sizes", "reason"),
    [
        (RIGHT, "1, 3", "the halves may not have the same size"),
        (RIGHT.replace("a, b =", "a, b, c ="), "1, 1, 2", "there are not two halves"),
        (RIGHT.replace("Split<axis = -1>", "Split<axis = 0>"), "2, 2", "not the last one"),
        (RIGHT.replace("(n, a)", "(a, n)"), "2, 2", "Concat does not exchange the halves"),
        (LEFT.replace("(b, n)", "(n, b)"), "2, 2", "Concat does not exchange the halves"),
        (RIGHT.replace("Concat<axis = -1>", "Concat<axis = 0>"), "2, 2", "not the last one"),
        (RIGHT.replace("Neg(b)", "Abs(b)"), "2, 2", "is not the only use"),
    ],
)
def test_something_else(body: str, sizes: str, reason: str) -> None:
    with pytest.raises(Refusal) as refusal:
        _read(body, sizes)
    assert reason in str(refusal.value)
