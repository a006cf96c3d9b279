"""Reading local functions: size, nodes at every depth, attributes of a call."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from onnx import AttributeProto
from ut_xbuilder.graph_checks import functions_model, parse

from xbuilder import GraphBuilder
from xbuilder.nodes.functions import all_nodes, bind_attributes, body_size, function_key


@pytest.mark.parametrize(
    "functions,expected",
    [
        (["g (u) => (v) { v = Neg(u) }"], 1),
        (
            [
                "g (u) => (v) { t = f.h(u) w = f.h(t) v = Neg(w) }",
                "h (u) => (v) { a = Neg(u) v = Abs(a) }",
            ],
            5,
        ),
        (["g (u) => (v) { v = f.h(u) }", "h (u) => (v) { v = f.g(u) }"], 10**6),
    ],
)
def test_size_of_a_body(functions, expected):
    given = functions_model("agraph (float[2] x) => (float[2] y) { y = f.g(x) }", *functions)
    assert body_size(GraphBuilder(given).functions, ("f", "g")) == expected


def test_nodes_at_every_depth():
    graph = parse(
        """agraph (float[2] x, bool c) => (float[2] y) {
            y = If (c) < then_branch = a () => (r) { r = Neg(x) },
                         else_branch = b () => (s) { t = Abs(x) s = Exp(t) } > }"""
    ).graph
    assert sorted(n.op_type for n in all_nodes(graph.node)) == ["Abs", "Exp", "If", "Neg"]


@pytest.mark.parametrize(
    "given,defaults,expected", [(2, None, 2), (None, 1, 1), (2, 1, 2), (None, None, None)]
)
def test_an_attribute_of_the_call(given, defaults, expected):
    """The value of the call, else the default value, else nothing."""
    node = oh.make_node("Softmax", ["u", "w"], ["v"])
    reference = AttributeProto(name="axis", ref_attr_name="a", type=AttributeProto.INT)
    node.attribute.append(reference)
    values = [{} if v is None else {"a": oh.make_attribute("a", v)} for v in (given, defaults)]
    bound = bind_attributes(node, *values, missing={"w"})
    assert [a.i for a in bound.attribute if a.name == "axis"] == [expected] * (expected is not None)
    assert list(bound.input) == ["u", ""]
    assert node.attribute[0].ref_attr_name == "a", "the function is not changed"


def test_key_of_a_function():
    node = oh.make_node("F", [], ["y"], domain="ai.onnx")
    assert function_key(node) == ("", "F")
    node.overload = "o"
    assert function_key(node) == ("", "F:o")
