"""Folds the scale of attention scores in the weights of the queries."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.attention.scaled_source import ELSEWHERE, scaled_source
from ...analysis.neighbours import producer_among
from ...analysis.scaling import scalar_factor
from ...analysis.weights.overflows import OVERFLOWS, keeps_range
from ...authoring import RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite


@rewrite("default", root=("Mul", "Div"), reads="MatMul", min_opset=7, precision="rounding")
def scaled_scores(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """(Transpose(Reshape(x @ W + b)) @ K) * c -> Transpose(Reshape((x @ W + b) * c)) @ K.

    1. c is one finite number, a divisor is not null; W and b are constants, which MatMulAddMul
       multiplies by c. Nothing else reads the inner results;
    2. the queries may be a part of x @ W + b, of known length: c multiplies these columns;
    3. c is at most 1, except in other types than float16: x @ W * c might overflow;
    4. rotary embeddings may rotate them, a normalization or a constant factor may produce them, see
       :func:`xoptim.analysis.attention.scaled_source.scaled_source`.

    onnxruntime multiplies one query by its keys in half the time when nothing scales the product.
    """
    product = producer_among(g, node, "MatMul")
    result = product.output[0]
    factor = g.known(scalar_factor(g, node, result), "it is not scaled by one constant number")
    queries = product.input[0]
    g.require(keeps_range(g, result, 1 / factor), OVERFLOWS)
    alone = not g.is_used_more_than_once(result) and queries != product.input[1]
    g.require(alone, ELSEWHERE)
    scaled, kept = scaled_source(g, queries, product, factor)
    return {**kept, node.output[0]: g.rewired(product, {queries: scaled})}
