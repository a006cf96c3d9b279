"""Attributes whose declared type is not the one of their value."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import AttributeProto, ModelProto, NodeProto

from xbuilder import GraphBuilder
from xbuilder.errors import InvalidModelError
from xbuilder.nodes.mended_attributes import mended, mended_function
from xoptim.testing.running import run_onnxruntime

FLOAT_BODY = """g (float[n] x, bool c) => (float[n] y) { y = If(c) <
  then_branch = t () => (float[n] a) { k = Constant<value_float=2.0>() a = Mul(x, k) },
  else_branch = e () => (float[n] b) { b = LeakyRelu<alpha=0.5>(x) }> }"""
FUNCTION = """g (float[n] x) => (float[n] y) { y = local.f(x) }
  <domain: "local", opset_import: ["": 18]>
  f (x) => (y) { k = Constant<value_floats=[2.0]>() y = Mul(x, k) }"""


def parsed(text: str) -> ModelProto:
    """A model in ONNX text."""
    header = '<ir_version: 9, opset_import: ["": 18, "local": 1]>'
    return onnx.parser.parse_model(f"{header} {text}")


def constant(text: str, kind: str, name: str = "") -> NodeProto:
    """A Constant node whose attribute has another type, or another name."""
    node = onnx.parser.parse_node(f"y = Constant<{text}>()")
    node.attribute[0].type = AttributeProto.AttributeType.Value(kind)
    node.attribute[0].name = name or node.attribute[0].name
    return node


@pytest.mark.parametrize("kind", ["UNDEFINED", "INT", "TENSOR", "INTS", "STRINGS"])
@pytest.mark.parametrize(
    "text", ["value_float = 2.0", "value_floats = [2.0]", 'value_string = "a"']
)
def test_the_type_of_a_constant_follows_its_value(text, kind):
    node = constant(text, kind)
    expected = onnx.parser.parse_node(f"y = Constant<{text}>()")
    with pytest.warns(UserWarning, match="does not have the type of its value"):
        assert mended(node, {"": 18}) == expected
    assert node.attribute[0].type == AttributeProto.AttributeType.Value(kind)


@pytest.mark.parametrize(
    "text,kind,wrong",
    [
        ("value_int = 3", "INT", "value_float"),
        ("value_ints = [3]", "INTS", "value_floats"),
        ("value = float[1] {3}", "TENSOR", "value_int"),
    ],
)
def test_a_constant_is_what_its_type_says(text, kind, wrong):
    """onnxruntime reads the value of the declared type, whatever the name."""
    with pytest.warns(UserWarning, match="is written"):
        found = mended(constant(text, kind, wrong), {"": 18})
    assert found == onnx.parser.parse_node(f"y = Constant<{text}>()")


def test_the_value_of_the_declared_type_is_read():
    """The value of the type that the name says is another one, which onnxruntime does not read."""
    model = parsed("g (float[n] x) => (int64 y) { y = Constant<value_int=3>() }")
    attribute = model.graph.node[0].attribute[0]
    attribute.name, attribute.f = "value_float", 2.0
    with pytest.warns(UserWarning, match="'value_int' of type INT is written"):
        found = GraphBuilder(model).to_onnx()
    feeds = {"x": np.ones(1, np.float32)}
    assert run_onnxruntime(model, feeds)[0] == run_onnxruntime(found, feeds)[0] == 3


@pytest.mark.parametrize(
    "node",
    [
        constant("value_float = 2.0", "FLOAT"),
        constant("value_float = 2.0", "INT", "value_string"),
        onnx.parser.parse_node("y = custom.Op<axis = 2.0>(x)"),
        onnx.parser.parse_node("y = Flatten<axis = 2.0>(x)"),
    ],
    ids=["right", "neither", "unknown operator", "another value"],
)
def test_what_stays(node):
    assert mended(node, {"": 18}) is node


def test_a_value_of_another_type_is_refused():
    model = parsed("g (float[n, m] x) => (float[p, q] y) { y = Flatten<axis = 2.0>(x) }")
    with pytest.raises(InvalidModelError, match="'axis' is of type FLOAT, INT expected"):
        GraphBuilder(model)


@pytest.mark.parametrize("condition,expected", [(True, -2.0), (False, -0.5)])
def test_bodies(condition, expected):
    model = parsed(FLOAT_BODY)
    for branch in model.graph.node[0].attribute:
        for node in branch.g.node:
            for attribute in node.attribute:
                attribute.type = AttributeProto.INT
    with pytest.warns(UserWarning, match="is written"):
        after = GraphBuilder(model).to_onnx()
    feeds = {"x": -np.ones(2, np.float32), "c": np.array(condition)}
    assert run_onnxruntime(after, feeds)[0].tolist() == [expected] * 2


@pytest.mark.parametrize("inline", [True, False])
def test_functions(inline):
    model = parsed(FUNCTION)
    model.functions[0].node[0].attribute[0].type = AttributeProto.INT
    with pytest.warns(UserWarning, match="is written"):
        after = GraphBuilder(model).to_onnx(inline=inline)
    assert run_onnxruntime(after, {"x": np.ones(2, np.float32)})[0].tolist() == [2.0, 2.0]
    assert model.functions[0].node[0].attribute[0].type == AttributeProto.INT


def test_a_right_function_is_not_copied():
    function = parsed(FUNCTION).functions[0]
    assert mended_function(function) is function


def test_each_node_of_one_form_is_mended():
    model = parsed(
        "g (float[n] x) => (float[n] y) { a = LeakyRelu<alpha=0.5>(x) y = LeakyRelu<alpha=0.5>(a) }"
    )
    for node in model.graph.node:
        node.attribute[0].type = AttributeProto.UNDEFINED
    with pytest.warns(UserWarning, match="'alpha' of type FLOAT"):
        after = GraphBuilder(model).to_onnx()
    assert run_onnxruntime(after, {"x": -np.ones(1, np.float32)})[0].tolist() == [-0.25]


@pytest.mark.parametrize(
    "second", [("value_int", 5), ("value", onnx.helper.make_tensor("", 1, [], [5.0]))]
)
@pytest.mark.parametrize("is_inner", [False, True])
def test_the_first_value_of_a_constant_is_read(second, is_inner):
    model = parsed(
        FLOAT_BODY
        if is_inner
        else "g (float[n] x) => (float[n] y) { k = Constant<value_float=2.0>() y = Mul(x, k) }"
    )
    nodes = model.graph.node[0].attribute[0].g.node if is_inner else model.graph.node
    nodes[0].attribute.append(onnx.helper.make_attribute(*second))
    feeds = {"x": np.array([1, -3], np.float32), **({"c": np.array(True)} if is_inner else {})}
    with pytest.warns(UserWarning, match=f"'value_float' is read, '{second[0]}' is removed"):
        found = GraphBuilder(model).to_onnx()
    np.testing.assert_array_equal(run_onnxruntime(model, feeds)[0], [2, -6])
    np.testing.assert_array_equal(run_onnxruntime(found, feeds)[0], [2, -6])
