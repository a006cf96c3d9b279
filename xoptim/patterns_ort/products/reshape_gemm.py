"""Gemm of a reshaped tensor: a FusedMatMul of its batches, without the Reshape."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Shape

from ...analysis.arguments import optional_input
from ...analysis.kernels import require_fast
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel
from .fused_matmul import Matmul, MatmulOperand, require_terms


def read_gemm(g: RewriteContext, gemm: NodeProto) -> tuple[Matmul, Shape]:
    """Reads `Gemm(Reshape(x, (-1, k)), b)`; refuses any other Gemm.

    :return: the same product on x, its shape
    """
    g.require(not optional_input(gemm, 2), "there is a bias")
    g.require(not g.get_attribute_with_default(gemm, "transA", 0), "the rows are transposed")
    rows = g.before(gemm, "Reshape")
    x, b = rows.input[0], gemm.input[1]
    require_kernel(g, "FusedMatMul", x)
    too_flat = "x does not have at least three dimensions"
    shape, flat, weights = (g.shape_of(name, too_flat) for name in (x, rows.output[0], b))
    g.require(len(shape) >= 3 and len(flat) == 2, too_flat)
    # with the same last dimension, rows are the rows of x in the same order
    g.require(proven_equal(g, shape[-1:], flat[1:]), "the last dimension changes")
    turned = bool(g.get_attribute_with_default(gemm, "transB", 0))
    require_terms(g, (x, False), (b, turned))
    product = Matmul(MatmulOperand(x, False), MatmulOperand(b, turned), 1.0, g.type_of(x))
    scaled = product.scaled(g.get_attribute_with_default(gemm, "alpha", 1.0))
    return g.known(scaled, "alpha is null"), (*shape[:-1], weights[0 if turned else 1])


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root="Gemm",
    after="Reshape",
    priority="later",
    precision="rounding",
    aliases="ReshapeGemmReshape",
)
def reshape_gemm(g: RewriteContext, node: NodeProto) -> NewNode | dict[str, NewNode]:
    """Gemm(Reshape(x, (-1, k)), b) -> Reshape(FusedMatMul(x, b), (-1, n)).

    1. the last dimension of x is k, the one of b is known;
    2. a Reshape of the result restores the other dimensions of x: it is FusedMatMul(x, b), n may be
       unknown;
    3. transB and alpha are kept; there is no bias.

    Without a Reshape after, it takes 1.02 to 1.07 of the time.
    """
    product, shape = read_gemm(g, node)
    last = g.reader_or_none(node.output[0], "Reshape")
    result = None if last is None else g.shape_or_none(last.output[0])
    if last is not None and result is not None and proven_equal(g, result, shape):
        g.look_at(last)
        return {last.output[0]: product.node(g)}
    width = shape[-1]
    if not isinstance(width, int) or width == 0:
        g.refuse("the last dimension of the result is not a known integer")
    require_fast(g, last is not None, "no Reshape after meets the new one")
    return g.op.Reshape(product.node(g), [-1, width])
