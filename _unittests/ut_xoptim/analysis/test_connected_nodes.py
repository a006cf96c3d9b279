"""Connected nodes that a rewrite writes together."""

from __future__ import annotations

from ut_xoptim.analysis.small_graph import optimizer

from xbuilder.nodes.record import NodeRecord
from xoptim.analysis.connected_nodes import ConnectedNodes

BODY = "n = Neg(X) a = Abs(n) m = Mul(n, Z) s = Add(a, m) e = Exp(X) Y = Sub(s, e)"


def region(*op_types: str, most: int = 0) -> tuple[ConnectedNodes, list[str]]:
    """The region of some operators around Neg, and its nodes in the order they are added."""
    g = optimizer(BODY)
    found = ConnectedNodes(g, lambda r: r.op_type in op_types, lambda r: r.inputs)
    first: NodeRecord = g.store.producers["n"]
    return found, [r.op_type for r in found.grow([first], most)]


def test_grow() -> None:
    """The nearest nodes come first, a node that reads the same result is connected."""
    assert region("Neg", "Abs", "Mul", "Add")[1] == ["Neg", "Abs", "Mul", "Add"]
    assert region("Neg", "Abs", "Exp", "Add")[1] == ["Neg", "Abs", "Exp", "Add"]
    assert region("Neg", "Add")[1] == ["Neg"]
    assert region("Abs")[1] == []
    assert region("Neg", "Abs", "Mul", "Add", most=2)[1] == ["Neg", "Abs"]


def test_what_goes_in_and_out() -> None:
    """Outputs are read outside, and so is what nodes that are not in the region read."""
    g = optimizer(BODY)
    found = ConnectedNodes(g, lambda r: r.op_type in ("Neg", "Abs", "Mul"), lambda r: r.inputs)
    assert len([*found.grow([g.store.producers["n"]])]) == 3
    assert found.entries() == ["X", "Z"]
    assert not found.is_read_outside("n")
    assert found.is_read_outside("a")
    assert not found.is_read_outside("a", g.store.producers["s"])
    whole, _ = region("Neg", "Abs", "Mul", "Add", "Sub")
    assert whole.is_read_outside("Y") and not whole.is_read_outside("s")


def test_between() -> None:
    """Starts and ends are kept, what is only before a start or after an end is not."""
    whole, _ = region("Neg", "Abs", "Mul", "Add", "Exp", "Sub")

    def kept(starts: set[str], ends: set[str]) -> set[str]:
        found = whole.between(lambda r: r.op_type in starts, lambda r: r.op_type in ends)
        return {r.op_type for r in found.grow(whole.nodes)}

    assert kept({"Abs"}, {"Add"}) == {"Abs", "Add"}
    assert kept({"Neg"}, {"Add"}) == {"Neg", "Abs", "Mul", "Add"}
    assert kept({"Neg", "Exp"}, {"Sub"}) == {r.op_type for r in whole.nodes}
    assert kept({"Add"}, {"Add"}) == {"Add"}
    assert kept({"Sub"}, {"Neg"}) == set()
