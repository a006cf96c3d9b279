"""Mixtures of experts: what some experts chosen for each token give, as one operator."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx.numpy_helper as onh
from onnx import NodeProto

from xbuilder.dims import Dim
from xbuilder.op_traits import CARRIERS
from xbuilder.processors import processors_of

from ..api import NewNode, Rewrite, RewriteContext, register_pattern
from ..api.right_side import Operand, Replacement
from ..reading.arguments import other_input
from ..reading.axes import axes_of, axis_of
from ..reading.neighbours import producer
from ..reading.same_elements import before_reshapes
from ..reading.shapes import proven_equal
from ..reading.weights import require_weight
from .cpu_kernels import MICROSOFT, require_kernel

_SILU = f"{MICROSOFT}::QuickGelu"
#: operators whose result is not negative if their operands are not
_KEEPS_SIGN = CARRIERS | {"Cast", "Div", "Mul", "ReduceSum", "TopK"}
#: most nodes between weights and the function that makes them positive
_MAX_DEPTH = 8


class Rows(NamedTuple):
    """Rows multiplied by the matrix of an expert.

    :param weight: the matrices, of shape (experts, results, length)
    :param chosen: the expert of each row, in order
    :param column: the rows, of shape (rows, length, 1)
    """

    weight: str
    chosen: str
    column: str


@register_pattern("onnxruntime", roots=("ReduceSum",), after=("Reshape",), precision="rounding")
class MoEPattern(Rewrite):
    """ReduceSum(w * U[i] @ (SiLU(g) * u)), g, u = Split(G[i] @ x) -> com.microsoft.MoE(x, r, G, U).

    1. the experts i are those TopK gives for each token, their weights w are computed before from
       results of Softmax or Sigmoid; r is Log(w) for them, -inf for the others: the operator makes
       w / sum(w) of it, the result is multiplied by sum(w);
    2. G has both halves one after the other, the operator wants them interleaved;
    3. G is a constant, the dimensions of both weights are known;
    4. on CPU: the operator of CUDA was not compared.

    The matrices of the experts are not copied for each token any more.
    """

    sole_use = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
        """Checks the two products of each expert, the tokens and the weights."""
        g.require(axes_of(g, node) == (1,), "the experts are not added along the second axis")
        g.require(g.get_attribute_with_default(node, "keepdims", 1) == 0, "an axis is kept")
        shape = g.shape_of(node.input[0])
        g.require(len(shape) == 3, "there are not three dimensions")
        product = g.before(before_reshapes(g, node.input[0]), "Mul")
        first, second, weights = _products(g, product, shape[1])
        experts, length, width = g.static_shape(first.weight, "the weights are not static")
        after = g.static_shape(second.weight, "the weights are not static")
        same = after == (experts, width, length // 2) and shape[2] == width
        g.require(same, "the weights do not have the shapes of experts")
        g.require(first.chosen == second.chosen, "the experts are not the same")
        scores = _scores(g, first.chosen, experts)
        count = g.shape_of(first.chosen)[1]
        g.require(isinstance(count, int) and count == shape[1], "the number is not known")
        g.require(_positive(g, weights), "the weights may be negative")
        tokens = _tokens(g, first.column, count, width)
        require_kernel(g, "MoE", tokens)
        g.require(processors_of(g.processor) == ("CPU",), "the operator of CUDA was not compared")
        require_weight(g, first.weight)
        none: Any = onh.from_array(np.array([-np.inf], np.float32))
        router = g.op.ScatterElements(
            g.op.ConstantOfShape(g.op.Shape(scores), value=none),
            first.chosen,
            g.op.Log(weights),
            axis=1,
        )
        inputs: list[Operand] = [tokens, router, _interleaved(g, first.weight), None, second.weight]
        options = {
            "k": count,
            "activation_type": "swiglu",
            "swiglu_fusion": 1,
            "activation_alpha": 1.0,
            "activation_beta": 0.0,
        }
        result = NewNode("MoE", inputs, options, MICROSOFT)
        total = g.op.ReduceSum(weights, axes=[1], keepdims=1)
        return {node.output[0]: g.op.Mul(result, total)}


def _products(g: RewriteContext, node: NodeProto, count: Any) -> tuple[Rows, Rows, str]:
    """Both products of each expert, and its weight for each token."""
    for name, column in (tuple(node.input), tuple(node.input)[::-1]):
        if producer(g, before_reshapes(g, name), "MatMul") is None:
            continue
        g.require(g.shape_of(column)[1:] == (1,), "a weight is not for a row")
        weights = before_reshapes(g, column, count)
        g.require(g.shape_of(weights)[1:] == (count,), "a weight is not for an expert")
        second = _rows(g, name)
        gated = g.before(before_reshapes(g, second.column), "Mul")
        return _rows(g, _gate(g, gated)), second, weights
    return g.refuse("no operand is given by experts")


def _rows(g: RewriteContext, name: str) -> Rows:
    """Reads rows multiplied by the matrices of experts."""
    product = g.before(before_reshapes(g, name), "MatMul")
    gather = g.before(product, "Gather")
    weight, indices = gather.input
    column = product.input[1]
    one = len(g.shape_of(column)) == 3 and g.shape_of(column)[2] == 1
    by_expert = axis_of(g, gather, 3, 0) == 0 and g.rank_of(indices) == 1
    g.require(one and by_expert, "rows are not multiplied by the matrix of an expert")
    return Rows(weight, before_reshapes(g, indices), column)


def _gate(g: RewriteContext, node: NodeProto) -> str:
    """What is split in two halves, the second one multiplied by SiLU of the first one."""
    for name in node.input:
        silu = g.before_or_none(name, "Mul", _SILU)
        if silu is None:
            continue
        half = silu.input[0]
        if silu.op_type == "Mul":
            sigmoids = [n for n in g.before_each(silu, "Sigmoid") if n is not None]
            g.require(len(sigmoids) == 1, "the activation is not SiLU")
            half = sigmoids[0].input[0]
            known = other_input(silu, half) == sigmoids[0].output[0]
            g.require(known, "the activation is not SiLU")
        else:
            alpha = g.get_attribute_with_default(silu, "alpha", 1.702)
            g.require(alpha == 1, "the activation is not SiLU")
        split = g.before(half, "Split")
        halves = tuple(split.output) == (half, other_input(node, name))
        g.require(halves, "the first half is not the one of SiLU")
        shapes = [g.shape_of(n) for n in split.output]
        equal = len(shapes[0]) == 2 and proven_equal(g, *shapes)
        g.require(equal and axis_of(g, split, 2) == 1, "the rows are not cut in two halves")
        source: str = split.input[0]
        return source
    return g.refuse("no SiLU before")


def _scores(g: RewriteContext, chosen: str, experts: int) -> str:
    """What TopK chooses the experts from."""
    topk = g.known(producer(g, chosen, "TopK"), "TopK does not choose the experts")
    scores: str = topk.input[0]
    g.require(chosen == topk.output[1], "TopK does not choose the experts")
    shape, last = g.shape_of(scores), axis_of(g, topk, 2, -1) == 1
    g.require(
        len(shape) == 2 and shape[1] == experts and last, "the scores are not those of experts"
    )
    return scores


def _total(g: RewriteContext, name: str) -> str:
    """What is added to give a result."""
    node = producer(g, name, "ReduceSum")
    return "" if node is None else str(node.input[0])


def _positive(g: RewriteContext, name: str) -> bool:
    """Tells if a result is proven not to be negative nor infinite: it may be NaN."""
    pending = [name]
    for _ in range(_MAX_DEPTH):
        if not pending:
            return True
        node = producer(g, pending.pop(), "Softmax", "Sigmoid", *_KEEPS_SIGN)
        if node is None:
            return False
        if node.op_type == "Div" and _total(g, node.input[1]) != node.input[0]:
            return False
        if node.op_type == "Mul":
            pending += node.input
        elif node.op_type in _KEEPS_SIGN:
            pending.append(node.input[0])
    return not pending


def _tokens(g: RewriteContext, column: str, count: Dim, width: int) -> str:
    """The tokens that were repeated for each expert."""
    g.require(g.shape_of(column)[1] == width, "the tokens do not have the length of the weights")
    if count != 1:
        expand = g.before(before_reshapes(g, column), "Expand")
        wide, narrow = (g.shape_of(n) for n in (expand.output[0], expand.input[0]))
        repeated = (
            len(wide) == len(narrow) == 3
            and wide[1:] == (count, width)
            and narrow[1:] == (1, width)
            and proven_equal(g, wide[:1], narrow[:1])
        )
        g.require(repeated, "a token is not repeated for each expert")
        column = expand.input[0]
    tokens = before_reshapes(g, column, width)
    shape = g.shape_of(tokens)
    g.require(len(shape) == 2 and shape[1] == width, "the tokens are not rows")
    return tokens


def _interleaved(g: RewriteContext, weight: str) -> NewNode:
    """Both halves of each matrix, one row of each after the other."""
    experts, length, width = g.static_shape(weight)
    halves = g.op.Reshape(weight, [experts, 2, length // 2, width])
    moved = g.op.Transpose(halves, perm=[0, 2, 1, 3])
    return g.op.Reshape(moved, [experts, length, width])
