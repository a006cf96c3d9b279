"""Cosines and sines written twice, read once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xoptim.analysis.attention.rotary_tables import half_of
from xoptim.authoring.context import RewriteContext, context_of
from xoptim.authoring.right_side import NewNode
from xoptim.testing import optimizer_of

TWICE = "c = Concat<axis = -1>(x, x) "
COLUMN = "u = Unsqueeze(x, last) "
PAIRS = COLUMN + "p = {} y = Reshape(p, flat)"


def _context(body: str) -> RewriteContext:
    return context_of(
        optimizer_of(f"""g (float[m, 4] x, float[m, 8] z, int64[2] i) => (y) <
            float[4] twice = {{1, 2, 1, 2}}, float[4] pairs = {{1, 1, 2, 2}},
            float[3] odd = {{1, 1, 1}}, float factor = {{2}}, float[8] row = {{1, 2, 3, 4, 5, 6, 7, 8}},
            int64[1] last = {{-1}}, int64[1] first = {{0}}, int64[2] flat = {{-1, 8}},
            int64[3] spread = {{1, 1, 2}}, int64[3] thrice = {{1, 1, 3}}
        > {{ {body} }}""")
    )


def _written(value: Any) -> list[Any]:
    """The operators of what is written, the last one first, then what it reads."""
    found: list[Any] = []
    while isinstance(value, NewNode):
        found.append(value.op_type)
        value = value.inputs[0]
    return [*found, value]


#: nodes -> what the half is made of, from the result to what it reads
HALVES = {
    TWICE + "y = Identity(c)": None,
    "y = Concat<axis = -1>(x, x)": ["x"],
    "y = Concat<axis = 1>(x, x)": ["x"],
    TWICE + "y = Cos(c)": ["Cos", "x"],
    TWICE + "s = Sin(c) y = Cast<to = 10>(s)": ["Cast", "Sin", "x"],
    TWICE + "y = Mul(c, factor)": ["Mul", "x"],
    TWICE + "y = Unsqueeze(c, first)": ["Unsqueeze", "x"],
    TWICE + "u = Unsqueeze(c, first) y = Squeeze(u, first)": ["Squeeze", "Unsqueeze", "x"],
    TWICE + "y = Gather(c, i)": ["Gather", "x"],
    # what is there twice, or what changes with the place in the last axis
    "y = Concat<axis = 0>(x, x)": None,
    "n = Neg(x) y = Concat<axis = -1>(x, n)": None,
    "y = Concat<axis = -1>(x, x, x)": None,
    TWICE + "y = Mul(c, row)": None,
    TWICE + "y = Unsqueeze(c, last)": None,
    TWICE + "y = Gather<axis = 1>(c, i)": None,
    TWICE + "y = Softmax(c)": None,
    "y = Cos(z)": None,
    PAIRS.format("Expand(u, spread)"): None,
}


@pytest.mark.parametrize("body", HALVES)
def test_halves(body: str) -> None:
    g = _context(body)
    half = half_of(g, "y")
    expected = HALVES[body]
    assert (None if half is None else _written(half)) == expected
    assert bool(g.visited) == (expected is not None)


#: nodes -> what each element that is there twice in a row is made of
NEIGHBOURS = {
    PAIRS.format("Expand(u, spread)"): ["Squeeze", "u"],
    PAIRS.format("Tile(u, spread)"): ["Squeeze", "u"],
    PAIRS.format("Concat<axis = -1>(u, u)"): ["Squeeze", "u"],
    PAIRS.format("Expand(u, spread)").replace("y =", "r =") + " y = Sin(r)": [
        "Sin",
        "Squeeze",
        "u",
    ],
    PAIRS.format("Concat<axis = 1>(u, u)"): None,
    COLUMN + "n = Neg(u) p = Concat<axis = -1>(u, n) y = Reshape(p, flat)": None,
    PAIRS.format("Neg(u)"): None,
    COLUMN + "p = Expand(u, spread) y = Reshape(p, last)": None,
    COLUMN + "p = Tile(u, thrice) y = Reshape(p, flat)": None,
    "p = Concat<axis = -1>(x, x) y = Reshape(p, flat)": None,
    "y = Concat<axis = -1>(x, x)": None,
}


@pytest.mark.parametrize("body", NEIGHBOURS)
def test_neighbours(body: str) -> None:
    half = half_of(_context(body), "y", neighbours=True)
    assert (None if half is None else _written(half)) == NEIGHBOURS[body]


OPPOSITE = "n = Neg(x) c = Concat<axis = -1>(n, x) "
#: nodes -> what the second half is made of, when the first one is its opposite
SIGNED = {
    "n = Neg(x) y = Concat<axis = -1>(n, x)": ["x"],
    OPPOSITE + "y = Cast<to = 10>(c)": ["Cast", "x"],
    OPPOSITE + "u = Mul(c, factor) y = Unsqueeze(u, first)": ["Unsqueeze", "Mul", "x"],
    "n = Neg(x) y = Concat<axis = -1>(x, n)": None,
    "n = Neg(x) y = Concat<axis = -1>(n, n)": None,
    "n = Neg(x) y = Concat<axis = -1>(n, x, x)": None,
    "y = Concat<axis = -1>(x, x)": None,
    OPPOSITE + "y = Sin(c)": None,
    OPPOSITE + "y = Cos(c)": None,
    "w = Cast<to = 3>(x) n = Neg(w) c = Concat<axis = -1>(n, w) y = Cast<to = 1>(c)": None,
}


@pytest.mark.parametrize("body", SIGNED)
def test_opposite_halves(body: str) -> None:
    half = half_of(_context(body), "y", signed=True)
    assert (None if half is None else _written(half)) == SIGNED[body]


def test_opposite_neighbours() -> None:
    body = COLUMN + "n = Neg(u) p = Concat<axis = -1>({}, u) y = Reshape(p, flat)"
    half = half_of(_context(body.format("n")), "y", neighbours=True, signed=True)
    assert _written(half) == ["Squeeze", "u"]
    for wrong in (body.format("u"), PAIRS.format("Tile(u, spread)")):
        assert half_of(_context(wrong), "y", neighbours=True, signed=True) is None


@pytest.mark.parametrize(
    ("name", "neighbours", "expected"),
    [("signed", False, [1, -2]), ("odd pairs", True, [1, 2]), ("signed", True, None)],
)
def test_opposite_constants(name: str, neighbours: bool, expected: list[float] | None) -> None:
    g = _context("y = Neg(x)")
    values = {"signed": [-1, 2, 1, -2], "odd pairs": [-1, 1, -2, 2]}[name]
    g.builder.make_initializer("c", np.array(values, np.float32))
    half = half_of(g, "c", neighbours, signed=True)
    assert (half.tolist() if isinstance(half, np.ndarray) else half) == expected


@pytest.mark.parametrize(
    ("name", "neighbours", "expected"),
    [
        ("twice", False, [1, 2]),
        ("pairs", True, [1, 2]),
        ("twice", True, None),
        ("pairs", False, None),
        ("odd", False, None),
        ("factor", False, None),
    ],
)
def test_constants(name: str, neighbours: bool, expected: list[float] | None) -> None:
    half = half_of(_context("y = Neg(x)"), name, neighbours)
    assert (half.tolist() if isinstance(half, np.ndarray) else half) == expected


def test_what_is_given_is_not_read() -> None:
    assert half_of(_context("y = Neg(x)"), "z") is None
