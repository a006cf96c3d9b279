"""Folds the factor alpha of a QuickGelu in the weights of the products around it."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.gemm import is_plain, product_and_bias
from ...analysis.weights.affine import wide
from ...analysis.weights.overflows import OVERFLOWS, is_half
from ...analysis.weights.weights import multiplied_weight, rounded
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite


@rewrite(
    "onnxruntime",
    root=f"{MICROSOFT}::QuickGelu",
    reads=("Add", "Gemm"),
    read_by=("Gemm", "MatMul"),
    priority="later",
    precision="rounding",
    sole_use=True,
)
def quick_gelu_alpha(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """QuickGelu(x @ W + b, alpha) @ V -> QuickGelu(x @ (W * alpha) + b * alpha, 1) @ (V / alpha).

    1. W, b and V are constants, they leave the file or are small; both products may be Gemm.
    2. The type is not float16, where what is multiplied by alpha may overflow.

    onnxruntime multiplies by alpha in a separate loop: QuickGelu takes 2.2 times longer than with
    alpha = 1. It is for the processor CPU.
    """
    alpha = g.get_attribute_with_default(node, "alpha", 1.702)
    g.require(alpha != 1, "alpha is 1")
    g.require(alpha != 0 and math.isfinite(alpha), "alpha is null, or not finite")
    g.require(not is_half(g, node.input[0]), OVERFLOWS)
    g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
    factor = np.asarray(np.float64(alpha))
    first = _scaled_product(g, g.before(node, "Add", "Gemm"), factor)
    last = g.after(node, "Gemm", "MatMul")
    _require_plain(g, last)
    g.require(last.input[0] == node.output[0], "the second product does not read rows")
    weight = multiplied_weight(g, last.input[1], 1 / factor)
    gelu = g.like(node, first, alpha=1.0)
    return {last.output[0]: g.like(last, gelu, weight, *last.input[2:])}


def _scaled_product(g: RewriteContext, node: NodeProto, factor: np.ndarray) -> NewNode:
    """The product of constants and its bias, multiplied by a number."""
    product, bias = product_and_bias(g, node)
    _require_plain(g, product)
    g.require(bias, "there is no bias")
    alone = product is node or g.is_used_only_by(product.output[0], node)
    g.require(alone, "the product is used elsewhere")
    value = g.constant_of(bias, "the bias is not a constant")
    g.require(value.ndim == 1, "the bias is not a vector")
    shift = rounded(g, wide(value) * factor, value.dtype)
    weight = multiplied_weight(g, product.input[1], factor)
    operands: list[Operand] = [product.input[0], weight]
    if product is node:
        return g.like(node, *operands, shift)
    return g.like(node, g.like(product, *operands), shift)


def _require_plain(g: RewriteContext, node: NodeProto) -> None:
    """Refuses a Gemm that multiplies its terms by numbers."""
    g.require(is_plain(g, node, "alpha", "beta"), "the product is scaled")
