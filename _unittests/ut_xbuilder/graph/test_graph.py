"""One graph, the graphs of its bodies."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from xbuilder import OptionError, ResultFacts
from xbuilder.graph.graph import Graph
from xbuilder.graph.model_scope import ModelScope
from xbuilder.nodes.value_infos import IOSpec


def new() -> Graph:
    graph = Graph(ModelScope({"": 18}))
    graph.input_specs.append(IOSpec("x"))
    graph.facts.refine("x", ResultFacts(1, ("n", "n+m")), "an input")
    graph.names.reserve("x")
    return graph


def test_a_body_sees_the_outer_graph() -> None:
    graph = new()
    child = graph.child()
    assert child.scope is graph.scope and child.parent is graph and child.root is graph
    assert child.has_name("x") and not child.is_given("x") and child.get_shape("x")[0] == "n"
    child.make_initializer("w", np.array([1], dtype=np.float32))
    assert child.is_given("w") and not graph.has_name("w")
    assert "w" in graph.names, "a name is taken everywhere"
    assert child.has_any_name({"w", "z"}) and child.has_any_name({"x"})
    assert not graph.has_any_name({"w"}) and not child.has_any_name({"z"})


def test_constraints_of_a_body_stay_inside() -> None:
    graph = new()
    child = graph.child()
    child.facts.constraints.add_equal("n", "m", "a test")
    assert child.dimensions.constraints is child.facts.constraints
    assert child.facts.constraints.prove_equal("n", "m") is True
    assert graph.facts.constraints.prove_equal("n", "m") is None


def test_names_of_dimensions_of_a_body() -> None:
    graph = new()
    graph.dimensions.normalize("k")
    child = graph.child({"n": "m"})
    assert graph.dimensions.declared("n") == "n"
    assert child.dimensions.declared("n") == "m", "it stands for a dimension of the outer graph"
    local = child.dimensions.declared("k")
    assert local != "k"
    assert child.dimensions.declared("k+1", is_formula=True) == f"{local}+1"
    assert graph.dimensions.is_written("m") and not child.dimensions.is_written(local)


def test_the_body_of_a_function() -> None:
    graph = Graph(ModelScope({"": 18}).for_function(("d", "f")))
    assert graph.is_function and not graph.child().is_function
    assert graph.child().scope.is_function
    body = new().for_call(("d", "f"), {"": 18})
    assert body.parent is None and not body.has_name("x")


def test_domains_and_versions() -> None:
    graph = new()
    graph.child().add_domain("ai.onnx.ml")
    graph.add_domain("d", 3)
    graph.add_domain("d", 4)
    assert graph.opsets["d"] == 3 and "ai.onnx.ml" in graph.opsets
    assert graph.main_opset == 18 and graph.ir_version == 8
    graph.scope.ir_version = 10
    assert graph.ir_version == 10


def test_initializers() -> None:
    graph = new()
    one = graph.make_initializer("", np.array([1], dtype=np.int64), source="a test")
    assert graph.make_initializer("", np.array([1], dtype=np.int64)) == one
    assert graph.constants.sources == {one: "a test"}
    assert graph.make_initializer("x", 1, give_unique=True) == "x1"
    with pytest.raises(OptionError, match="already taken"):
        graph.make_initializer("x", 1)
    empty = np.zeros((0, 2), dtype=np.float32)
    graph.make_initializer("empty", empty)
    with pytest.raises(OptionError, match="no element"):
        graph.make_initializer("other", empty, allow_empty=False)
    assert graph.get_type("empty") == TensorProto.FLOAT


def test_symbols_of_the_inputs() -> None:
    assert new().input_symbols == {"n": "x[0]", "m": "x[1]"}
