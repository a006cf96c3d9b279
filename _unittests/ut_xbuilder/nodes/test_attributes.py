"""Attributes of a node as python values."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx.numpy_helper import from_array

from xbuilder.errors import UnknownAttributeError
from xbuilder.nodes.attributes import attributes_of, find_attribute, has_reference


def test_attributes():
    node = oh.make_node(
        "Any",
        [],
        ["y"],
        i=1,
        f=0.5,
        s="text",
        b=b"\xff",
        ints=[1, 2],
        floats=[0.5],
        strings=["a", "b"],
        t=from_array(np.array([1, 2])),
    )
    found = attributes_of(node)
    assert found.pop("t").tolist() == [1, 2]
    assert found == {
        "i": 1,
        "f": 0.5,
        "s": "text",
        "b": b"\xff",
        "ints": [1, 2],
        "floats": [0.5],
        "strings": ["a", "b"],
    }
    assert find_attribute(node, "i").i == 1 and find_attribute(node, "z") is None
    ref = node.attribute.add()
    ref.name, ref.ref_attr_name, ref.type = "r", "other", 1
    assert has_reference(node)
    with pytest.raises(UnknownAttributeError, match="'r' refers to 'other'"):
        attributes_of(node)
