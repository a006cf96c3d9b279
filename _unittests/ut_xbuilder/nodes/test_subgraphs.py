"""Subgraphs of a node: names they define, names they capture."""

from __future__ import annotations

from ut_xbuilder.graph_checks import NESTED

from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.subgraphs import (
    captured_names,
    local_names,
    may_own_graph,
    node_captures,
    subgraphs_of,
)


def test_captured_names():
    # the else branch reads the outer z before it defines its own
    assert node_captures(NESTED) == ("z", "c", "x")
    graphs = dict(subgraphs_of(NESTED))
    assert list(captured_names(graphs["else_branch"])) == ["z"]
    assert local_names(graphs["then_branch"]) == {"k", "t", "r", "z2", "u", "v"}
    record = NodeRecord(NESTED, 0, 0)
    assert record.hides("z") and record.hides("z2") and not record.hides("x")


def test_nodes_that_may_own_a_graph():
    assert may_own_graph("If", "") and not may_own_graph("Add", "") and may_own_graph("Add", "d")
