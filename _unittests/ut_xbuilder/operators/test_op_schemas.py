"""Schemas of operators in onnx."""

from __future__ import annotations

import pytest

from xbuilder.operators.op_schemas import schema_of


@pytest.mark.parametrize(("opset", "expected"), [(12, 11), (13, 13), (18, 13)])
def test_version(opset, expected):
    schema = schema_of("Softmax", "", opset)
    assert schema is not None and schema.since_version == expected


def test_last_version():
    schema = schema_of("Scaler", "ai.onnx.ml")
    assert schema is not None and schema.domain == "ai.onnx.ml"


@pytest.mark.parametrize(
    ("op_type", "domain", "opset"),
    [("Nobody", "", 18), ("Nobody", "", None), ("Gelu", "", 19), ("Relu", "mine", 1)],
)
def test_unknown(op_type, domain, opset):
    assert schema_of(op_type, domain, opset) is None
