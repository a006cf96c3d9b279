"""Looks up the schema of an operator in onnx."""

from __future__ import annotations

import onnx
from onnx.defs import OpSchema


def schema_of(op_type: str, domain: str, opset: int | None = None) -> OpSchema | None:
    """The schema of an operator, None if onnx does not know it.

    :param op_type: operator type
    :param domain: domain
    :param opset: version of the domain, the last one by default
    """
    try:
        if opset is None:
            return onnx.defs.get_schema(op_type, domain)
        return onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
