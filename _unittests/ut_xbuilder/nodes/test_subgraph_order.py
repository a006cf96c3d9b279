"""Subgraphs whose nodes are sorted."""

from __future__ import annotations

from ut_xbuilder.graph_checks import parse

from xbuilder.nodes.subgraph_order import with_sorted_subgraphs
from xbuilder.nodes.subgraphs import subgraphs_of

UNSORTED = parse(
    """
    agraph (float[2] x, bool c) => (float[2] y)
    {
        y = If (c) <
            then_branch = a () => (float[2] r) { r = Neg(t) t = Abs(x) },
            else_branch = b () => (float[2] s) { s = Exp(x) }
        >
    }
    """
).graph.node[0]


def test_nodes_follow_those_they_read():
    content = UNSORTED.SerializeToString()
    graphs = dict(subgraphs_of(with_sorted_subgraphs(UNSORTED, {"t"})))
    assert [n.op_type for n in graphs["then_branch"].node] == ["Abs", "Neg"]
    assert UNSORTED.SerializeToString() == content


def test_a_name_the_outer_graph_defines_stays_outside():
    graphs = dict(subgraphs_of(with_sorted_subgraphs(UNSORTED, ())))
    assert [n.op_type for n in graphs["then_branch"].node] == ["Neg", "Abs"]
