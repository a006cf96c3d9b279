"""Splits a weight instead of the product by it."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.axes import axis_of
from ...analysis.weights.weights import require_weight, split_weight
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


@rewrite("onnxruntime", root="Split", after="MatMul", priority="later", precision="rounding")
def split_product(g: RewriteContext, split: NodeProto) -> dict[str, NewNode]:
    """Split(x @ w, axis=-1) -> x @ w1, x @ w2, ... where w1, w2, ... are the parts of w.

    1. w is a constant of two dimensions that nothing else reads, its parts have known lengths;
    2. nothing else reads the product. Each part of it is written once, nothing is copied.
    """
    product = g.before(split, "MatMul")
    alone = g.is_used_only_by(product.output[0], split)
    g.require(alone, "the product is used elsewhere")
    x, weight = g.inputs(product)
    known = g.known(g.get_constant_shape(weight), "the weight is not a constant")
    rank = len(g.shape_of(product.output[0]))
    last = len(known) == 2 and rank >= 2 and axis_of(g, split, rank) == rank - 1
    g.require(last, "it is not split along the columns of a matrix")
    lengths = [g.shape_of(name)[-1] for name in split.output]
    columns = [n for n in lengths if isinstance(n, int) and n > 0]
    whole = len(columns) == len(lengths) and sum(columns) == known[1]
    g.require(whole, "the parts are not known, or empty")
    require_weight(g, weight)
    parts = split_weight(g, weight, columns)
    return {
        name: g.op.MatMul(x, part) for name, part in zip(split.output, parts, strict=True) if name
    }
