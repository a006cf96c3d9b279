"""Names a graph of a file reserves."""

from __future__ import annotations

from ut_xbuilder.graph_checks import NESTED

from xbuilder.nodes.copies import copy_node
from xbuilder.nodes.reserved_names import reserve_names
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.support.names import NameAllocator


def test_reserve_names():
    names, node_names = NameAllocator(), NameAllocator()
    graph = dict(subgraphs_of(copy_node(NESTED)))["then_branch"]
    graph.node[0].name = "node0"
    reserve_names(names, node_names, graph)
    assert all(n in names for n in ("z", "k", "t", "r", "z2", "u", "v"))
    assert "node0" in node_names
