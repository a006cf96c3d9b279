"""Scales of normalizations: products of constants, a rewrite that folds a product in a scale."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from .arguments import other_input
from .constants import is_filled_with
from .neighbours import reader


def _product(g: GraphQueries, a: str, b: str) -> np.ndarray | None:
    """The product of two constants if it is finite."""
    left, right = g.get_computed_constant(a), g.get_computed_constant(b)
    if left is None or right is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        value = (left.astype(np.float64) * right.astype(np.float64)).astype(left.dtype)
        return value if np.isfinite(value.astype(np.float64)).all() else None


def can_multiply(g: GraphQueries, a: str, b: str) -> bool:
    """Tells if :func:`multiplied` knows the answer."""
    return is_filled_with(g, a, 1) or is_filled_with(g, b, 1) or _product(g, a, b) is not None


def multiplied(g: GraphQueries, a: str, b: str) -> str:
    """Name of `a * b`: one of them if the other is made of ones, else a new constant.

    :param g: the optimizer
    :param a: a result
    :param b: a result of the same shape
    """
    if is_filled_with(g, a, 1):
        return b
    return a if is_filled_with(g, b, 1) else g.make_initializer("", _product(g, a, b))


class ScaleFoldingPattern(PatternOptimization):
    """norm(x, s) * c -> norm(x, s * c), for a normalization whose scale is one of its inputs.

    1. c has exactly the shape of s;
    2. one of them is made of ones, or both are constant.

    A subclass gives `scale_index`, the position of the scale. Not registered by itself.
    """

    scale_index: ClassVar[int] = 1

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        mul = reader(g, node.output[0], "Mul")
        factor = None if mul is None else other_input(mul, node.output[0])
        scale = node.input[self.scale_index]
        if mul is None or not factor:
            return self.none(node, "Mul is not the only use")
        if not g.same_shape(factor, scale):
            return self.none(node, "the factor does not have the shape of the scale")
        if g.try_infer_type(factor) != g.try_infer_type(scale) or not can_multiply(
            g, scale, factor
        ):
            return self.none(node, "the scale is not constant")

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            inputs = list(node.input)
            inputs[self.scale_index] = multiplied(g, scale, factor)
            outputs = [mul.output[0], *node.output[1:]]
            attributes = node.attribute[:]
            return [g.make_node(node.op_type, inputs, outputs, node.domain, attributes=attributes)]

        return MatchResult(self, [node, mul], apply, insert_at=mul)
