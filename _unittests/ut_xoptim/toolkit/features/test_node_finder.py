"""Nodes by operator."""

from __future__ import annotations

import onnx.helper as oh

from xbuilder import GraphBuilder
from xoptim.testing import model_from_text
from xoptim.toolkit.features import NodeFinder

TEXT = """agraph (float[a] X) => (float[a] Y) {
    n = Neg(X) f = toy.Neg(n) m = Neg(f) Y = Relu(m) }"""


def test_nodes_follow_the_graph() -> None:
    builder = GraphBuilder(model_from_text(TEXT, domains=("toy",)))
    finder, store = NodeFinder(), builder.store
    builder.attach_feature(finder)
    assert [node.output[0] for node in finder.query("Neg")] == ["n", "m"]
    assert [node.output[0] for node in finder.query("Neg", "toy")] == ["f"]
    assert finder.query("Abs") == [] and finder.count("Abs") == 0
    store.replace([store.producers["Y"]], [oh.make_node("Neg", ["m"], ["Y"])])
    assert finder.count("Neg") == 3 and finder.count("Relu") == 0
    assert [r.outputs for r in finder.records("Neg")] == [("n",), ("m",), ("Y",)]
    assert finder.records("Neg")[0] is store.producers["n"]
