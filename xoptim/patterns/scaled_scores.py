"""The scale of the scores of an attention, in the weights that give the queries."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ..api import NewNode, RewriteContext, rewrite
from ..api.right_side import Replacement
from ..reading.axes import axis_of
from ..reading.neighbours import before_any, producer
from ..reading.weights import require_scalable
from .activation import is_scalar_beside
from .transpose_binary import source_of


@rewrite(
    "default",
    root=("Mul", "Div"),
    reads="MatMul",
    priority=1,
    min_opset=7,
    precision="rounding",
    name="ScaledScores",
)
def scaled_scores(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """(Transpose(Reshape(x @ W + b)) @ K) * c -> Transpose(Reshape((x @ W + b) * c)) @ K.

    1. c is one finite number, a divisor is not null; W and b are constants, they take c:
       MatMulAddMul. Nothing else reads what is between;
    2. the queries may be a part of x @ W + b, of known length: c multiplies these columns.

    onnxruntime multiplies one query by its keys in half the time when nothing scales the product.
    """
    product = before_any(g, node, "MatMul")
    result = product.output[0]
    c = node.input[1 - list(node.input).index(result)]
    g.require(node.op_type == "Mul" or node.input[0] == result, "the product divides")
    g.require(is_scalar_beside(g, c, result), "it is not scaled by one constant number")
    factor = float(g.constant(c).item())
    factor = factor if node.op_type == "Mul" or factor == 0 else 1 / factor
    g.require(np.isfinite(factor) and factor != 0, "the scale is null or is not finite")
    queries = product.input[0]
    move = g.before(product, "Transpose")
    heads = g.before(move, "Reshape")
    linear = heads.input[0]
    between = (result, queries, move.input[0], linear)
    alone = not any(map(g.is_used_more_than_once, between)) and queries != product.input[1]
    g.require(alone, "an inner result is used elsewhere")
    split = producer(g, linear, "Split")
    if split is None:
        _require_source(g, linear)
        scaled = g.op.Mul(linear, g.scalar(factor, linear))
        moved = g.like(move, g.like(heads, scaled, heads.input[1]))
        return {node.output[0]: g.like(product, moved, product.input[1])}
    whole = _times(g, split.input[0], _scales(g, split, linear, factor))
    g.look_at(split)
    parts = g.like(split, whole, *split.input[1:])
    found: dict[str, Replacement] = {n: parts[i] for i, n in enumerate(split.output)}
    found[node.output[0]] = g.like(product, *product.input)
    return found


def _require_source(g: RewriteContext, name: str) -> None:
    """Refuses what constant weights do not give."""
    g.require(not g.is_used_more_than_once(name), "an inner result is used elsewhere")
    source = g.known(source_of(g, name), "nothing takes the scale")
    require_scalable(g, source.input[1])


def _times(g: RewriteContext, name: str, scales: np.ndarray) -> NewNode:
    """The columns of a product multiplied by constants, its rows may be those of a matrix."""
    rows = producer(g, name, "Reshape")
    if rows is None:
        _require_source(g, name)
        return g.op.Mul(name, scales)
    g.require(not g.is_used_more_than_once(name), "an inner result is used elsewhere")
    shape = g.shape_of(rows.input[0])
    g.require(shape[-1:] == scales.shape, "the Reshape does not keep the columns")
    _require_source(g, rows.input[0])
    g.look_at(rows)
    return g.like(rows, g.op.Mul(rows.input[0], scales), rows.input[1])


def _scales(g: RewriteContext, split: NodeProto, part: str, factor: float) -> np.ndarray:
    """One number for each column before a Split: a factor for those of a part, 1 for the others."""
    rank = g.rank_of(split.input[0])
    g.require(axis_of(g, split, rank) == rank - 1, "the parts are not columns")
    columns = []
    for name in split.output:
        length = g.shape_of(name)[-1]
        if not isinstance(length, int):
            g.refuse("the length of a part is not known")
        value = np.asarray(g.scalar(factor if name == part else 1, name))
        columns.append(np.full(length, value, dtype=value.dtype))
    return np.concatenate(columns)
