"""A new node the schema of its operator refuses is not made."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from xbuilder import GraphBuilder
from xbuilder.errors import InvalidModelError
from xbuilder.nodes.making import make_node_proto
from xbuilder.nodes.schema_check import check_node


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
