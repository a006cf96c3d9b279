"""A function registered as a rewrite: the operators it declares."""

from __future__ import annotations

from xoptim import rewrite


def test_a_set_of_roots_has_one_order() -> None:
    """A card is written by a process and read by another, where sets have another order."""

    @rewrite(root=frozenset(("Tanh", "Abs", "Neg")), after=("Sin", "Cos"))
    def nothing(g, node):  # type: ignore[no-untyped-def]
        """Abs(x) -> Abs(x)."""

    assert nothing.roots == ("Abs", "Neg", "Tanh")
    assert nothing.after == ("Sin", "Cos"), "a tuple keeps its order"
