"""Writes functions whose kernel in onnxruntime takes one element at a time with faster ones."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto

from ...analysis.constants import is_cheap, scalar_value
from ...analysis.kernels import require_fast, require_float_on_cpu
from ...analysis.neighbours import is_rounded
from ...analysis.shapes import keeps_shape
from ...authoring import DerivedConstant, GraphQueries, NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

#: fewest elements: with fewer, the nodes cost more than they save
_LEAST = {"Elu": 1 << 12, "Mish": 1 << 10, "Softplus": 1 << 10}
#: an unknown batch counts as 1, another unknown dimension as this number
_UNKNOWN = 64
#: tanh(softplus(x)) is 1 above, in float
_HIGH = 20.0
#: operators whose results are not negative, nor -0, if their first input is not
_KEEP = frozenset(
    {"Identity", "ReduceMax", "ReduceMean", "ReduceSum", "Reshape", "Sqrt", "Squeeze"}
)
#: operators whose results never are
_POSITIVE = frozenset({"Abs", "Exp", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Sigmoid"})
#: nodes that are followed before an element
_STEPS = 6


@rewrite(
    "onnxruntime", "uncanonicalize", root="Pow", min_opset=7, priority="later", precision="rounding"
)
def slow_pow(g: RewriteContext, node: NodeProto) -> NewNode:
    """Pow(x, 2) -> Mul(x, x). On CPU, in float.

    1. The power is one number: 2, -1 (Reciprocal), 0.5 (Sqrt), -0.5 (Reciprocal of Sqrt), 4 (a
       square, twice).
    2. For a root, x is not negative: an absolute value, a square, an exponential, a sum of them.

    A product takes 0.49 of the time, the other ones 0.03 to 0.16.
    """
    x, exponent = node.input
    require_float_on_cpu(g, x)
    value = g.known(scalar_value(g, exponent), "the power is not one number").item()
    g.require(keeps_shape(g, x, g.constant_of(exponent).shape), "the shape may change")
    if value in (0.5, -0.5):
        g.require(_is_positive(g, x, _STEPS), "a number may be negative")
        root = g.op.Sqrt(x)
        return root if value > 0 else g.op.Reciprocal(root)
    if value == -1:
        return g.op.Reciprocal(x)
    g.require(value in (2, 4), "it is another power")
    square = g.op.Mul(x, x)
    return square if value == 2 else g.op.Mul(square, square)


def _is_positive(g: GraphQueries, name: str, steps: int) -> bool:
    """Whether no number of a result is negative, nor -0."""
    if g.is_constant(name):
        value = g.constant_or_none(name)
        return value is not None and not bool(np.signbit(value).any())
    node = g.producer_or_none(name)
    if node is None or node.domain or steps == 0:
        return False
    if node.op_type in ("Add", "Mul", "Div"):
        same = node.op_type == "Mul" and node.input[0] == node.input[1]
        return same or all(_is_positive(g, i, steps - 1) for i in node.input)
    if node.op_type == "Pow":
        power = scalar_value(g, node.input[1])
        return power is not None and power.item() == 2
    kept = node.op_type in _KEEP and _is_positive(g, node.input[0], steps - 1)
    return kept or node.op_type in _POSITIVE


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root="Div",
    min_opset=7,
    priority="later",
    precision="rounding",
)
def slow_div(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Div(x, c) -> Mul(x, 1 / c), c is constant. On CPU, in float: 0.52 of the time.

    1. c is small, or nothing else reads it; no reciprocal is infinite, null, or denormalized.
    2. Nothing rounds or compares the result, unless c only has powers of two: `Floor(41 / 41)` is
       1, `41 * (1 / 41)` is below.
    """
    x, divisor = node.input
    if not g.is_constant(divisor) or g.is_constant(x):
        return g.no("the divisor is not constant")
    require_float_on_cpu(g, divisor)
    alone = is_cheap(g, divisor) or g.is_used_only_by(divisor, node)
    g.require(alone, "the model would grow")
    value = g.constant_of(divisor)
    sizes = np.abs(value)
    normal = bool(np.isfinite(value).all()) and sizes.size > 0
    normal = normal and sizes.min() > 1e-37 and sizes.max() < 1e37
    g.require(normal, "a reciprocal is not a normal number")
    exact = bool((np.frexp(sizes)[0] == 0.5).all())
    g.require(exact or not is_rounded(g, node.output[0]), "the result is rounded or compared")
    return g.op.Mul(x, DerivedConstant((1 / value.astype(np.float64)).astype(np.float32), divisor))


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=("Elu", "Mish", "Softplus"),
    min_opset=11,
    priority="later",
    precision="rounding",
)
def slow_activation(g: RewriteContext, node: NodeProto) -> NewNode:
    """Softplus(x) -> Relu(x) + Log(w) + (e - (w - 1)), w = 1 + e, e = Exp(-Abs(x)). On CPU, in
    float. The last term is what the rounding of w loses: all of it when x is less than -17.

    1. Elu(x) -> Max(x, Exp(Min(x, 0)) - 1), Relu(x) + a * (Exp(Min(x, 0)) - 1) for a slope a.
    2. Mish(x) -> x * n / (n + 2), n = e * (e + 2), e = Exp(Min(x, 20)).
    3. x has 1,024 elements at least, 4,096 for Elu: an unknown batch counts as 1, another unknown
       dimension as 64. FusedGemm takes an Elu behind a Gemm.

    With as many elements, they take 0.57, 0.69 and 0.45 of the time, with 65,536 0.23, 0.36 and
    0.1: Mamba, EnCodec, YOLOv4.
    """
    (x,) = node.input
    require_float_on_cpu(g, x)
    shape = g.shape_of(x)
    sizes = [d if isinstance(d, int) else _UNKNOWN if axis else 1 for axis, d in enumerate(shape)]
    require_fast(g, math.prod(sizes) >= _LEAST[node.op_type], "there are few elements")
    merged = node.op_type == "Elu" and g.producer_or_none(x, "Gemm") is not None
    g.require(not merged, "FusedGemm takes it")
    one, two = np.array(1, dtype=np.float32), np.array(2, dtype=np.float32)
    if node.op_type == "Softplus":
        e = g.op.Exp(g.op.Neg(g.op.Abs(x)))
        w = g.op.Add(e, one)
        lost = g.op.Sub(e, g.op.Sub(w, one))
        return g.op.Add(g.op.Relu(x), g.op.Add(g.op.Log(w), lost))
    if node.op_type == "Elu":
        low = g.op.Sub(g.op.Exp(g.op.Min(x, np.array(0, dtype=np.float32))), one)
        alpha = g.get_attribute_with_default(node, "alpha", 1.0)
        if alpha == 1:
            return g.op.Max(x, low)
        return g.op.Add(g.op.Relu(x), g.op.Mul(low, np.array(alpha, dtype=np.float32)))
    e = g.op.Exp(g.op.Min(x, np.array(_HIGH, dtype=np.float32)))
    n = g.op.Mul(e, g.op.Add(e, two))
    return g.op.Mul(x, g.op.Div(n, g.op.Add(n, two)))
