"""RMSNormalization recognized in elementary operators, then merged with its scale."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import HALF_FLOATS

from ...analysis.arguments import other_input
from ...analysis.weights.norm_scales import moved_after, multiplied
from ...authoring import NewNode, NewResult, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ...declarative import rule
from .layer_norm import (
    normalized_operand,
    over_root,
    times_inverse,
    times_scale,
    trailing_axis,
    unit_scale,
)

#: normalizations that add two operands first
_SKIPS = ("SkipSimplifiedLayerNormalization",)
_MEAN = "v = ReduceMean(x ** 2 | x * x, *_, **_)"
#: x / sqrt(mean(x^2) + epsilon)
RMS = f"{_MEAN}; {over_root('x')}"
#: the same, whose inverse of the deviation is multiplied by a scale first
RMS_SCALED = f"""{_MEAN}; e = v + epsilon; s = Sqrt(e) | e ** 0.5;
    y = x * (scale * (Reciprocal(s) | 1 / s)) | x * (scale * e ** -0.5); y"""
#: the same, and the inverse of the deviation, that something else reads
RMS_AND_INVERSE = f"{_MEAN}; {times_inverse('x')}; (y, i)"
#: x / sqrt(mean(x^2)), alone and with the inverse of the deviation
BARE = f"""{_MEAN}; s = Sqrt(v) | v ** 0.5;
    y = x / s | x * (Reciprocal(s) | 1 / s) | x * v ** -0.5; y"""
BARE_AND_INVERSE = f"""{_MEAN};
    s = Sqrt(v) | v ** 0.5; i = Reciprocal(s) | 1 / s | v ** -0.5; y = x * i; (y, i)"""


def rms_operator(
    g: RewriteContext,
    op_type: str,
    x: str,
    v: str,
    y: str,
    epsilon: float | None,
    scale: str | None,
) -> dict[str, NewNode]:
    """The operator that computes :data:`RMS` or :data:`BARE`, and the results it replaces.

    Without epsilon, or if it is null, the operands have to be in float: the operator computes in
    float, a small number of float16 has a square that is 0 there.

    :param op_type: the operator to write
    :param x: the operand
    :param v: mean of the squares
    :param y: the result
    :param epsilon: its value, None without epsilon
    :param scale: what multiplies the result, in the type of x, None without scale
    """
    epsilon = epsilon or 0.0
    in_float = g.type_or_none(x) == TensorProto.FLOAT
    shape = normalized_operand(g, x, 1.0 if in_float and epsilon == 0 else epsilon)
    axis = trailing_axis(g, v, len(shape))
    g.require(axis == -1, "the axis is not the last one only")
    x, y = _without_casts(g, x, y) if scale is None else (x, y)
    options = {"axis": -1, "epsilon": epsilon, "stash_type": TensorProto.FLOAT}
    return {y: NewNode(op_type, [x, unit_scale(g, x, -1)], options)}


def _without_casts(g: RewriteContext, x: str, y: str) -> tuple[str, str]:
    """Skips the casts to float and back, because the operator computes in float by itself."""
    up, down = g.producer_or_none(x, "Cast"), g.reader_or_none(y, "Cast")
    if up is None or down is None or g.type_or_none(x) != TensorProto.FLOAT:
        return x, y
    narrow = g.type_or_none(up.input[0])
    if narrow not in HALF_FLOATS or g.type_or_none(down.output[0]) != narrow:
        return x, y
    g.look_at(down)  # the first cast may be used elsewhere: it is removed with its last use
    return up.input[0], down.output[0]


@rule(
    "default",
    RMS,
    RMS_SCALED,
    BARE,
    root="v",
    behind="LayerNormalization",
    min_opset=23,
    precision="rounding",
    name="RMSNormalization",
)
def rms_normalization(
    g: RewriteContext, x: str, v: str, y: str, epsilon: float | None, scale: str | None
) -> dict[str, Replacement]:
    """x / sqrt(mean(x^2) + epsilon) -> RMSNormalization(x, ones).

    1. x^2 is Pow(x, 2) or x * x; the mean is over the last axis, keepdims=1, whose length
       is known, or proven not to be null;
    2. the division may be a product by Reciprocal, by 1 / sqrt or by Pow(..., -0.5), which a scale
       multiplies first (Keras);
    3. x is cast to float and the result is cast back: the operator does both by itself;
    4. there may be no epsilon, or 0, in float: a row of zeros gives NaN in both cases.
    """
    ((result, new),) = rms_operator(g, "RMSNormalization", x, v, y, epsilon, scale).items()
    return {result: times_scale(g, new, scale)}


@rewrite(
    "default",
    "onnxruntime",
    root=(
        *("RMSNormalization", "SimplifiedLayerNormalization"),
        "com.microsoft::SkipSimplifiedLayerNormalization",
    ),
    read_by="Mul",
    precision="rounding",
    name="RMSNormalizationMul",
    aliases=("SimplifiedLayerNormalizationMul", "SkipSimplifiedLayerNormalizationMul"),
)
def rms_normalization_mul(g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
    """RMSNormalization(x, s) * c -> RMSNormalization(x, s * c).

    1. c has exactly the shape of s;
    2. one of them is made of ones, or both are constant;
    3. the same for SimplifiedLayerNormalization and SkipSimplifiedLayerNormalization.
    """
    mul, index = g.after(node, "Mul"), 2 if node.op_type in _SKIPS else 1
    factor, scale = other_input(mul, node.output[0]), node.input[index]
    same = g.same_shape(factor, scale)
    g.require(same, "the factor does not have the shape of the scale")
    same = g.type_or_none(factor) == g.type_or_none(scale)
    inputs: list[Operand] = list(node.input)
    inputs[index] = new_scale = multiplied(g, scale, factor) if same else None
    g.require(new_scale is not None, "the scale is not constant")
    return moved_after(g, node, mul.output[0], *inputs)
