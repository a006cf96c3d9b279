"""Inputs that may be missing."""

from __future__ import annotations

import onnx.helper as oh

from xoptim.analysis.arguments import optional_input, other_input


def test_optional_input() -> None:
    node = oh.make_node("Clip", ["x", "", "high"], ["y"])
    assert [optional_input(node, i) for i in range(4)] == ["x", "", "high", ""]


def test_other_input() -> None:
    node = oh.make_node("Mul", ["a", "b"], ["y"])
    assert other_input(node, "a") == "b" and other_input(node, "b") == "a"
    assert other_input(node, "y") == ""
    assert other_input(oh.make_node("Mul", ["a", "a"], ["y"]), "a") == "a"
