"""A missing attribute says what the attribute with its default value says."""

from __future__ import annotations

import onnx
import onnx.helper as oh
import pytest

from xbuilder.nodes.canonical_attributes import canonical_attributes

SAME = [
    ("Transpose", 18, {"perm": [2, 1, 0]}),
    ("Gemm", 18, {"alpha": 1.0, "beta": 1.0, "transA": 0}),
    ("Softmax", 13, {"axis": -1}),
    ("Softmax", 11, {"axis": 1}),
    ("Conv", 18, {"strides": [1, 1], "dilations": [1, 1], "pads": [0] * 4, "group": 1}),
    ("MaxPool", 12, {"storage_order": 0, "strides": [1], "auto_pad": "NOTSET"}),
    ("ConvTranspose", 18, {"output_padding": [0, 0]}),
]
OTHERS = [
    ("Transpose", 18, {"perm": [0, 1]}),
    ("Softmax", 11, {"axis": -1}),
    ("Softmax", 13, {"axis": 1}),
    ("Gemm", 18, {"alpha": 1.0000001}),
    ("Conv", 18, {"strides": [1, 2]}),
    ("Conv", 18, {"pads": [1, 0]}),
    ("Unknown", 18, {"strides": [1, 1]}),
]


@pytest.mark.parametrize("op_type,opset,attributes", SAME)
def test_what_absence_says(op_type: str, opset: int, attributes: dict[str, object]) -> None:
    node = oh.make_node(op_type, ["x"], ["y"], **attributes)
    assert canonical_attributes(node, opset) == frozenset()


@pytest.mark.parametrize("op_type,opset,attributes", OTHERS)
def test_what_absence_does_not_say(op_type: str, opset: int, attributes: dict[str, object]) -> None:
    node = oh.make_node(op_type, ["x"], ["y"], **attributes)
    assert len(canonical_attributes(node, opset)) == 1


def test_domains() -> None:
    named = oh.make_node("Softmax", ["x"], ["y"], domain="ai.onnx", axis=-1)
    assert canonical_attributes(named, 13) == frozenset()
    other = oh.make_node("Transpose", ["x"], ["y"], domain="mine", perm=[1, 0])
    assert len(canonical_attributes(other, 1)) == 1


@pytest.mark.parametrize("reference", ["", "p"])
def test_an_attribute_without_integers_is_kept(reference: str) -> None:
    """One of a function, or one no operator accepts."""
    node = oh.make_node("Transpose", ["x"], ["y"])
    node.attribute.add(name="perm", type=onnx.AttributeProto.INTS, ref_attr_name=reference)
    assert len(canonical_attributes(node, 18)) == 1


def test_order_and_documentation() -> None:
    a = oh.make_node("Gemm", ["x"], ["y"], alpha=2.0, transB=1)
    b = oh.make_node("Gemm", ["x"], ["y"], transB=1, alpha=2.0)
    b.attribute[0].doc_string = "why"
    assert canonical_attributes(a, 18) == canonical_attributes(b, 18)


def test_every_default_of_every_schema() -> None:
    """An attribute with its default value is left out, whatever the operator and its version."""
    seen = 0
    for schema in onnx.defs.get_all_schemas_with_history():
        for attribute in schema.attributes.values():
            if attribute.default_value.type:
                node = oh.make_node(schema.name, [], [], domain=schema.domain)
                node.attribute.append(attribute.default_value)
                assert canonical_attributes(node, schema.since_version) == frozenset()
                seen += 1
    assert seen > 500
