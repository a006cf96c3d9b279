"""Mixtures of experts, where each token goes through a few chosen experts: MoE."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx.numpy_helper as onh
from onnx import NodeProto

from xbuilder.dims import Dim
from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import CARRIERS
from xbuilder.runtimes.processors import processors_of

from ...analysis.arguments import other_input
from ...analysis.axes import axes_of, axis_of, cuts_of
from ...analysis.bounds import clipped
from ...analysis.constants import scalar_constant, scalar_value
from ...analysis.same_elements import source_of_reshapes
from ...analysis.shapes import proven_equal
from ...analysis.weights.weights import require_weight
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ..kernels import require_kernel

_SILU = f"{MICROSOFT}::QuickGelu"
#: operators whose result is not negative if their first operand is not
_KEEPS_SIGN = CARRIERS | {"Cast", "Div", "GatherElements", "Mul", "ReduceSum", "TopK"}
#: most nodes between weights and the function that makes them positive
_MAX_DEPTH = 10
#: weights multiplied by numbers up to this one, as often as the depth allows, are finite
_LARGEST_FACTOR = 1000


class Rows(NamedTuple):
    """Rows multiplied by the matrix of an expert.

    :param weight: the matrices, of shape (experts, results, length)
    :param moved: the matrices are (experts, length, results)
    :param chosen: the expert of each row, in order
    :param rows: the rows, of shape (rows, length, 1), or (rows, 1, length) if moved
    :param bias: the bias, of shape (experts, results), None if there is none
    """

    weight: str
    moved: bool
    chosen: str
    rows: str
    bias: str | None = None

    def sizes(self, g: RewriteContext) -> tuple[int, int, int]:
        """Number of experts, of results, of elements of a row."""
        experts, first, second = g.static_shape(self.weight, "the weights are not static")
        return (experts, second, first) if self.moved else (experts, first, second)


class Activation(NamedTuple):
    """The activation: min(a, limit) * Sigmoid(alpha * ...) * (max(-limit, min(b, limit)) + beta).

    :param source: the result split in two halves, a and b
    :param together: a is the first half, otherwise both are interleaved
    :param options: alpha, beta, the limit
    """

    source: str
    together: bool
    options: dict[str, float]


@rewrite(
    "onnxruntime",
    "model",
    root="ReduceSum",
    after="Reshape",
    precision="rounding",
    sole_use=True,
    name="MoE",
)
def moe(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """ReduceSum(w * U[i] @ (SiLU(g) * u)), g, u = Split(G[i] @ x) -> com.microsoft.MoE(x, r, G, U).

    1. the experts i are those TopK chooses for each token, their weights w are computed before from
       results of Softmax or Sigmoid; r is Log(w) for them, -inf for the others: the operator turns
       it into w / sum(w), and the result is multiplied by sum(w);
    2. G has both halves one after the other, while the operator requires them interleaved, or it
       has them interleaved; the matrices may be transposed, biases added;
    3. a moved weight is a constant, the dimensions of both weights are known;
    4. the activation may have bounds, a factor, a number added to u, as the one of gpt-oss has;
    5. on CPU: the operator of CUDA was not compared;
    6. x is read after the operator, by a Where that never takes it, because onnxruntime 1.31 writes
       the result over x if nothing else reads it, although it still needs it.

    Blocks of experts of transformers are written this way, when their implementation is
    `batched_mm`: `MixtralSparseMoeBlock`, `Qwen3MoeSparseMoeBlock`, `GptOssMLP`. The matrices of
    the experts are no longer copied for each token.
    """
    g.require(axes_of(g, node) == (1,), "the experts are not added along the second axis")
    g.require(g.get_attribute_with_default(node, "keepdims", 1) == 0, "an axis is kept")
    shape = g.shape_of(node.input[0])
    g.require(len(shape) == 3, "there are not three dimensions")
    product = g.before(source_of_reshapes(g, node.input[0]), "Mul")
    first, activation, second, weights = _products(g, product, shape[1])
    experts, length, width = first.sizes(g)
    same = second.sizes(g) == (experts, width, length // 2) and shape[2] == width
    g.require(same, "the weights do not have the shapes of experts")
    g.require(first.chosen == second.chosen, "the experts are not the same")
    scores = _scores(g, first.chosen, experts)
    count, chosen = shape[1], g.shape_of(first.chosen)
    g.require(isinstance(count, int) and chosen[1] == count, "the number is not known")
    paired = proven_equal(g, g.shape_of(weights), chosen)
    g.require(paired, "a weight is not for an expert")
    g.require(_positive(g, weights), "the weights may be negative")
    tokens = _tokens(g, first, count, width)
    require_kernel(g, "MoE", weights)
    g.require(processors_of(g.processor) == ("CPU",), "the operator of CUDA was not compared")
    none: Any = onh.from_array(np.array([-np.inf], np.float32))
    hidden = g.op.ConstantOfShape(g.op.Shape(scores), value=none)
    router = g.op.ScatterElements(hidden, first.chosen, g.op.Log(weights), axis=1)
    matrices = [*_matrices(g, first, activation.together), *_matrices(g, second, False)]
    inputs = [tokens, router, *matrices]
    options = {"k": count, "activation_type": "swiglu", "swiglu_fusion": 1, **activation.options}
    operands = inputs if second.bias else inputs[:-1]
    result = NewNode("MoE", operands, options, MICROSOFT)
    total = g.op.ReduceSum(weights, axes=[1], keepdims=1)
    never = g.op.Less(total, g.scalar(0, weights))
    return {node.output[0]: g.op.Where(never, tokens, g.op.Mul(result, total))}


def _products(g: RewriteContext, node: NodeProto, count: Any) -> tuple[Rows, Activation, Rows, str]:
    """Both products of each expert, the activation in between, the weight of each expert for each
    token."""
    for name, column in g.either_order(node):
        if g.producer_or_none(source_of_reshapes(g, name), "MatMul", "Add") is None:
            continue
        g.require(g.shape_of(column)[1:] == (1,), "a weight is not for a row")
        weights = source_of_reshapes(g, column, count)
        second = _linear(g, name)
        activation = _activation(g, g.before(source_of_reshapes(g, second.rows), "Mul"))
        return _linear(g, activation.source), activation, second, weights
    return g.refuse("no operand is given by experts")


def _linear(g: RewriteContext, name: str) -> Rows:
    """Reads rows multiplied by the matrices of experts, then their bias."""
    add = g.before_or_none(source_of_reshapes(g, name), "Add")
    if add is None:
        return _rows(g, name)
    biases = g.before_each(add, "Gather")
    index = next((i for i, gather in enumerate(biases) if gather is not None), None)
    gather = g.known(None if index is None else biases[index], "no bias of experts is added")
    product = add.input[1 - (index or 0)]
    rows = _rows(g, product)
    experts, length, _ = rows.sizes(g)
    of_experts = (
        g.shape_of(gather.input[0]) == (experts, length)
        and axis_of(g, gather, 2, 0) == 0
        and g.rank_of(gather.input[1]) == 1
        and source_of_reshapes(g, gather.input[1]) == rows.chosen
        and g.shape_of(product)[1:] == (length,)
    )
    g.require(of_experts, "what is added is not the bias of the expert")
    return rows._replace(bias=gather.input[0])


def _rows(g: RewriteContext, name: str) -> Rows:
    """Reads rows multiplied by the matrices of experts."""
    product = g.before(source_of_reshapes(g, name), "MatMul")
    gathers = g.before_each(product, "Gather")
    moved = gathers[0] is None
    gather = g.known(gathers[moved], "no Gather before")
    weight, indices = gather.input
    rows = product.input[1 - moved]
    one = len(g.shape_of(rows)) == 3 and g.shape_of(rows)[2 - moved] == 1
    by_expert = axis_of(g, gather, 3, 0) == 0 and g.rank_of(indices) == 1
    g.require(one and by_expert, "rows are not multiplied by the matrix of an expert")
    return Rows(weight, moved, source_of_reshapes(g, indices), rows)


def _activation(g: RewriteContext, node: NodeProto) -> Activation:
    """Reads the product of two halves, where an activation applies to one."""
    for name in node.input:
        silu = g.before_or_none(name, "Mul", _SILU)
        if silu is None:
            continue
        half, alpha = _silu(g, silu)
        other, beta = _shifted(g, other_input(node, name))
        clips = [g.before_or_none(each, "Clip") for each in (half, other)]
        options = {"activation_alpha": alpha, "activation_beta": beta}
        if clips != [None, None]:
            (half, low, high), (other, least, most) = (
                clipped(g, g.known(clip, "one half only has bounds")) for clip in clips
            )
            finite = high is not None and 0 < high < np.inf
            same = low == -np.inf and most == high and least is not None and least == -(high or 0)
            g.require(finite and same, "the bounds are not those of the operator")
            options["swiglu_limit"] = high or 0.0
        source, together = _cut(g, half, other)
        return Activation(source, together, options)
    return g.refuse("no SiLU before")


def _silu(g: RewriteContext, node: NodeProto) -> tuple[str, float]:
    """The half that its own Sigmoid multiplies, and the factor inside."""
    if node.op_type != "Mul":
        return node.input[0], float(g.get_attribute_with_default(node, "alpha", 1.702))
    sigmoids = [n for n in g.before_each(node, "Sigmoid") if n is not None]
    g.require(len(sigmoids) == 1, "the activation is not SiLU")
    half = sigmoids[0].input[0]
    known = other_input(node, half) == sigmoids[0].output[0]
    g.require(known, "the activation is not SiLU")
    return half, 1.0


def _shifted(g: RewriteContext, name: str) -> tuple[str, float]:
    """The result to which a number is added, and the number."""
    add = g.before_or_none(name, "Add")
    if add is None:
        return name, 0.0
    for source, number in g.either_order(add):
        value = scalar_constant(g, number, len(g.shape_of(source)))
        if value is not None:
            return source, float(value.item())
    return g.refuse("no number is added to the half")


def _cut(g: RewriteContext, half: str, other: str) -> tuple[str, bool]:
    """The result two halves are cut from. True if one half comes after the other, False if their
    rows are interleaved."""
    shapes = [g.shape_of(n) for n in (half, other)]
    equal = len(shapes[0]) == 2 and proven_equal(g, *shapes)
    split = g.before_or_none(half, "Split")
    if split is not None:
        halves = tuple(split.output) == (half, other)
        g.require(halves, "the first half is not the one of SiLU")
        g.require(equal and axis_of(g, split, 2) == 1, "the rows are not cut in two halves")
        return str(split.input[0]), True
    slices = [g.before(name, "Slice") for name in (half, other)]
    source: str = slices[0].input[0]
    same = slices[1].input[0] == source and all(
        _every_other(g, node, start) for start, node in enumerate(slices)
    )
    g.require(equal and same, "the rows are not cut in two halves")
    return source, False


def _every_other(g: RewriteContext, node: NodeProto, start: int) -> bool:
    """Whether a Slice takes every other column, from a given one."""
    length, cuts = g.shape_of(node.input[0])[-1], cuts_of(g, node, 2) or {}
    first, end, step = cuts.get(1, (0, 0, 0))
    known = len(cuts) == 1 and (first, step) == (start, 2)
    return known and isinstance(length, int) and end >= length


def _scores(g: RewriteContext, chosen: str, experts: int) -> str:
    """The scores from which TopK chooses the experts."""
    topk = g.producer_of(chosen, "TopK", reason="TopK does not choose the experts")
    scores: str = topk.input[0]
    g.require(chosen == topk.output[1], "TopK does not choose the experts")
    shape, last = g.shape_of(scores), axis_of(g, topk, 2, -1) == 1
    g.require(
        len(shape) == 2 and shape[1] == experts and last, "the scores are not those of experts"
    )
    return scores


def _is_part(g: RewriteContext, name: str, total: str) -> bool:
    """Whether *total* is the sum of the values of *name*, kept along the last axis, plus perhaps a
    positive number, so that the quotient is at most one."""
    add = g.producer_or_none(total, "Add")
    if add is not None:
        values = [scalar_value(g, n) for n in add.input]
        found = [v is not None and 0 <= v.item() < np.inf for v in values]
        if sum(found) != 1:
            return False
        total = add.input[found.index(False)]
    node = g.producer_or_none(total, "ReduceSum")
    kept = node is not None and g.get_attribute_with_default(node, "keepdims", 1) == 1
    return kept and node is not None and node.input[0] == name


def _positive(g: RewriteContext, name: str) -> bool:
    """Whether a result is proven to be neither negative nor infinite; it may be NaN."""
    pending = [name]
    for _ in range(_MAX_DEPTH):
        if not pending:
            return True
        name = pending.pop()
        number = scalar_value(g, name)
        if number is not None and 0 <= number.item() <= _LARGEST_FACTOR:
            continue
        node = g.producer_or_none(name, "Softmax", "Sigmoid", *_KEEPS_SIGN)
        if node is None:
            return False
        if node.op_type == "Div" and not _is_part(g, *node.input):
            return False
        if node.op_type == "Mul":
            pending += node.input
        elif node.op_type in _KEEPS_SIGN:
            pending.append(node.input[0])
    return not pending


def _tokens(g: RewriteContext, first: Rows, count: Dim, width: int) -> Operand:
    """The tokens that were repeated for each expert, as rows."""
    column = first.rows
    if count != 1:
        expand = g.before(source_of_reshapes(g, column), "Expand")
        wide, narrow = (g.shape_of(n) for n in (expand.output[0], expand.input[0]))
        repeated = (
            len(wide) == len(narrow) == 3
            and wide[1:] == (count, width)
            and narrow[1:] == (1, width)
            and proven_equal(g, wide[:1], narrow[:1])
        )
        g.require(repeated, "a token is not repeated for each expert")
        column = expand.input[0]
    tokens = source_of_reshapes(g, column, width)
    if g.rank_of(tokens) == 2:
        return tokens
    return g.op.Reshape(source_of_reshapes(g, column), [-1, width])


def _matrices(g: RewriteContext, rows: Rows, together: bool) -> list[Operand]:
    """The weights and the biases in the layout of the operator, (experts, results, length), with
    the two halves interleaved."""
    weight: Operand = rows.weight
    bias: Operand = rows.bias
    if rows.moved or together:
        require_weight(g, rows.weight)
    if rows.moved:
        weight = g.op.Transpose(weight, perm=[0, 2, 1])
    experts, length, width = rows.sizes(g)
    if together:
        weight = _interleaved(g, weight, [experts, length, width])
    if together and rows.bias is not None:
        require_weight(g, rows.bias)
        bias = _interleaved(g, bias, [experts, length])
    return [weight, bias]


def _interleaved(g: RewriteContext, weight: Operand, shape: list[int]) -> NewNode:
    """The rows of both halves of each matrix, interleaved."""
    experts, length, *width = shape
    halves = g.op.Reshape(weight, [experts, 2, length // 2, *width])
    moved = g.op.Transpose(halves, perm=[0, 2, 1, *range(3, len(shape) + 1)])
    return g.op.Reshape(moved, shape)
