"""Finds a small graph in a big one."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as oh
import pytest

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.declarative.compiled import Reasons
from xoptim.declarative.matcher_checks import is_convex, is_tensor
from xoptim.declarative.written_graphs import CompiledTemplate, GraphTemplate, compiled_pattern
from xoptim.testing import model_from_text


def optimizer(body: str, inits: str = "float one = {1}, float[1] ones = {1}") -> Any:
    text = f"""agraph (float[a, 4] X, float[a, 4] Z, float U) => (float[] Y) <
        {inits}, float[4] w = {{1, 2, 3, 4}}, int64 i = {{1}}, int64[1] i1 = {{1}}> {{ {body} }}"""
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    return GraphBuilderPatternOptimization(builder, None)


def pattern(
    rows: list[tuple[str, list[str], list[str]]], inputs: list[str], **kwargs: Any
) -> CompiledTemplate:
    """A pattern whose last node gives the first result."""
    nodes = [oh.make_node(*row) for row in rows]
    kwargs.setdefault("constants", {})
    kwargs.setdefault("outputs", [nodes[-1].output[0]])
    return compiled_pattern(GraphTemplate(nodes, inputs, **kwargs))


def find(g: Any, graph: CompiledTemplate, name: str) -> list[dict[str, str]]:
    """Every way to bind the inputs of a pattern ending at a result."""
    root = g.record(g.node_before(name))
    if graph.compiled.graph.results[0].source.op_type != root.op_type:
        return []
    found = [bound for _, bound in graph.compiled.matches(g, root)]
    return [{i: b.get(i, "") for i in graph.graph.inputs} for b in found]


def reason(g: Any, graph: CompiledTemplate, name: str) -> str:
    """Why there is none."""
    reasons = Reasons()
    assert not list(graph.compiled.matches(g, g.record(g.node_before(name)), reasons))
    return reasons.best()


def test_simple() -> None:
    g = optimizer("m = Div(X, Z) Y = Sub(m, X)")
    graph = pattern([("Div", ["x", "y"], ["m"]), ("Sub", ["m", "z"], ["r"])], ["x", "y", "z"])
    assert graph.compiled.root == "Sub" and graph.compiled.nearest == ("Div",)
    assert find(g, graph, "Y") == [{"x": "X", "y": "Z", "z": "X"}]


def test_every_order_of_commutative_operators() -> None:
    g = optimizer("m = Mul(X, Z) Y = Add(m, X)")
    graph = pattern([("Mul", ["x", "y"], ["m"]), ("Add", ["m", "z"], ["r"])], ["x", "y", "z"])
    found = find(g, graph, "Y")
    assert {"x": "X", "y": "Z", "z": "X"} in found and {"x": "Z", "y": "X", "z": "X"} in found
    assert len(found) == 2


def test_backtracking() -> None:
    """Both operands are Mul: the first attempt may bind the wrong one."""
    g = optimizer("a = Mul(X, X) b = Mul(X, Z) r = Relu(b) c = Mul(r, Z) Y = Add(a, c)")
    rows = [
        ("Relu", ["q"], ["p"]),
        ("Mul", ["p", "y"], ["m"]),
        ("Add", ["m", "z"], ["r"]),
    ]
    found = find(g, pattern(rows, ["q", "y", "z"]), "Y")
    assert found == [{"q": "b", "y": "Z", "z": "a"}]


def test_three_inputs() -> None:
    g = optimizer("r = Relu(X) Y = Max(Z, r, X)")
    graph = pattern([("Relu", ["x"], ["p"]), ("Max", ["x", "p", "z"], ["r"])], ["x", "z"])
    assert find(g, graph, "Y") == [{"x": "X", "z": "Z"}]


def test_shared_and_different_nodes() -> None:
    """Two nodes of the pattern are two nodes of the graph."""
    rows = [("Neg", ["x"], ["a"]), ("Neg", ["x"], ["b"]), ("Sub", ["a", "b"], ["r"])]
    graph = pattern(rows, ["x"])
    assert find(optimizer("a = Neg(X) b = Neg(X) Y = Sub(a, b)"), graph, "Y")
    assert not find(optimizer("a = Neg(X) Y = Sub(a, a)"), graph, "Y")
    shared = pattern([("Neg", ["x"], ["a"]), ("Sub", ["a", "a"], ["r"])], ["x"])
    assert find(optimizer("a = Neg(X) Y = Sub(a, a)"), shared, "Y")
    assert not find(optimizer("a = Neg(X) b = Neg(X) Y = Sub(a, b)"), shared, "Y")


def test_outputs() -> None:
    rows = [("Split", ["x"], ["a", "b"]), ("Sub", ["a", "b"], ["r"])]
    graph = pattern(rows, ["x"])
    g = optimizer("p, q = Split<axis = 1, num_outputs = 2>(X) Y = Sub(p, q)")
    assert find(g, graph, "Y") == [{"x": "X"}]
    g = optimizer("p, q = Split<axis = 1, num_outputs = 2>(X) Y = Sub(q, p)")
    assert "another output of Split" in reason(g, graph, "Y")
    g = optimizer("p, q, s, t = Split<axis = 1, num_outputs = 4>(X) Y = Sub(p, q)")
    assert "Split has 4 outputs, 2 expected" in reason(g, graph, "Y")


def test_a_missing_result() -> None:
    graph = pattern(
        [("LayerNormalization", ["x", "s"], ["r", "m"])], ["x", "s"], outputs=["r", "m"]
    )
    g = optimizer("Y = LayerNormalization(X, w)")
    assert reason(g, graph, "Y") == "an optional result is missing"


def test_nodes_the_root_does_not_depend_on() -> None:
    """The second result is found from what it reads."""
    rows = [("Neg", ["x"], ["n"]), ("Abs", ["n"], ["b"]), ("Relu", ["n"], ["a"])]
    graph = pattern(rows, ["x"], outputs=["a", "b"])
    g = optimizer("n = Neg(X) s = Sin(n) u = Relu(n) v = Abs(n) Y = Sum(u, v, s)")
    assert find(g, graph, "u") == [{"x": "X"}]
    g = optimizer("n = Neg(X) u = Relu(n) v = Cos(n) Y = Add(u, v)")
    assert "Abs was expected" in reason(g, graph, "u")


def test_a_part_that_is_not_connected() -> None:
    rows = [("Neg", ["x"], ["a"]), ("Abs", ["y"], ["b"])]
    graph = pattern(rows, ["x", "y"], outputs=["a", "b"])
    assert "not connected" in reason(optimizer("Y = Neg(X) v = Abs(Z)"), graph, "Y")


def test_reason_of_the_attempt_that_went_the_furthest() -> None:
    rows = [
        ("Relu", ["x"], ["a"]),
        ("Neg", ["a"], ["b"]),
        ("Add", ["b", "y"], ["r"]),
    ]
    g = optimizer("a = Sin(X) b = Neg(a) Y = Add(b, Z)")
    assert reason(g, pattern(rows, ["x", "y"]), "Y") == "no Relu before Neg, Sin was found"
    g = optimizer("b = Sin(X) Y = Add(b, Z)")
    assert reason(g, pattern(rows, ["x", "y"]), "Y") == "no Neg before Add, Sin was found"


def test_types_of_inputs() -> None:
    g = optimizer("Y = Neg(X)")
    for elem_type, count in ((0, 1), (1, 1), (11, 0)):
        graph = pattern([("Neg", ["x"], ["r"])], ["x"], types={"x": elem_type})
        assert len(find(g, graph, "Y")) == count


@pytest.mark.parametrize(
    ("body", "value", "count"),
    [
        ("Y = Div(X, one)", 1.0, 1),
        ("Y = Div(X, one)", [1.0], 1),
        ("Y = Div(X, ones)", 1.0, 1),
        ("Y = Div(X, one)", [[1.0]], 0),
        ("Y = Div(X, one)", 2.0, 0),
        ("Y = Div(X, w)", 1.0, 0),
        ("Y = Div(X, w)", [1.0, 2.0, 3.0, 4.0], 1),
        ("Y = Div(X, w)", [1.0, 2.0, 3.0, 5.0], 0),
        ("Y = Div(X, Z)", 1.0, 0),
        ("Y = Div(U, ones)", 1.0, 0),  # the rank of the result would change
        ("Y = Div(U, one)", 1.0, 1),
    ],
)
def test_constants(body: str, value: Any, count: int) -> None:
    constants = {"c": np.array(value, dtype=np.float32)}
    graph = pattern([("Div", ["x", "c"], ["r"])], ["x"], constants=constants)
    assert len(find(optimizer(body), graph, "Y")) == count


def test_the_rank_of_an_index_matters() -> None:
    """Gather(x, 1) and Gather(x, [1]) have different ranks."""
    constants = {"c": np.array(1, dtype=np.int64)}
    graph = pattern([("Gather", ["x", "c"], ["r"])], ["x"], constants=constants)
    assert find(optimizer("Y = Gather(X, i)"), graph, "Y")
    assert not find(optimizer("Y = Gather(X, i1)"), graph, "Y")


def test_is_tensor() -> None:
    g = optimizer("Y = Neg(X)", "float s = {0.7978515625}, int32 k = {3}, bool t = {1}")
    assert is_tensor(g, "s", np.array(0.7978845608, dtype=np.float32))
    assert not is_tensor(g, "s", np.array(0.8, dtype=np.float32))
    assert not is_tensor(g, "s", np.array(0.7978515625)), "another float type"
    assert not is_tensor(g, "s", np.array(0.7978515625, dtype=np.float16)), "another float type"
    assert is_tensor(g, "k", np.array(3, dtype=np.int32))
    assert not is_tensor(g, "k", np.array(3, dtype=np.int64)), "another type"
    assert not is_tensor(g, "k", np.array(3.0))
    assert is_tensor(g, "t", np.array(True))
    assert not is_tensor(g, "X", np.array(1.0))
    small = np.array([0.7978845608], dtype=np.float32)
    assert not is_tensor(g, "s", small)
    assert is_tensor(g, "s", small, ("X",)) and not is_tensor(g, "s", small, ("U",))


def test_is_convex() -> None:
    g = optimizer("a = Neg(X) b = Abs(a) c = Sub(X, b) Y = Add(a, c)")
    a, b, c = (g.record(g.node_before(n)) for n in "abc")
    assert is_convex(g.store, [a, b]) and is_convex(g.store, [a, b, c])
    assert not is_convex(g.store, [a, c]), "b is between them"


def test_root() -> None:
    for domain, root in (("", "Neg"), ("ai.onnx", "Neg"), ("d", "d::Neg")):
        node = oh.make_node("Neg", ["x"], ["y"], domain=domain)
        graph = compiled_pattern(GraphTemplate([node], ["x"], ["y"], {}))
        assert graph.compiled.root == root


def test_more_loops_than_python_nests() -> None:
    """A chain of thirty commutative operators."""
    rows = [("Add", [f"s{i}", "x"], [f"s{i + 1}"]) for i in range(30)]
    graph = pattern(rows, ["s0", "x"])
    body = " ".join(f"t{i + 1} = Add(X, t{i})" for i in range(29))
    g = optimizer(f"t0 = Neg(X) {body} Y = Add(t29, X)")
    assert find(g, graph, "Y") == [{"s0": "t0", "x": "X"}]
