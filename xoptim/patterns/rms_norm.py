"""RMSNormalization: recognised from elementary operators, completed with a scale."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from xbuilder.op_traits import HALF_FLOATS

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..reading.neighbours import only_inner_uses, producer, reader
from ..reading.norm_scales import ScaleFoldingPattern
from ..reading.shapes import known_rank
from .layer_norm import STASH_IN_FLOAT, normalized, ones_of, square, trailing_axis


@dataclass
class RmsFormula:
    """`x / sqrt(mean(x^2) + epsilon)` over the last axis.

    :param x: the operand, before it was cast to float if it was
    :param elem_type: its type
    :param width: length of the last axis
    :param epsilon: value of epsilon
    :param nodes: nodes in topological order
    """

    x: str
    elem_type: int
    width: int
    epsilon: float
    nodes: list[NodeProto]


def find_rms(g: GraphQueries, mean: NodeProto) -> RmsFormula | str:
    """Recognises a normalization by the root of the mean of the squares.

    :param g: the optimizer
    :param mean: the ReduceMean
    :return: the formula, or why it is not one
    """
    power = g.node_before(mean.input[0])
    x = None if power is None else square(g, power, known_rank(g, mean.input[0]))
    if power is None or x is None:
        return "the mean is not the one of a square"
    shape = g.try_infer_shape(x)
    if not shape:
        return "the shape is not known"
    if g.try_infer_type(x) not in STASH_IN_FLOAT:
        return "the type is not float, float16 or bfloat16"
    axis = trailing_axis(g, mean, len(shape))
    if axis != -1:
        return axis if isinstance(axis, str) else "the axis is not the last one only"
    if not isinstance(shape[-1], int) or shape[-1] == 0:
        return "the last dimension is not a known integer"
    found = normalized(g, mean, x, len(shape))
    if isinstance(found, str):
        return found
    nodes = [power, mean, *found.nodes]
    if not only_inner_uses(g, nodes, nodes[-1]):
        return "an inner result is used elsewhere"
    formula = RmsFormula(x, g.get_type(x), shape[-1], found.epsilon, nodes)
    return _without_casts(g, formula)


def _without_casts(g: GraphQueries, formula: RmsFormula) -> RmsFormula:
    """Takes away the casts to float and back: the operator computes in float by itself."""
    up = producer(g, formula.x, "Cast")
    down = reader(g, formula.nodes[-1].output[0], "Cast")
    if up is None or down is None or formula.elem_type != TensorProto.FLOAT:
        return formula
    narrow = g.try_infer_type(up.input[0])
    if narrow not in HALF_FLOATS or g.try_infer_type(down.output[0]) != narrow:
        return formula
    # the first cast may be used elsewhere: it goes away with its last use
    return RmsFormula(up.input[0], narrow, formula.width, formula.epsilon, [*formula.nodes, down])


class RmsPattern(PatternOptimization):
    """x / sqrt(mean(x^2) + epsilon) -> one operator. A subclass gives `written`."""

    written = ""

    def refuses(self, g: GraphQueries, found: RmsFormula) -> str:
        """A reason not to rewrite, an empty string if there is none."""
        return ""

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        found = find_rms(g, node)
        if isinstance(found, str):
            return self.none(node, found)
        reason = self.refuses(g, found)
        if reason:
            return self.none(node, reason)
        last = found.nodes[-1]

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            scale = ones_of(g, (found.width,), found.elem_type)
            made = g.make_node(
                self.written,
                [found.x, scale],
                last.output[:],
                axis=-1,
                epsilon=found.epsilon,
                stash_type=TensorProto.FLOAT,
            )
            return [made]

        return MatchResult(self, found.nodes, apply, insert_at=last)


@register_pattern("default", roots=("ReduceMean",), priority=1, min_opset=23, precision="rounding")
class RMSNormalizationPattern(RmsPattern):
    """x / sqrt(mean(x^2) + epsilon) -> RMSNormalization(x, ones).

    1. x^2 is Pow(x, 2) or x * x; the mean is over the last axis, whose length is known, keepdims=1;
    2. the division may be a product by Reciprocal, by 1 / sqrt or by Pow(..., -0.5);
    3. x is cast to float and the result is cast back: the operator does both by itself.
    """

    written = "RMSNormalization"


@register_pattern(
    "default", roots=("RMSNormalization",), priority=1, min_opset=23, precision="rounding"
)
class RMSNormalizationMulPattern(ScaleFoldingPattern):
    """RMSNormalization(x, s) * c -> RMSNormalization(x, s * c).

    1. c has exactly the shape of s;
    2. one of them is made of ones, or both are constant.
    """
