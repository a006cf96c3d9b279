"""LayerNormalization: recognised from elementary operators, completed with a scale and a bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx.helper as oh
from onnx import NodeProto, TensorProto

from ..api.context import RewriteContext
from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..api.rewrite import rewrite
from ..api.right_side import NewResult, Operand
from ..reading.arguments import other_input
from ..reading.constants import is_filled_with, is_number, scalar_constant
from ..reading.neighbours import only_inner_uses, reader
from ..reading.norm_scales import moved_after, multiplied
from ..reading.shapes import proven_equal

#: types a normalization computed in float does not make less precise
STASH_IN_FLOAT = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16})


@dataclass
class Normalized:
    """`numerator / sqrt(mean + epsilon)`.

    :param epsilon: its value
    :param nodes: nodes after the mean, in topological order; the last one gives the result
    """

    epsilon: float
    nodes: list[NodeProto]


def trailing_axis(g: GraphQueries, node: NodeProto, rank: int) -> int | str:
    """First axis of a ReduceMean over the last axes, negative.

    :param g: the optimizer
    :param node: the reduction
    :param rank: rank of its input
    :return: the axis, or why it is not such a reduction
    """
    if not g.get_attribute_with_default(node, "keepdims", 1):
        return "keepdims is 0"
    given = g.get_attribute_with_default(node, "axes", None)
    if given is None and len(node.input) > 1 and node.input[1]:
        value = g.get_computed_constant(node.input[1])
        if value is None:
            return "axes are not constant"
        given = [int(a) for a in value.ravel()]
    if not given and g.get_attribute_with_default(node, "noop_with_empty_axes", 0):
        return "nothing is reduced"
    axes = sorted({a % rank for a in given}) if given else list(range(rank))
    if not axes or axes != list(range(axes[0], rank)):
        return "axes are not the last ones"
    return axes[0] - rank


def square(g: GraphQueries, node: NodeProto, rank: int | None) -> str | None:
    """`x` if a node is `x * x` or `Pow(x, 2)`, None otherwise."""
    if node.domain:
        return None
    if node.op_type == "Mul" and node.input[0] == node.input[1]:
        return node.input[0]
    if node.op_type == "Pow" and is_number(g, node.input[1], 2, rank):
        return node.input[0]
    return None


def _root_after(
    g: GraphQueries, name: str, rank: int | None
) -> tuple[list[NodeProto], bool] | None:
    """Nodes of the square root of a result, and whether its inverse is taken."""
    root = reader(g, name, "Sqrt", "Pow")
    if root is None:
        return None
    if root.op_type == "Pow":
        if root.input[0] == name and is_number(g, root.input[1], -0.5, rank):
            return [root], True
        if root.input[0] != name or not is_number(g, root.input[1], 0.5, rank):
            return None
    inverse = reader(g, root.output[0], "Reciprocal", "Div")
    if inverse is None:
        return [root], False
    if inverse.op_type == "Reciprocal":
        return [root, inverse], True
    if inverse.input[1] == root.output[0] and is_number(g, inverse.input[0], 1, rank):
        return [root, inverse], True
    return [root], False


def normalized(g: GraphQueries, mean: NodeProto, numerator: str, rank: int) -> Normalized | str:
    """Recognises what divides a result by the square root of a mean.

    :param g: the optimizer
    :param mean: the mean of the squares
    :param numerator: what is divided
    :param rank: its rank
    :return: what was found, or why it is not that
    """
    add = reader(g, mean.output[0], "Add")
    if add is None:
        return "no epsilon is added to the mean of the squares"
    value = scalar_constant(g, other_input(add, mean.output[0]) or "", rank)
    epsilon = 0.0 if value is None else float(value.item())
    if not 0 < epsilon < float("inf"):
        return "epsilon is not a positive constant"
    found = _root_after(g, add.output[0], rank)
    if found is None:
        return "no square root after epsilon"
    nodes, inverse = found
    divisor = nodes[-1].output[0]
    last = reader(g, divisor, "Mul" if inverse else "Div")
    expected = {numerator, divisor}
    if last is None or set(last.input) != expected or (not inverse and last.input[1] != divisor):
        return "the root does not divide the expected result"
    return Normalized(epsilon, [add, *nodes, last])


def ones_of(g: GraphQueries, shape: tuple[int, ...], elem_type: int) -> str:
    """Makes a constant of ones."""
    return g.make_initializer("", np.ones(shape, dtype=oh.tensor_dtype_to_np_dtype(elem_type)))


@register_pattern("default", roots=("ReduceMean",), priority=1, min_opset=17, precision="rounding")
class LayerNormalizationPattern(PatternOptimization):
    """d = x - mean(x), d / sqrt(mean(d^2) + epsilon) -> LayerNormalization(x, ones).

    1. d^2 is Pow(d, 2) or d * d;
    2. the division may be a product by Reciprocal, by 1 / sqrt or by Pow(..., -0.5);
    3. both means are over the same last axes, whose lengths are known, keepdims=1;
    4. without epsilon a constant row gives NaN: not rewritten.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        x = node.input[0]
        sub = reader(g, node.output[0], "Sub")
        if sub is None or sub.input[:] != [x, node.output[0]]:
            return self.none(node, "the mean is not subtracted from what it is computed on")
        shape = g.try_infer_shape(x)
        if not shape:
            return self.none(node, "the shape is not known")
        if g.try_infer_type(x) not in STASH_IN_FLOAT:
            return self.none(node, "the type is not float, float16 or bfloat16")
        axis = trailing_axis(g, node, len(shape))
        if isinstance(axis, str):
            return self.none(node, axis)
        if not all(isinstance(d, int) and d > 0 for d in shape[axis:]):
            return self.none(node, "the normalized dimensions are not known integers")
        found = self._deviation(g, sub, axis, len(shape))
        if isinstance(found, str):
            return self.none(node, found)
        nodes = [node, sub, *found.nodes]
        last = nodes[-1]
        if not only_inner_uses(g, nodes, last):
            return self.none(node, "an inner result is used elsewhere")
        dims = tuple(int(d) for d in shape[axis:])

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            scale = ones_of(g, dims, g.get_type(x))
            made = g.make_node(
                "LayerNormalization",
                [x, scale],
                last.output[:],
                axis=axis,
                epsilon=found.epsilon,
            )
            return [made]

        return MatchResult(self, nodes, apply, insert_at=last)

    def _deviation(self, g: GraphQueries, sub: NodeProto, axis: int, rank: int) -> Normalized | str:
        """Reads `d / sqrt(mean(d^2) + epsilon)`; the nodes start at the square."""
        d = sub.output[0]
        squares = [n for n in g.next_nodes(d) if square(g, n, rank) == d]
        if len(squares) != 1:
            return "the difference is not squared"
        mean = reader(g, squares[0].output[0], "ReduceMean")
        if mean is None:
            return "no mean of the squares"
        if trailing_axis(g, mean, rank) != axis:
            return "the two means have different axes or keepdims is 0"
        found = normalized(g, mean, d, rank)
        if isinstance(found, str):
            return found
        return Normalized(found.epsilon, [squares[0], mean, *found.nodes])


