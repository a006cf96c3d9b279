"""Removes optional values that are known to be there, where onnxruntime has no kernel for them."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from .missing import require_missing


@rewrite("onnxruntime", "fix", root="OptionalGetElement")
def missing_optional_get_element(g: RewriteContext, node: NodeProto) -> NewNode:
    """OptionalGetElement(Optional(x)) -> x.

    1. The operand may be a tensor that is no optional: OptionalGetElement(x) -> x.
    """
    require_missing(g, node, [0])
    return g.op.Identity(_element(g, node.input[0]))


@rewrite("onnxruntime", "fix", root="OptionalHasElement")
def missing_optional_has_element(g: RewriteContext, node: NodeProto) -> NewNode:
    """OptionalHasElement(Optional(x)) -> true.

    1. The operand may be a tensor that is no optional, there may be none: the result is false.
    """
    require_missing(g, node, [0] * len(node.input))
    there = bool(node.input) and node.input[0] != ""
    if there:
        _element(g, node.input[0])
    return g.op.Identity(np.array(there))


def _element(g: RewriteContext, name: str) -> str:
    """The value that an optional one holds."""
    made = g.producer_or_none(name, "Optional")
    if made is not None:
        g.require(made.input, "the optional value is empty")
        return str(made.input[0])
    g.require(g.type_or_none(name), "the value may not be there")
    return name
