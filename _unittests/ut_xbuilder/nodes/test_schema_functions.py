"""The functions that define operators."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from onnx import TensorProto

from xbuilder.nodes.schema_functions import changed_operators, has_function, schema_function

FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL


@pytest.mark.parametrize(
    ("op_type", "opset", "expected"),
    [("Swish", 28, True), ("Attention", 28, True), ("Relu", 17, False), ("Relu", 18, True)],
)
def test_has_function(op_type: str, opset: int, expected: bool) -> None:
    assert has_function(op_type, "", opset) is expected


def test_unknown_operator() -> None:
    node = oh.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")
    assert schema_function(node, 1, [FLOAT]) is None
    assert not has_function("Gelu", "com.microsoft", 1)
    assert changed_operators("Gelu", "com.microsoft", 1) == frozenset()


@pytest.mark.parametrize(
    ("opset", "expected"), [(18, True), (13, False)], ids=["function", "no function"]
)
def test_operator(opset: int, expected: bool) -> None:
    found = schema_function(oh.make_node("Relu", ["x"], ["y"]), opset, [FLOAT])
    assert (found is not None) is expected


@pytest.mark.parametrize(("alpha", "expected"), [({}, 1.0), ({"alpha": 3.0}, 3.0)])
def test_attributes_take_the_place_of_references(alpha: dict[str, float], expected: float) -> None:
    """The value of the node, or the default one."""
    node = oh.make_node("Swish", ["x"], ["y"], **alpha)
    found = schema_function(node, 24, [FLOAT])
    assert found is not None and found.node[0].attribute[0].f == expected


def test_missing_inputs() -> None:
    """The function of Clip depends on the bounds the node has."""
    one = schema_function(oh.make_node("Clip", ["x", "", "b"], ["y"]), 13, [FLOAT, 0, FLOAT])
    assert one is not None and [n.op_type for n in one.node] == ["Less", "Where"]


def test_depends_on_types() -> None:
    """The function of CastLike writes the type of its second input."""
    node = oh.make_node("CastLike", ["x", "y"], ["z"])
    found = schema_function(node, 19, [FLOAT, BOOL])
    assert found is not None and found.node[0].attribute[0].i == BOOL


def test_function_newer_than_the_opset() -> None:
    """The function of LeakyRelu was written for opset 16."""
    assert schema_function(oh.make_node("LeakyRelu", ["x"], ["y"]), 6, [FLOAT]) is None


@pytest.mark.parametrize(
    ("op_type", "opset", "expected"),
    [
        ("Swish", 24, set()),
        ("Swish", 25, {"CastLike", "Constant"}),
        ("HardSwish", 18, set()),
        ("Attention", 28, set()),
        ("Relu", 13, set()),
    ],
)
def test_changed_operators(op_type: str, opset: int, expected: set[str]) -> None:
    assert changed_operators(op_type, "", opset) == expected
