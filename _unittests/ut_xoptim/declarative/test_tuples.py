"""Equations as nested tuples."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder.errors import OptionError
from xoptim.declarative import equation_from_tuples
from xoptim.declarative.tuples import text_of
from xoptim.testing import check_pattern

TEXTS = {
    "x": "x",
    2: "2",
    None: "None",
    ("Div", ("Mul", "x", "y"), "y"): "Div(Mul(x, y), y)",
    ("com.microsoft::Gelu", "x"): "com.microsoft.Gelu(x)",
    ("Clip", "x", None, 6.0): "Clip(x, None, 6.0)",
}


@pytest.mark.parametrize("tree", TEXTS)
def test_text(tree: Any) -> None:
    assert text_of(tree) == TEXTS[tree]


def test_attributes() -> None:
    assert text_of(("Softmax", "x", {"axis": -1, "m": "a"})) == "Softmax(x, axis=-1, m='a')"


@pytest.mark.parametrize("tree", [(), "x y", ("Neg", ["x"]), (1, 2), [], ("Neg", {"x": 1}, "x")])
def test_not_a_side(tree: Any) -> None:
    with pytest.raises(OptionError, match="is not one side of an equation"):
        text_of(tree)


def test_rule() -> None:
    cls = equation_from_tuples("ReluOfMax", ("Max", ("Relu", "x"), 0), ("Relu", "x"))
    before = "g (float[a] x) => (float[a] y) <float z = {0}> { r = Relu(x) y = Max(z, r) }"
    check_pattern(before, "g (float[a] x) => (float[a] y) { y = Relu(x) }", [cls()])
