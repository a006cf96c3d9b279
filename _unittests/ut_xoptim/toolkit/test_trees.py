"""Nested tuples with constraints as text."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder.errors import OptionError
from xoptim.toolkit import Var
from xoptim.toolkit.trees import TreeReader


def always(graph: Any, name: Any) -> bool:
    return True


SHARED = {"pattern": ("Neg", "x"), "constraint": always}
TREES: list[tuple[Any, str, list[str]]] = [
    (("Neg", "x"), "Neg(x)", []),
    (("Softmax", "x", {"axis": Var("a")}), "Softmax(x, axis=a)", []),
    (
        ("Softmax", "x", {"axis": {"pattern": Var("a"), "constraint": always}}),
        "Softmax(x, axis=a)",
        ["a"],
    ),
    (("Add", {"pattern": "x", "constraint": always}, 1), "Add(x, 1)", ["x"]),
    (("Abs", SHARED), "_0 = Neg(x); Abs(_0)", ["_0"]),
    (("Add", SHARED, SHARED), "_0 = Neg(x); Add(_0, _0)", ["_0"]),
    ([("Neg", "x"), ("Abs", "x")], "(Neg(x), Abs(x))", []),
    ({"pattern": ("TopK", "x", "k"), "results": ("v", "i")}, "v, i = TopK(x, k); (v, i)", []),
    ({"pattern": ("Neg", "x"), "results": ("n",)}, "n = Neg(x); n", []),
    (
        ("Abs", {"pattern": ("TopK", "x", "k"), "results": ("_v", "i"), "index": 1}),
        "_v, i = TopK(x, k); Abs(i)",
        [],
    ),
    (
        ("Abs", {"pattern": ("Neg", {"pattern": "x", "constraint": always}), "constraint": always}),
        "_0 = Neg(x); Abs(_0)",
        ["x", "_0"],
    ),
]


@pytest.mark.parametrize(("tree", "text", "constrained"), TREES)
def test_side(tree: Any, text: str, constrained: list[str]) -> None:
    reader = TreeReader("_")
    assert reader.side(tree) == text
    assert [name for name, _ in reader.constraints] == constrained


@pytest.mark.parametrize("entry", [{"constraint": always}, {"pattern": "x", "when": 1}])
def test_not_a_part_of_a_pattern(entry: Any) -> None:
    with pytest.raises(OptionError, match="is not a part of a pattern"):
        TreeReader("_").side(("Neg", entry, "x"))


@pytest.mark.parametrize("value", [{"pattern": "a", "constraint": always}, {"pattern": Var("a")}])
def test_not_the_value_of_an_attribute(value: Any) -> None:
    with pytest.raises(OptionError, match="is not the value of an attribute"):
        TreeReader("_").side(("Softmax", "x", {"axis": value}))


@pytest.mark.parametrize("constraint", [lambda x: True, lambda: True, 3])
def test_a_constraint_takes_the_graph_and_a_name(constraint: Any) -> None:
    for tree in (
        ("Neg", {"pattern": "x", "constraint": constraint}),
        ("Softmax", "y", {"axis": {"pattern": Var("x"), "constraint": constraint}}),
    ):
        with pytest.raises(
            OptionError, match="The constraint on x must be a function of the graph"
        ):
            TreeReader("_").side(tree)
    reader = TreeReader("_")
    reader.side(("Neg", {"pattern": "x", "constraint": max}))
    assert [name for name, _ in reader.constraints] == ["x"], (
        "python says nothing of its parameters"
    )
