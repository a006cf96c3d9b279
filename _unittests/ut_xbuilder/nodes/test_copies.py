"""Copies of nodes with other edges or other captures."""

from __future__ import annotations

import onnx.helper as oh
from ut_xbuilder.graph_checks import NESTED

from xbuilder.nodes.copies import copy_with_captures, copy_with_edges
from xbuilder.nodes.subgraphs import node_captures


def test_copy_with_captures():
    content = NESTED.SerializeToString()
    copy = copy_with_captures(NESTED, {"z": "new"})
    assert NESTED.SerializeToString() == content
    then_branch, else_branch = (a.g for a in copy.attribute)
    assert list(then_branch.node[0].input) == ["new", "k"]
    assert list(then_branch.node[1].attribute[0].g.node[0].input) == ["new"]
    # only what is read before it is hidden
    assert list(else_branch.node[0].input) == ["new"]
    assert list(else_branch.node[1].input) == ["z"]
    assert node_captures(copy) == ("new", "c", "x")


def test_copy_with_edges():
    node = oh.make_node("Add", ["a", "b"], ["c"], name="n", axis=1)
    copy = copy_with_edges(node, ("a", "d"), ("e",))
    assert list(node.input) == ["a", "b"] and list(node.output) == ["c"]
    assert list(copy.input) == ["a", "d"] and list(copy.output) == ["e"]
    assert copy.name == "n" and copy.attribute[0].i == 1
