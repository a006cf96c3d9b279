"""Recognizes activations written with other operators: Relu, LeakyRelu, Mish."""

from __future__ import annotations

from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.kernels import require_cpu_kernel, require_loaded
from ...analysis.values.signed_zeros import SEEN, sees_sign_of_zero
from ...authoring import RewriteContext
from ...declarative import rule


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


@rule("default", "specialize", "x * Tanh(Softplus(x)) -> Mish(x)", min_opset=18)
def mish(g: RewriteContext, x: str) -> None:
    """X * Tanh(Softplus(X)) -> Mish(X).

    X * Tanh(Log(Exp(X) + 1)) is kept, because it was measured up to four times faster with
    onnxruntime, where Mish is a function that computes Softplus.
    """
    require_loaded(g, "Mish", x)
