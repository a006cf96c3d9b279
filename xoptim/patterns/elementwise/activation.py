"""Recognizes activations written with other operators: Relu, LeakyRelu, PRelu, Softplus, Mish."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import WIDE_FLOATS
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.constants import scalar_constant
from ...analysis.kernels import require_cpu_kernel, require_fast, require_loaded
from ...analysis.shapes import keeps_shape
from ...analysis.values.signed_zeros import SEEN, sees_sign_of_zero
from ...authoring import DerivedConstant, NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule

#: above, Softplus(x) is x in float
_LINEAR = 15
#: with fewer elements in a row of the batch, one node is faster than two
_FEW = 1024


@rule("default", "specialize", "y = Max(x, 0); y -> Relu(x)", min_opset=6)
def max_relu(g: RewriteContext, x: str, y: str) -> None:
    """Max(X, 0) -> Relu(X).

    1. There are two inputs, the zero is a constant that keeps the shape of X.
    2. X is a float, or int8, int32 from opset 14. Nothing after may tell -0.0 from 0.0.
    """
    elem_type = g.type_or_none(x) or g.type_or_none(y)
    g.require(has_kernel("Relu", elem_type, g.main_opset), "Relu does not know this type")
    require_cpu_kernel(g, "Relu", elem_type)
    g.require(not sees_sign_of_zero(g, y), SEEN)


@rule(
    "default",
    "specialize",
    "y = Where((x > 0) | (x >= 0), x, x * slope); y -> LeakyRelu(x, alpha=slope)",
    "y = Where((x < 0) | (x <= 0), x * slope, x); y -> LeakyRelu(x, alpha=slope)",
    "y = Relu(x) - Relu(-x) * slope; y -> LeakyRelu(x, alpha=slope)",
    "y = Relu(x) + (-Relu(-x)) * slope; y -> LeakyRelu(x, alpha=slope)",
    "y = Relu(x) + Min(x, 0) * slope; y -> LeakyRelu(x, alpha=slope)",
    "negated = Relu(-x) * slope; y = Relu(x) + negated; y -> LeakyRelu(x, alpha=slope)",
    "largest = Max(x, x * slope); largest -> LeakyRelu(x, alpha=slope)",
    "y = PRelu(x, slope); y -> LeakyRelu(x, alpha=slope)",
    priority="first",
    min_opset=6,
)
def leaky_relu(
    g: RewriteContext,
    x: str,
    slope: float,
    y: str | None,
    negated: str | None,
    largest: str | None,
) -> dict[str, float] | None:
    """Where(X > 0, X, X * s) -> LeakyRelu(X, alpha=s).

    1. The comparison may be `X >= 0`, or `X < 0`, `X <= 0` with the branches exchanged.
    2. Relu(X) - s * Relu(-X), Relu(X) + s * Min(X, 0), Relu(X) - s * Relu(-X) with its sign in s.
    3. Max(X, X * s) when 0 < s <= 1.
    4. PRelu(X, s).

    The zero and the slope are constants that do not change the shape of X. The slope is one finite
    element; if it is not positive, zeros may have another sign, and nothing after may see it. X is
    float or float16. Nothing else reads the inner results.
    """
    kind = g.type_or_none(x)
    known = has_kernel("LeakyRelu", kind, g.main_opset)
    g.require(known, "the type is not float nor float16")
    require_cpu_kernel(g, "LeakyRelu", kind)
    ordered = largest is None or 0 < slope <= 1
    g.require(ordered, "the slope is not in ]0, 1]")
    positive = (slope if negated is None else -slope) > 0
    g.require(positive or not sees_sign_of_zero(g, y or largest or ""), SEEN)
    return None if negated is None else {"slope": -slope}


@rule(
    "default",
    "specialize",
    "y = Relu(x) - Relu(-x) * slope; y -> PRelu(x, slope)",
    "y = Relu(x) + (-Relu(-x)) * slope; y -> PRelu(x, slope)",
    "negated = Relu(-x) * slope; y = Relu(x) + negated; y -> PRelu(x, negative)",
    min_opset=7,
)
def parametric_relu(
    g: RewriteContext, x: str, slope: str, y: str, negated: str | None
) -> dict[str, DerivedConstant] | None:
    """Relu(X) - S * Relu(-X) -> PRelu(X, S), as Keras writes it, or with -S and a sum.

    The slopes are constant, finite, and do not change the shape of X. Nothing after may tell -0.0
    from 0.0. Nothing else reads the inner results.
    """
    kind = g.type_or_none(x)
    g.require(has_kernel("PRelu", kind, g.main_opset), "PRelu does not know this type")
    require_cpu_kernel(g, "PRelu", kind)
    value = g.constant_of(slope)
    g.require(keeps_shape(g, x, value.shape), "the slopes may change the shape")
    g.require(bool(np.isfinite(value).all()), "a slope is not finite")
    g.require(not sees_sign_of_zero(g, y), SEEN)
    return None if negated is None else {"negative": DerivedConstant(-value, slope)}


@rewrite("default", "uncanonicalize", root="PRelu", min_opset=8)
def parametric_relu_parts(g: RewriteContext, node: NodeProto) -> NewNode:
    """PRelu(X, S) -> Max(X, X * S), on CPU, where onnxruntime takes ten times longer for PRelu.

    1. No slope is greater than 1, nor null, because 0 * inf is not 0.
    2. Otherwise Relu(X) + Min(X, 0) * S.

    The slopes are constant and finite, the type is float or double. If a slope is not positive,
    nothing after may tell -0.0 from 0.0. A small X is left as it is.
    """
    x, slope = g.inputs(node)
    g.require(g.has_processor("CPU"), "the processor is not CPU")
    g.require(g.type_or_none(x) in WIDE_FLOATS, "the type is not float nor double")
    shape = g.shape_or_none(x)
    row = [dim for dim in shape[1:] if isinstance(dim, int)] if shape else []
    small = shape is not None and len(row) == len(shape) - 1 and math.prod(row) < _FEW
    require_fast(g, not small, "there are few elements")
    value = g.constant_of(slope)
    g.require(bool(np.isfinite(value).all()), "a slope is not finite")
    positive = bool((value > 0).all())
    g.require(positive or not sees_sign_of_zero(g, node.output[0]), SEEN)
    if (value <= 1).all() and (value != 0).all():
        return g.op.Max(x, g.op.Mul(x, slope))
    negative = g.op.Min(x, g.scalar(0, like=x))
    return g.op.Add(g.op.Relu(x), g.op.Mul(negative, slope))


@rule("default", "Where((x > bound) | (x >= bound), x, Softplus(x)) -> Softplus(x)")
def softplus_bound(g: RewriteContext, x: str, bound: str) -> None:
    """Where(X > b, X, Softplus(X)) -> Softplus(X), as torch writes it with b = 20.

    X is float. The bound is a constant of 15 or more that does not change the shape of X: above it,
    Softplus(X) differs from X by less than the rounding. onnxruntime has no other kernel: it may
    compute Log(1 + Exp(X)), which is infinite above 88.
    """
    g.require(g.type_or_none(x) == TensorProto.FLOAT, "x is not float")
    value = scalar_constant(g, bound, g.rank_or_none(x))
    g.require(value is not None and value.item() >= _LINEAR, "the bound is below 15")


@rule("default", "specialize", "x * Tanh(Softplus(x)) -> Mish(x)", min_opset=18)
def mish(g: RewriteContext, x: str) -> None:
    """X * Tanh(Softplus(X)) -> Mish(X).

    X * Tanh(Log(Exp(X) + 1)) is kept, because it was measured up to four times faster with
    onnxruntime, where Mish is a function that computes Softplus.
    """
    require_loaded(g, "Mish", x)
