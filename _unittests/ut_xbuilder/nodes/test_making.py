"""Nodes and attributes out of python values."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import AttributeProto

from xbuilder.nodes.making import make_attribute, make_node_proto


@pytest.mark.parametrize(
    "op_type,name,value,kind",
    [
        ("Clip", "min", 1, AttributeProto.INT),  # not an attribute any more
        ("LeakyRelu", "alpha", 1, AttributeProto.FLOAT),
        ("Transpose", "perm", (1, 0), AttributeProto.INTS),
        ("Transpose", "perm", [], AttributeProto.INTS),
        ("Constant", "value", np.array([1.0]), AttributeProto.TENSOR),
        ("Constant", "value_floats", [1, 2], AttributeProto.FLOATS),
        ("Unknown", "names", ["a", "b"], AttributeProto.STRINGS),
        ("Unknown", "text", "a", AttributeProto.STRING),
        ("Unknown", "flag", True, AttributeProto.INT),
    ],
)
def test_attributes(op_type, name, value, kind):
    assert make_attribute(op_type, "", name, value).type == kind


def test_nodes():
    node = make_node_proto(
        "LeakyRelu",
        ["x"],
        ["y"],
        name="n",
        kwargs={"doc_string": "doc", "alpha": 1, "skipped": None},
        metadata_props={"k": "v"},
    )
    assert node.doc_string == "doc" and node.name == "n" and node.domain == ""
    assert [(a.name, a.f) for a in node.attribute] == [("alpha", 1.0)]
    assert [(m.key, m.value) for m in node.metadata_props] == [("k", "v")]


def test_attributes_are_sorted():
    node = make_node_proto(
        "Conv", [], ["y"], "d", kwargs={"strides": [1], "group": 2, "dilations": [1]}
    )
    assert node.domain == "d"
    assert [a.name for a in node.attribute] == ["dilations", "group", "strides"]
