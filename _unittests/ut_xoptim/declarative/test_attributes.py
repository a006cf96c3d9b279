"""Attributes compared with those a rewrite was written with."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from xoptim.declarative.attributes import same_attributes


def test_same_attributes() -> None:
    def node(**kwargs: Any) -> onnx.NodeProto:
        return onnx.helper.make_node("LeakyRelu", ["x"], ["y"], **kwargs)

    assert same_attributes(node(), node(alpha=0.01))
    assert same_attributes(node(alpha=0.1), node(alpha=float(np.float32(0.1))))
    assert not same_attributes(node(), node(alpha=0.1))
    reference = node()
    att = reference.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT)
    att.ref_attr_name = "slope"
    assert not same_attributes(reference, node()), "the value is known by the caller only"
    a, b = (
        onnx.helper.make_node("Op", [], ["y"], domain="d", value=onnx.numpy_helper.from_array(v))
        for v in (np.array([1.0]), np.array([2.0]))
    )
    assert same_attributes(a, a) and not same_attributes(a, b)
