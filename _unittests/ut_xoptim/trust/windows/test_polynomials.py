"""Degrees of the polynomials some nodes compute, and what random integers prove."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import model_from_text
from xoptim.trust.windows.polynomials import (
    bits_of,
    chance_of_missing,
    constants_bits,
    degree_of,
    moves_inputs,
    only_moves,
)

DEGREES = {
    "z = Transpose(x)": 1,
    "z = Mul(x, y)": 2,
    "a = MatMul(x, y) z = MatMul(a, x)": 3,
    "a = Mul(x, x) z = Add(a, y)": 2,
    "z = Gemm<alpha = 0.5>(x, y, x)": 2,
    "z = Gemm<alpha = 0.3>(x, y, x)": None,
    "z = Einsum<equation = 'ij,jk->ik'>(x, y)": 2,
    "s = Shape(x) z = Expand(y, s)": 1,
    "z = Exp(x)": None,
    "z = Div(x, y)": None,
    "c = Constant<value_float = 2.0>() e = Exp(c) z = Mul(x, e)": 1,
    "z = com.microsoft.FusedMatMul<alpha = 2.0>(x, y)": 2,
    "z = com.microsoft.FusedMatMul<alpha = 0.1>(x, y)": None,
    "z = com.microsoft.Gelu(x)": None,
}


@pytest.mark.parametrize("text", DEGREES)
def test_degrees(text: str) -> None:
    content = text.replace("'", '"')
    model = model_from_text(f"g (float[n, n] x, float[n, n] y) => (float[n, n] z) {{ {content} }}")
    assert degree_of(model.graph.node, ["x", "y"], ["z"]) == DEGREES[text]


def test_bits() -> None:
    """No sum of products is rounded: all of them hold in a double."""
    assert bits_of(1, 1, 0) == 40
    for degree, terms, constant in ((2, 1000, 0), (3, 64, 4)):
        bits = bits_of(degree, terms, constant)
        assert bits >= 8 and terms * 2.0 ** (degree * (bits + constant)) <= 2**53
    assert bits_of(9, 1 << 20, 10) < 2


def test_constants() -> None:
    assert constants_bits({}) == 0
    assert constants_bits({"c": np.array([4, -8])}) == 3
    assert constants_bits({"c": np.array(0.5, dtype=np.float32)}) == 10
    assert constants_bits({"c": np.array(0.1)}) is None
    assert constants_bits({"c": np.array(np.inf)}) is None


def test_chance() -> None:
    assert chance_of_missing(2, 9, 1) == 2 / 1024
    assert chance_of_missing(2, 9, 3) == (2 / 1024) ** 3
    assert chance_of_missing(9, 0, 2) == 1


MOVES = {
    "z = Transpose(x)": True,
    "s = Shape(x) z = Reshape(x, s)": True,
    "a = Concat<axis = 0>(x, y) z = Flatten(a)": True,
    "a = Neg(x) z = Transpose(a)": False,
    "z = Pad(x, p)": False,
    "z = com.microsoft.Transpose(x)": False,
}


@pytest.mark.parametrize(("body", "expected"), MOVES.items())
def test_moves(body: str, expected: bool) -> None:
    """Copies of elements of the inputs: a constant that is padded is none."""
    model = model_from_text(f"g (float[a, b] x, float[a, b] y) => (float[c, d] z) {{ {body} }}")
    assert only_moves(model.graph.node) is expected


def test_moves_of_inputs() -> None:
    """A constant the nodes hold is an element of no input."""
    model = model_from_text("g (float[n] x) => (float[m] z) { z = Concat<axis = 0>(x, x) }")
    other = "c = Constant<value_floats = [1.0]>() z = Concat<axis = 0>(x, c)"
    assert moves_inputs(model.graph.node)
    model = model_from_text(f"g (float[n] x) => (float[m] z) {{ {other} }}")
    assert only_moves(model.graph.node) and not moves_inputs(model.graph.node)
