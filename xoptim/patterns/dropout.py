"""Dropout."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.nodes.protos import has_reference

from ..api import RewriteContext, rewrite
from ..reading.arguments import optional_input


@rewrite("default", root="Dropout")
def dropout(g: RewriteContext, node: NodeProto) -> str:
    """Dropout(X) -> Identity(X) when nothing reads the mask and nothing is dropped.

    1. From opset 12: `training_mode` is missing or is a constant equal to False.
    2. Opsets 7 to 11: always, the operator has no training mode.
    3. Before: attribute `is_test` is 1.
    """
    g.require(not any(g.is_used(name) for name in node.output[1:] if name), "the mask is used")
    training = optional_input(node, 2)
    g.require(not training or g.is_constant_scalar(training, False), "it may be training")
    if g.main_opset < 7:
        is_test = not has_reference(node) and g.get_attribute_with_default(node, "is_test", 0)
        g.require(is_test, "it is training")
    return g.inputs(node)[0]
