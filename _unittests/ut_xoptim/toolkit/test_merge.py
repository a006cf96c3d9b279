"""Equal computations become one."""

from __future__ import annotations

import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of, op_types, optimized, rewritten

from xoptim.testing import check_pattern
from xoptim.toolkit import EquilibriumGraphRewriter, MergeOptimizer, PatternNodeRewriter

HEAD = "g (float[a] x, float[a] y, float[a] z) => (float[a] w)"
MERGED: dict[str, tuple[str, list[str]]] = {
    "twins": ("a = Exp(x) b = Exp(x) w = Add(a, b)", ["Exp", "Add"]),
    "chains": (
        "a = Exp(x) b = Exp(x) c = Neg(a) d = Neg(b) w = Add(c, d)",
        ["Exp", "Neg", "Add"],
    ),
    "commutative": ("a = Add(x, y) b = Add(y, x) w = Mul(a, b)", ["Add", "Mul"]),
    "commutative chains": (
        "a = Add(x, y) b = Add(y, x) c = Mul(a, z) d = Mul(z, b) w = Div(c, d)",
        ["Add", "Mul", "Div"],
    ),
    "not commutative": ("a = Sub(x, y) b = Sub(y, x) w = Mul(a, b)", ["Sub", "Sub", "Mul"]),
    "constants by content": (
        "k = Constant<value_float = 2.0>() l = Constant<value_float = 2.0>() "
        "a = Pow(x, k) b = Pow(x, l) w = Add(a, b)",
        ["Pow", "Add"],
    ),
    "other constants": (
        "k = Constant<value_float = 2.0>() l = Constant<value_float = 3.0>() "
        "a = Pow(x, k) b = Pow(x, l) w = Add(a, b)",
        ["Pow", "Pow", "Add"],
    ),
    "attributes": (
        "a = LeakyRelu<alpha = 0.1>(x) b = LeakyRelu<alpha = 0.2>(x) w = Add(a, b)",
        ["LeakyRelu", "LeakyRelu", "Add"],
    ),
    "random": (
        "a = RandomNormalLike(x) b = RandomNormalLike(x) w = Add(a, b)",
        ["RandomNormalLike", "RandomNormalLike", "Add"],
    ),
}


@pytest.mark.parametrize("name", MERGED)
def test_merges(name: str) -> None:
    text, expected = MERGED[name]
    found = [t for t in rewritten(f"{HEAD} {{ {text} }}", MergeOptimizer()) if t != "Constant"]
    assert found == expected


def test_initializers() -> None:
    text = f"{HEAD} <float[2] k = {{1, 2}}, float[2] l = {{1, 2}}> {{ a = Add(x, k) b = Add(l, x) w = Mul(a, b) }}"
    builder = builder_of(text.replace("[a]", "[2]"))
    MergeOptimizer().rewrite(builder)
    assert op_types(builder) == ["Add", "Mul"] and len(builder.initializers_dict) == 1


def test_outputs_keep_their_names() -> None:
    text = "g (float[a] x) => (float[a] y, float[a] z) { y = Exp(x) z = Exp(x) }"
    builder = builder_of(text)
    MergeOptimizer().rewrite(builder)
    assert op_types(builder) == ["Exp", "Identity"] and builder.output_names == ["y", "z"]


def test_comes_before_everything() -> None:
    """(y + z) * x / (z + y) -> x."""
    text = f"{HEAD} {{ a = Add(y, z) b = Mul(a, x) c = Add(z, y) w = Div(b, c) }}"
    simplify = PatternNodeRewriter(("Div", ("Mul", "x", "y"), "y"), "x", name="simplify")
    assert rewritten(text, EquilibriumGraphRewriter([simplify])) == ["Add", "Mul", "Add", "Div"]
    assert rewritten(text, EquilibriumGraphRewriter([simplify, MergeOptimizer()])) == ["Identity"]
    assert op_types(optimized(text, simplify, MergeOptimizer())) == ["Identity"]


def test_values() -> None:
    text = f"{HEAD} {{ {MERGED['commutative chains'][0]} }}"
    after = f"{HEAD} {{ a = Add(x, y) c = Mul(a, z) w = Div(c, c) }}"
    check_pattern(text, after, [MergeOptimizer()])
