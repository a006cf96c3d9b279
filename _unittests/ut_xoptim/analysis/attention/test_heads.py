"""Heads of an attention: moved, repeated, alone."""

from __future__ import annotations

import pytest

from xoptim.analysis.attention.heads import Heads, heads_of, repeated, transposed
from xoptim.authoring.context import RewriteContext, context_of
from xoptim.authoring.deduction import Refusal
from xoptim.testing import optimizer_of

REPEAT = "u = Unsqueeze(x, two) e = Expand(u, spread) y = Reshape(e, four)"


def _context(body: str, x: str = "b, 2, s, 8", y: str = "p, q, r, t", **constants: str):
    values = {
        "one": "1",
        "two": "2",
        "three": "3",
        "spread": "1, 1, 3, 1, 1",
        "four": "0, 6, -1, 8",
        **constants,
    }
    names = ", ".join(f"int64[{v.count(',') + 1}] {k} = {{{v}}}" for k, v in values.items())
    return context_of(optimizer_of(f"g (float[{x}] x) => (float[{y}] y) <{names}> {{ {body} }}"))


def _types(g: RewriteContext) -> list[str]:
    return [r.op_type for r in g.visited]


@pytest.mark.parametrize("axis", ["2", "-3"])
def test_repeated(axis: str) -> None:
    g = _context(REPEAT, two=axis)
    assert repeated(g, "y") == "x"
    assert _types(g) == ["Reshape", "Expand", "Unsqueeze"]


def test_one_head_is_repeated() -> None:
    g = _context(REPEAT.replace("Reshape(e, four)", "Squeeze(e, one)"), "b, 1, s, 8")
    assert repeated(g, "y") == "x"
    assert _types(g) == ["Squeeze", "Expand", "Unsqueeze"]


#: what is wrong -> (nodes, shape of x, constants)
NOT_REPEATED: dict[str, tuple[str, str, dict[str, str]]] = {
    "no Reshape": (REPEAT.replace("y = Reshape(e, four)", "y = Neg(e)"), "b, 2, s, 8", {}),
    "no Expand": (
        "u = Unsqueeze(x, two) e = Concat<axis = 2>(u, u, u) y = Reshape(e, four)",
        "b, 2, s, 8",
        {},
    ),
    "no Unsqueeze": ("e = Expand(x, spread) y = Reshape(e, four)", "b, 2, 1, s, 8", {}),
    "another axis": (REPEAT, "b, 3, s, 8", {"two": "1", "four": "0, 9, -1, 8"}),
    "heads that are not known": (REPEAT, "b, h, s, 8", {}),
    "joined otherwise": (REPEAT, "b, 2, 4, 8", {"four": "0, 12, 2, 8"}),
    "another axis is squeezed": (
        REPEAT.replace("Reshape(e, four)", "Squeeze(e, three)"),
        "b, 1, 1, 8",
        {},
    ),
    "three dimensions": (REPEAT, "b, 2, s", {"spread": "1, 1, 3, 1", "four": "0, 6, -1"}),
    "everything is spread": (REPEAT, "b, 2, 1, 8", {"spread": "1, 1, 3, 4, 1"}),
    "another shape": (REPEAT, "b, 2, s, 8", {"four": "0, 6, 8, -1"}),
}


@pytest.mark.parametrize("name", NOT_REPEATED)
def test_not_repeated(name: str) -> None:
    body, x, constants = NOT_REPEATED[name]
    g = _context(body, x, **constants)
    assert repeated(g, "y") is None
    assert not g.visited


def test_transposed() -> None:
    g = _context("y = Transpose<perm = [0, 2, 1, 3]>(x)")
    assert transposed(g, "y", (0, 1, 3, 2)) is None and not g.visited
    assert transposed(g, "x", (0, 2, 1, 3)) is None
    assert transposed(g, "y", (0, 2, 1, 3)) == "x" and _types(g) == ["Transpose"]


SWAP = "y = Transpose<perm = [0, 2, 1, 3]>(x)"
#: nodes -> (shape of x, keys, what is read)
HEADS = {
    "y = Neg(x)": ("b, 2, s, 8", False, Heads("y", "", 2, 8)),
    SWAP: ("b, s, 2, 8", False, Heads("y", "x", 2, 8)),
    "y = Transpose<perm = [0, 2, 3, 1]>(x)": ("b, s, 2, 8", True, Heads("", "x", 2, 8)),
    "y = Transpose<perm = [0, 1, 3, 2]>(x)": ("b, 2, s, 8", True, Heads("x", "", 2, 8)),
    SWAP.replace("y =", "t =") + " y = Transpose<perm = [0, 1, 3, 2]>(t)": (
        "b, s, 2, 8",
        True,
        Heads("t", "x", 2, 8),
    ),
    "y = Unsqueeze(x, one)": ("b, s, 8", False, Heads("y", "", 1, 8, "x")),
    "t = Transpose<perm = [0, 2, 1]>(x) y = Unsqueeze(t, one)": (
        "b, s, 8",
        True,
        Heads("", "", 1, 8, "x"),
    ),
}


@pytest.mark.parametrize("body", HEADS)
def test_heads(body: str) -> None:
    x, keys, expected = HEADS[body]
    found = heads_of(_context(body, x), "y", keys)
    assert found == expected
    assert found.is_moved == bool(expected.moved or expected.alone)


@pytest.mark.parametrize(
    ("body", "x", "keys", "reason"),
    [
        ("y = Neg(x)", "b, h, s, 8", False, "the heads are not known"),
        ("y = Neg(x)", "b, 2, s, l", False, "the heads are not known"),
        ("y = Neg(x)", "b, 2, s, 0", False, "the heads are not known"),
        ("y = Neg(x)", "b, 2, 8, s", True, "the keys are not transposed"),
        (SWAP, "b, 8, 2, s", True, "the keys are not transposed"),
    ],
)
def test_heads_that_are_refused(body: str, x: str, keys: bool, reason: str) -> None:
    with pytest.raises(Refusal) as refusal:
        heads_of(_context(body, x), "y", keys)
    assert reason in str(refusal.value)


def test_layouts() -> None:
    g = _context(SWAP, "b, s, 2, 8")
    plain, moved, alone = Heads("h", "", 2, 8), Heads("", "m", 2, 8), Heads("", "", 1, 8, "a")
    assert (plain.split(g), alone.flat(g)) == ("h", "a")
    assert list(moved.split(g).inputs) == ["m"] and moved.split(g).op_type == "Transpose"
    assert alone.split(g).op_type == "Unsqueeze" and alone.split(g).inputs[0] == "a"
    assert moved.flat(g).op_type == "Reshape" and moved.flat(g).inputs[0] == "m"
    assert plain.flat(g).inputs[0].op_type == "Transpose"