@rewrite("default", root="LayerNormalization", min_opset=17, precision="rounding")
def layer_normalization_scale(g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
    """LayerNormalization(x, s, b) * c + d -> LayerNormalization(x, s * c, b * c + d).

    1. c and d have exactly the shape of s, the one of the normalized dimensions;
    2. s is made of ones and there is no b: c and d may be any results;
    3. otherwise s * c and b * c are products of constants; d needs a b that is missing or null;
    4. the product alone, or the addition alone.
    """
    x, scale, bias = (*g.inputs(node), "")[:3]
    result, factor = _combined(g, node, node.output[0], "Mul")
    scales: list[Operand] = [scale, bias] if bias and not is_filled_with(g, bias, 0) else [scale]
    if factor:
        scales = [multiplied(g, name, factor) for name in (scale, bias)[: len(scales)]]
        known = all(new is not None for new in scales)
        g.require(known, "the scale or the bias is not constant")
    if len(scales) == 1:
        result, term = _combined(g, node, result, "Add")
        scales += [term or bias] if term or bias else []
    changed = result != node.output[0]
    g.require(changed, "nothing that has the shape of the scale comes after")
    return moved_after(g, node, result, x, *scales)


def _combined(g: RewriteContext, node: NodeProto, result: str, op_type: str) -> tuple[str, str]:
    """What the only use of a result gives, and what it combines it with, which has the shape of the
    scale; the same result and nothing otherwise."""
    after = g.after_or_none(result, op_type)
    name = "" if after is None else other_input(after, result) or ""
    shape, found = g.try_infer_shape(node.input[0]), g.try_infer_shape(name)
    if after is None or not shape or found is None or not g.same_shape(name, node.input[1]):
        return result, ""
    axis = g.get_axis(node, -1) % len(shape)
    same = proven_equal(g, found, shape[axis:])
    return (after.output[0], name) if same else (result, "")
