"""Names of the model survive."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from ut_xoptim.toy_patterns import Rename

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.graph_check import check_graph
from xoptim import rewrite
from xoptim.testing import model_from_text
from xoptim.toolkit.features import PreserveNames

TEXT = """agraph (float[a] X) => (float[a] Y) {
    hidden = Relu(X) b = Abs(hidden) c = Neg(b) d = Neg(c) e = Sin(d) Y = Add(e, hidden) }"""


@rewrite(root="Neg", after="Neg")
def moved(g, outer):
    """Neg(Neg(Abs(x))) -> Sqrt(Mul(x, x)), to which another result is equal."""
    inner = g.before(outer, "Neg")
    first = g.before(inner, "Abs")
    return {outer.output[0]: g.op.Identity(g.op.Sqrt(g.op.Mul(first.input[0], first.input[0])))}


@pytest.mark.parametrize("preserved", [False, True])
def test_a_result_gets_its_name_back(preserved: bool) -> None:
    features = [PreserveNames()] if preserved else []
    options = OptimizationOptions(patterns=[moved, Rename()], features=features)
    builder = GraphBuilder(
        model_from_text(TEXT), infer_shapes_options=True, optimization_options=options
    )
    builder.optimize()
    names = {node.op_type: node.output[0] for node in builder.nodes}
    assert (names["Sqrt"] == "d") is preserved, "d is what the result is called in the model"
    assert names["Sigmoid"] == "hidden", "a name that stays where it is needs nothing"
    assert names["Mul"] not in ("b", "c"), "it is another result"
    check_graph(builder.graph)


def test_names_do_not_collide() -> None:
    builder = GraphBuilder(model_from_text(TEXT))
    store = builder.store
    builder.attach_feature(feature := PreserveNames())
    store.append(oh.make_node("Cos", ["X"], ["new"]), 1)
    store.redirect("b", "new", [store.producers["b"]])
    store.redirect("c", "hidden", [store.producers["c"]])  # both have names of the model
    store.rename_result("new", "newer")
    store.redirect("d", "newer", [store.producers["d"]])
    builder.detach_feature(feature)
    assert store.producers["b"].op_type == "Cos", "the first one it stands for"
    assert "newer" not in store.producers and "c" not in store.producers
    store.check()


def test_outputs_stay() -> None:
    builder = GraphBuilder(model_from_text(TEXT))
    store = builder.store
    builder.attach_feature(feature := PreserveNames())
    store.append(oh.make_node("Cos", ["X"], ["new"]), 1)
    store.redirect("b", "new", [store.producers["b"]])
    store.add_outputs(["new"])
    builder.detach_feature(feature)
    assert "new" in store.producers
