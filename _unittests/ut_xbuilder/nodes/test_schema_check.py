"""A new node the schema of its operator refuses is not made."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from xbuilder import GraphBuilder
from xbuilder.errors import InvalidModelError
from xbuilder.nodes.making import make_node_proto
from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.schema_check import check_node, form_of, is_standard, node_check


@pytest.mark.parametrize(
    "op_type,inputs,attributes,message",
    [
        ("Conv", ["x", "x"], {"kernel_shape": ["k", "l"]}, "'kernel_shape'.*STRINGS.*INTS"),
        ("Concat", ["x", "x"], {"axis": 0.5}, "'axis'.*FLOAT, INT expected"),
        ("Concat", ["x", "x"], {}, "'axis' is missing"),
        ("Add", ["x"], {}, r"1 input\(s\), at least 2"),
        ("Exp", ["x", "x"], {}, r"2 input\(s\), at most 1"),
    ],
)
def test_the_builder_refuses(op_type, inputs, attributes, message) -> None:
    g = GraphBuilder(18)
    g.make_tensor_input("x", TensorProto.FLOAT, ("a", 3))
    for _ in range(2):
        with pytest.raises(InvalidModelError, match=message):
            g.make_node(op_type, inputs, **attributes)
    assert not g.nodes


def test_what_onnx_does_not_know() -> None:
    check_node(make_node_proto("Mine", ["x"], ["y"], "mine", kwargs={"axis": 0.5}), 1)
    check_node(make_node_proto("Gelu", ["x", "b"], ["y"]), 18)


def record_of(op_type: str, n_inputs: int = 1, **attributes: object) -> NodeRecord:
    return NodeRecord(make_node_proto(op_type, ["x"] * n_inputs, ["y"], kwargs=attributes), 0, 0)


@pytest.mark.parametrize(
    "op_type,n_inputs,attributes,expected",
    [
        ("Flatten", 1, {}, True),
        ("Flatten", 1, {"axis": 1}, True),
        ("Flatten", 1, {"axis": 0.5}, False),
        ("Flatten", 2, {}, False),
        ("Flatten", 1, {"other": 1}, False),
        ("Concat", 1, {}, False),
        ("Nobody", 1, {}, False),
    ],
)
def test_is_standard(op_type, n_inputs, attributes, expected) -> None:
    assert is_standard(form_of(record_of(op_type, n_inputs, **attributes)), 18) is expected


def test_a_graph_is_checked_node_by_node() -> None:
    """A form found valid says nothing of another one of the same operator."""
    check = node_check({"": 18})
    for _ in range(2):
        check(record_of("Flatten", axis=1))
        check(record_of("Flatten"))
        for wrong in (
            record_of("Flatten", axis=0.5),
            record_of("Flatten", other=1),
            record_of("Flatten", 2),
        ):
            with pytest.raises(InvalidModelError, match="Node Flatten"):
                check(wrong)


def test_calls_to_functions() -> None:
    """A function may have the name of an operator and other attributes."""
    check = node_check({"": 18}, {("", "Flatten")})
    check(record_of("Flatten", axis=0.5))
    with pytest.raises(InvalidModelError, match="2 input"):
        check(record_of("Flatten", 2, axis=0.5))
