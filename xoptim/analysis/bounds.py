"""Lower and upper bounds a model sets on values with Clip, Min, Max or Relu."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ..authoring.context import RewriteContext
from .arguments import optional_input
from .constants import scalar_constant, scalar_value


def _number(value: np.ndarray | None) -> float | None:
    return None if value is None else float(value.item())


def clipped(g: RewriteContext, node: NodeProto) -> tuple[str, float | None, float | None]:
    """The bounded operand and its two bounds. A missing bound is infinite, an unknown one is None.

    The node is a Clip, or a Min after a Relu or a Max, with constants that change no shape. It
    visits these nodes, refuses any other one, or an inner result with another use.

    :param node: a Clip or a Min
    """
    if node.op_type == "Clip":
        return _clip(g, node)
    source, high = _beside(g, node)
    alone = not g.is_used_more_than_once(source)
    inner = g.before_or_none(source, "Relu", "Max") if alone else None
    if inner is None:
        g.refuse("no lower bound before")
    if inner.op_type == "Relu":
        return inner.input[0], 0.0, high
    source, low = _beside(g, inner)
    return source, low, high


def _clip(g: RewriteContext, node: NodeProto) -> tuple[str, float | None, float | None]:
    source, infinity = node.input[0], float("inf")
    if g.main_opset < 11:
        found = g.get_attributes_with_default(node, min=-infinity, max=infinity)
        return source, found["min"], found["max"]
    names = optional_input(node, 1), optional_input(node, 2)
    # runtimes take a bound of one element, whatever its rank, and it changes no shape
    low = _number(scalar_value(g, names[0])) if names[0] else -infinity
    high = _number(scalar_value(g, names[1])) if names[1] else infinity
    return source, low, high


def _beside(g: RewriteContext, node: NodeProto) -> tuple[str, float]:
    """The operand of a Min or a Max whose other input is a scalar constant, and the constant."""
    g.require(len(node.input) == 2, "there are not two operands")
    for name, other in g.either_order(node):
        value = _number(scalar_constant(g, name, g.rank_or_none(other)))
        if value is not None:
            return other, value
    g.refuse("no operand is a scalar constant")
