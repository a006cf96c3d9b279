"""Nodes added to a graph: results inferred, constants noted."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from ut_xbuilder.graph_checks import parse

from xbuilder import FactError, GraphBuilder, ResultFacts
from xbuilder.graph.graph import Graph
from xbuilder.graph.model_scope import ModelScope
from xbuilder.inference.graph_inference import (
    add_node,
    infer_and_note,
    infer_missing,
    infer_record,
)
from xbuilder.nodes.value_infos import IOSpec


def new() -> Graph:
    graph = Graph(ModelScope({"": 18}))
    graph.input_specs.append(IOSpec("x"))
    graph.facts.refine("x", ResultFacts(1, ("n", 3)), "an input")
    graph.make_initializer("w", np.ones((3,), dtype=np.float32))
    return graph


def test_results_are_inferred() -> None:
    graph = new()
    record = add_node(graph, oh.make_node("Add", ["x", "w"], ["y"]))
    assert graph.get_shape("y") == ("n", 3) and not graph.constants.is_constant("y")
    (facts,) = infer_record(graph, record) or ()
    assert facts == graph.facts["y"]


def test_constants_are_always_inferred() -> None:
    graph = new()
    graph.infer_nodes = False
    add_node(graph, oh.make_node("Neg", ["x"], ["y"]))
    add_node(graph, oh.make_node("Neg", ["w"], ["v"]))
    assert not graph.has_type("y")
    assert graph.get_shape("v") == (3,) and graph.constants.is_constant("v")


def test_a_check_sees_the_facts_before_they_are_kept() -> None:
    graph = new()
    record = graph.store.append(oh.make_node("Neg", ["x"], ["y"]))

    def check(record, inferred):
        assert inferred[0].shape == ("n", 3) and not graph.has_shape("y")
        raise FactError("stop")

    with pytest.raises(FactError, match="stop"):
        infer_and_note(graph, record, check=check)
    assert not graph.has_shape("y")


def test_names_inside_a_new_body_are_taken() -> None:
    graph = new()
    body = oh.make_graph([oh.make_node("Neg", ["x"], ["inside"], name="N")], "g", [], [])
    add_node(graph, oh.make_node("If", ["c"], [], then_branch=body, else_branch=body))
    assert graph.unique_name("inside") == "inside1" and graph.unique_node_name("N") == "N1"


def test_what_a_file_does_not_declare_is_inferred_once():
    text = """agraph (float[a,b] x) => (float[b,a] y) <float[b,a] u>
        { t = Transpose(x) u = Neg(t) y = Abs(u) }"""
    builder = GraphBuilder(parse(text), infer_shapes_options=False)
    assert not builder.has_type("t") and builder.get_shape("u") == ("b", "a")
    infer_missing(builder.graph)
    assert builder.get_shape("t") == ("b", "a")
    assert not builder.graph.is_uninferred
    assert not GraphBuilder(parse(text)).graph.is_uninferred
