"""Makes `NodeProto` and `AttributeProto` out of python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import AttributeProto, NodeProto
from onnx.numpy_helper import from_array

from .attribute_types import attribute_types

#: python type -> type of attribute, if the schema agrees, and field of its value
_PLAIN: dict[type, tuple[AttributeProto.AttributeType, str]] = {
    int: (AttributeProto.INT, "i"),
    float: (AttributeProto.FLOAT, "f"),
    bytes: (AttributeProto.STRING, "s"),
}


def make_node_proto(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    domain: str = "",
    name: str = "",
    attributes: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    metadata_props: dict[str, str] | None = None,
) -> NodeProto:
    """Makes a NodeProto. Attributes set to None are skipped, `doc_string` is not an attribute."""
    proto = NodeProto()
    proto.op_type = op_type
    proto.input.extend(inputs)
    proto.output.extend(outputs)
    if domain:
        proto.domain = domain
    if name:
        proto.name = name
    if attributes:
        proto.attribute.extend(attributes)
    if kwargs:
        doc_string = kwargs.pop("doc_string", "") or ""
        if doc_string:
            proto.doc_string = doc_string
        for key, value in sorted(kwargs.items()):
            if value is not None:
                proto.attribute.append(make_attribute(op_type, domain, key, value))
    if metadata_props:
        oh.set_metadata_props(proto, metadata_props)
    return proto


def make_attribute(op_type: str, domain: str, name: str, value: Any) -> AttributeProto:
    """Makes an attribute. The schema distinguishes an int from a float, and types an empty list."""
    plain = _PLAIN.get(type(value))
    if plain is not None and (attribute_types(op_type, domain) or {}).get(name) == plain[0]:
        # onnx.helper tries many types, some of them slowly
        attribute = AttributeProto()
        attribute.name, attribute.type = name, plain[0]
        setattr(attribute, plain[1], value)
        return attribute
    if isinstance(value, (tuple, range)):
        value = list(value)
    if isinstance(value, np.ndarray):
        value = from_array(value)
    kind = (attribute_types(op_type, domain) or {}).get(name)
    if kind == AttributeProto.FLOAT and isinstance(value, int):
        value = float(value)
    elif kind == AttributeProto.FLOATS and isinstance(value, list):
        value = [float(v) for v in value]
    if isinstance(value, list) and not value:
        return oh.make_attribute(name, value, attr_type=kind or AttributeProto.INTS)
    return oh.make_attribute(name, value)
