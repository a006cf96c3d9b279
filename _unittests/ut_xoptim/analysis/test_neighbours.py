"""The nodes around a node."""

from __future__ import annotations

from ut_xoptim.analysis.small_graph import optimizer

from xoptim.analysis.neighbours import consumers_of, depends_on

BODY = (
    "n = Neg(X) m = Mul(n, Z) k = com.microsoft.Mul(n, Z) p = Mul(Z, n) s = Add(k, p) Y = Add(s, m)"
)


def test_consumers() -> None:
    """Those whose first input is the result, in the order of the graph."""
    g = optimizer(BODY)
    assert [n.output[0] for n in consumers_of(g, "n", "Mul")] == ["m"]
    assert [n.output[0] for n in consumers_of(g, "Z", "Mul")] == ["p"]
    assert consumers_of(g, "n", "Abs") == []


def test_depends_on() -> None:
    g = optimizer(BODY)
    assert depends_on(g, ["s"], ["n"]) and depends_on(g, ["X", "Y"], ["m"])
    assert not depends_on(g, ["n"], ["m"]) and not depends_on(g, ["s"], ["m"])
