"""Which nodes go away with a rewrite."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder import GraphBuilder
from xoptim.authoring.deduction import Refusal, deduce
from xoptim.authoring.right_side import NewNode
from xoptim.testing import model_from_text

#: a chain, a result read elsewhere, an output in the middle, one captured by a subgraph
TEXT = """agraph (float[4] X, bool c) => (float[4] Y, float[2] s1, float[4] o, float[4] Z) {
    p = Sin(X) q = Cos(p) r = Tan(q) Y = Neg(r)
    o = Abs(q)
    s0, s1 = Split<num_outputs = 2>(o)
    i = Exp(X)
    Z = If(c) < then_branch = t () => (float[4] T) { T = Abs(i) },
                else_branch = e () => (float[4] E) { E = Abs(X) } > }"""


def removed(visited: str, replacements: dict[str, Any], stays: Any = ()) -> Any:
    """Operators that go, the one that is still read, the refusal."""
    store = GraphBuilder(model_from_text(TEXT)).store
    records = [store.producers[name] for name in visited.split()]
    gone, live, refusal = deduce(store, records, replacements, stays)
    still = live and live.op_type
    return " ".join(r.op_type for r in gone), still, refusal


@pytest.mark.parametrize(
    "visited, replacements, stays, expected",
    [
        ("Y", {"Y": "X"}, (), ("Neg", None, "")),
        ("Y r", {"Y": "q"}, (), ("Tan Neg", None, "")),
        ("r Y r Y", {"Y": "q"}, (), ("Tan Neg", None, "")),  # in any order, several times
        ("Y r q", {"Y": "p"}, (), ("Tan Neg", "Cos", "")),  # Abs reads q
        ("Y r q p", {"Y": "q"}, (), ("Tan Neg", None, "")),  # the new graph reads q
        ("Y r q p", {"Y": NewNode("Abs", ["q"])}, (), ("Tan Neg", None, "")),
        ("Y r q p", {"Y": "X"}, (), ("Tan Neg", "Sin", "")),
        ("Y r", {"Y": "q"}, {"r"}, ("Neg", "Tan", "")),
        ("Y r q o", {"Y": "p", "o": "p"}, (), ("Cos Tan Neg Abs", None, "")),
        ("s0 o", {"s0": "q"}, (), ("", "Abs", "another result of Split is used elsewhere")),
        ("s0 o", {"s1": "q"}, (), ("Split", "Abs", "")),
        ("s0 o", {"s0": "q", "s1": "q"}, (), ("Split", "Abs", "")),
        ("Z i", {"Z": "X"}, (), ("Exp If", None, "")),
        ("Y i", {"Y": "X"}, (), ("Neg", "Exp", "")),
    ],
)
def test_deduce(visited: str, replacements: Any, stays: Any, expected: Any) -> None:
    assert removed(visited, replacements, stays) == expected


def test_the_reason_of_a_refusal() -> None:
    assert Refusal("because").reason == "because"
    assert Refusal("{} of it").reason == "{} of it", "a text is left as it is"
    assert Refusal("no {} before", ("Add", "Mul")).reason == "no Add nor Mul before"
    assert Refusal("no {} before", ()).reason == "no node before"
