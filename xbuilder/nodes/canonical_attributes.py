"""Canonical key of the attributes of a node: defaults removed, hashable, in no order."""

from __future__ import annotations

from functools import lru_cache

from onnx import AttributeProto, NodeProto

from ..operators.domains import main_domain
from .attribute_types import default_attributes

#: attributes of a window over images, and the number all their elements are when they are absent
_WINDOW = {"dilations": 1, "strides": 1, "pads": 0, "output_padding": 0}
_WINDOWS = frozenset({"AveragePool", "Conv", "ConvTranspose", "MaxPool"})


def canonical_attributes(node: NodeProto, opset: int) -> frozenset[bytes]:
    """The canonical key of the attributes of a node, equal for equivalent nodes of one operator.

    An attribute with the default value of the schema, or the one the operator takes when it is
    absent (strides of ones, the permutation that reverses the axes), is left out; so are the order
    of the attributes and their documentation. Cost: O(attributes), schemas are read once.

    :param node: the node
    :param opset: version of its domain

    ::

        canonical_attributes(oh.make_node("Transpose", ["x"], ["y"], perm=[1, 0]), 18)  # nothing
    """
    attributes = node.attribute[:]
    if not attributes:
        return frozenset()
    domain = main_domain(node.domain)
    defaults = _defaults(node.op_type, domain, opset)
    found = ((a, _serialized(a)) for a in attributes)
    return frozenset(
        written
        for a, written in found
        if written not in defaults and not (domain == "" and _is_implied(node.op_type, a))
    )


def _serialized(attribute: AttributeProto) -> bytes:
    if attribute.doc_string:
        copy = AttributeProto()
        copy.CopyFrom(attribute)
        copy.ClearField("doc_string")
        attribute = copy
    written: bytes = attribute.SerializeToString(deterministic=True)
    return written


@lru_cache(maxsize=4096)
def _defaults(op_type: str, domain: str, opset: int) -> frozenset[bytes]:
    """Serialized attributes of an operator with the default values of its schema."""
    return frozenset(map(_serialized, default_attributes(op_type, domain, opset).values()))


def _is_implied(op_type: str, attribute: AttributeProto) -> bool:
    """Whether an attribute without default in the schema has the value its absence implies."""
    if not attribute.ints:  # one of a function, or one no operator accepts
        return False
    if op_type == "Transpose":
        return list(attribute.ints) == list(range(len(attribute.ints)))[::-1]
    if op_type not in _WINDOWS or attribute.name not in _WINDOW:
        return False
    return all(i == _WINDOW[attribute.name] for i in attribute.ints)
