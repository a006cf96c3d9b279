"""Inputs that may be missing."""

from __future__ import annotations

import onnx.helper as oh

from xoptim.analysis.arguments import optional_input


def test_optional_input() -> None:
    node = oh.make_node("Clip", ["x", "", "high"], ["y"])
    assert [optional_input(node, i) for i in range(4)] == ["x", "", "high", ""]
