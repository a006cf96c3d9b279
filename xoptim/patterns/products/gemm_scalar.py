"""Folds a number that multiplies an operand or the result of Gemm into alpha."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.tensors.amplitude import is_normal

from ...analysis.arguments import optional_input
from ...analysis.scaling import scalar_factor
from ...analysis.weights.affine import affine_operand, require_not_gelu
from ...analysis.weights.overflows import OVERFLOWS, TINY
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from .matmul import gemm_attributes, new_gemm, require_gemm_type

_SCALES = ("Div", "Mul")
_NO_NUMBER = "the other operand is not one constant number, finite and not null"


@rewrite("default", root=_SCALES, reads="Gemm", priority="later", min_opset=7, precision="rounding")
def gemm_scalar(g: RewriteContext, node: NodeProto) -> NewNode:
    """Gemm(A, B, C) * s -> Gemm(A, B, C, alpha * s, beta * s), the same for a division.

    s is a constant of one number, A, B and C may be anything: no weight is read or changed.
    Refused when something else reads the product, when s is null or not finite, when alpha, a
    float, does not hold the factor of a double exactly. MatMulAffine comes first, because it keeps
    beta.
    """
    gemm = g.before(node, "Gemm", index=int(node.input[0] != affine_operand(g, node)))
    result = gemm.output[0]
    g.require_sole_use("the product is used elsewhere", result)
    scale = g.known(scalar_factor(g, node, result), _NO_NUMBER)
    attributes = gemm_attributes(g, gemm)
    attributes["alpha"] = scaled_alpha(g, result, attributes["alpha"], scale)
    if optional_input(gemm, 2):
        attributes["beta"] = scaled_alpha(g, result, attributes["beta"], scale)
    return new_gemm(g, g.inputs(gemm), attributes)


@rewrite("default", root="Gemm", reads=_SCALES, priority="later", min_opset=7, precision="rounding")
def scalar_gemm(g: RewriteContext, gemm: NodeProto) -> NewNode:
    """Gemm(A * s, B, C) -> Gemm(A, B, C, alpha * s), the same for a division, and for B.

    s is a constant of one number that keeps the shape of A. Refused when something else
    reads `A * s`, when s is the half of a Gelu, null or not finite, when alpha, a float, does not
    hold the factor of a double exactly, when s is a tiny number: alpha multiplies what is summed
    already, which may overflow.
    """
    operands = list(g.inputs(gemm))
    attributes = gemm_attributes(g, gemm)
    nodes = g.before_each(gemm, *_SCALES)[:2]
    index = next((i for i, n in enumerate(nodes) if n is not None), None)
    node = g.before(gemm, *_SCALES, index=index or 0)
    g.require_sole_use("what the product reads is used elsewhere", node.output[0])
    x = affine_operand(g, node)
    scale = g.known(scalar_factor(g, node, x), _NO_NUMBER)
    if scale == 0.5:
        require_not_gelu(g, x)
    attributes["alpha"] = scaled_alpha(g, x, attributes["alpha"], scale)
    g.require(abs(scale) >= TINY, OVERFLOWS)
    operands[index or 0] = x
    return new_gemm(g, operands, attributes)


def scaled_alpha(g: RewriteContext, name: str, alpha: float, scale: np.ndarray | float) -> float:
    """alpha times a number, as Gemm stores it; refuses if it is rounded.

    :param name: a result of the type of the operands
    :param alpha: alpha, or beta
    :param scale: the number
    """
    require_gemm_type(g, name)
    exact = alpha * scale
    normal = is_normal(np.asarray(exact), np.dtype(np.float32)).all()
    g.require(normal, "alpha would be null, or not finite")
    new, double = float(np.float32(exact)), g.type_of(name) == TensorProto.DOUBLE
    g.require(not double or new == exact, "alpha is not precise enough")
    return new
