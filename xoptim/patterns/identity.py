"""Operations that change nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from xbuilder.dims import prove_ge
from xbuilder.nodes.protos import has_reference

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.constants import int_values, is_filled_with
from ..reading.permutations import perm_of
from ..reading.shapes import keeps_shape

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

#: operator -> neutral element, and positions where it may stand
NEUTRAL = {
    "Add": (0, (1, 0)),
    "Sub": (0, (1,)),
    "Mul": (1, (1, 0)),
    "Div": (1, (1,)),
    "And": (True, (1, 0)),
    "Or": (False, (1, 0)),
}
#: value of the inputs scale, bias, mean, variance of a normalization that does nothing
UNIT_NORMALIZATION = (1, 0, 0, 1)


def is_unit_normalization(g: GraphBuilderPatternOptimization, node: NodeProto) -> str:
    """Says why a BatchNormalization is not the identity, an empty string if it is.

    :param g: the optimizer
    :param node: a BatchNormalization
    """
    if g.main_opset < 7 or len(node.input) != 5:
        return "the opset is too old"
    if has_reference(node):
        return "an attribute belongs to the function"
    if g.get_attribute_with_default(node, "training_mode", 0) or any(node.output[1:]):
        return "it is training"
    if g.get_attribute_with_default(node, "epsilon", 1e-5) != 0:
        return "epsilon is not null"
    for name, value in zip(node.input[1:], UNIT_NORMALIZATION, strict=True):
        if not is_filled_with(g, name, value):
            return "a parameter changes the values"
    return ""


@register_pattern(
    "default",
    roots=(*NEUTRAL, "Transpose", "Slice", "Expand", "BatchNormalization"),
    priority=0,
)
class IdentityPattern(PatternOptimization):
    """op(X, neutral) -> Identity(X).

    1. `X + 0`, `0 + X`, `X - 0`, `X * 1`, `1 * X`, `X / 1`, `X and True`, `X or False`, where the
       constant does not change the shape of X: its rank is at most the rank of X, each of its
       dimensions is 1 or the one of X. A sum with 0 turns -0.0 into 0.0: they are equal.
    2. `Transpose(X)` with an identity permutation, or of rank 0 or 1 without permutation.
    3. `Slice(X)` taking everything: starts 0, ends not below the dimension, steps 1.
    4. `Expand(X)` to a shape made of ones, not longer than the rank of X.
    5. `BatchNormalization(X)` with unit scale and variance, null bias, mean and epsilon.

    O(1), O(n) when a constant of n elements (2^18 at most) is read.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if node.op_type in NEUTRAL:
            return self._match_neutral(g, node)
        if node.op_type == "Transpose":
            reason = self._moves(g, node)
        elif has_reference(node):
            reason = "an attribute belongs to the function"
        elif node.op_type == "Slice":
            reason = self._cuts(g, node)
        elif node.op_type == "Expand":
            reason = self._expands(g, node)
        else:
            reason = is_unit_normalization(g, node)
        if reason:
            return self.none(node, reason)
        return MatchResult(self, [node], self.apply)

    def _match_neutral(
        self, g: GraphBuilderPatternOptimization, node: NodeProto
    ) -> MatchResult | None:
        inputs = g.record(node).inputs
        if not (g.is_constant(inputs[0]) or g.is_constant(inputs[1])):
            return self.none(node, "no operand is constant")
        if g.main_opset < 7 and node.attribute:
            return self.none(node, "broadcasting follows the rules of opset 6")
        value, positions = NEUTRAL[node.op_type]
        reason = "the constant is not neutral"
        for position in positions:
            if not is_filled_with(g, inputs[position], value):
                continue
            kept = inputs[1 - position]
            if keeps_shape(g, kept, g.get_shape(inputs[position])):
                return MatchResult(self, [node], partial(self.apply, kept=1 - position))
            reason = "the constant may change the shape"
        return self.none(node, reason)

    @staticmethod
    def _moves(g: GraphBuilderPatternOptimization, node: NodeProto) -> str:
        perm = perm_of(g, node)
        if perm is None:
            return "the permutation is not known"
        return "" if perm == tuple(range(len(perm))) else "the permutation moves axes"

    @staticmethod
    def _cuts(g: GraphBuilderPatternOptimization, node: NodeProto) -> str:
        if len(node.input) == 1:
            bounds = g.get_attributes_with_default(node, starts=[], ends=[], axes=[])
            starts, ends, axes = bounds["starts"], bounds["ends"], bounds["axes"]
            steps, last = [], np.iinfo(np.int64).max
        else:
            _, *names = g.record(node).inputs
            if not all(g.is_constant(n) for n in names if n):
                return "the bounds are not constant"
            values = [int_values(g, n) if n else () for n in names]
            if any(v is None for v in values):
                return "the bounds are not known"
            starts, ends, axes, steps = (*values, *[()] * (4 - len(values)))
            last = np.iinfo(g.get_computed_constant(names[1]).dtype).max
        axes = axes or range(len(starts))
        if any(s != 1 for s in steps):
            return "a step is not 1"
        if any(s != 0 for s in starts):
            return "a start is not 0"
        if not len(starts) == len(ends) == len(axes):
            return "the bounds do not have the same length"
        if not all(
            e == last or _covers(g, node.input[0], a, e) for a, e in zip(axes, ends, strict=True)
        ):
            return "an end may cut something"
        return ""

    @staticmethod
    def _expands(g: GraphBuilderPatternOptimization, node: NodeProto) -> str:
        x, shape = node.input
        dims = int_values(g, shape)
        if dims is None:
            return "the shape is not known"
        if any(d != 1 for d in dims):
            return "a dimension may be expanded"
        if len(dims) and not (g.has_rank(x) and g.get_rank(x) >= len(dims)):
            return "the rank may change"
        return ""

    def apply(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, kept: int = 0
    ) -> list[NodeProto]:
        return [g.make_node("Identity", [node.input[kept]], [node.output[0]])]


def _covers(g: GraphBuilderPatternOptimization, name: str, axis: int, end: int) -> bool:
    """Tells if *end* is proven not to be below a dimension."""
    if end < 0 or not g.has_shape(name):
        return False
    shape = g.get_shape(name)
    if not -len(shape) <= axis < len(shape):
        return False
    return prove_ge(end, shape[axis], g.get_registered_constraints()) is True


@register_pattern("default", roots=("BatchNormalization",), priority=0, min_opset=7)
class BatchNormalizationPattern(PatternOptimization):
    """BatchNormalization(X, 1, 0, 0, 1) -> Identity(X).

    In inference, with unit scale and variance, null bias, mean and epsilon. The default epsilon,
    1e-5, is not null, even for float16.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        reason = is_unit_normalization(g, node)
        return self.none(node, reason) if reason else MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [g.make_node("Identity", [node.input[0]], [node.output[0]])]
