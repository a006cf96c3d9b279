"""Gelu and its variants as operators of onnxruntime: Gelu, FastGelu, BiasGelu, QuickGelu."""

from __future__ import annotations

from ...analysis.values.infinities import may_hold_infinities
from ...authoring import RewriteContext
from ...declarative import rule
from ...patterns.elementwise.gelu import GELU_ERF, GELU_ERF_SUMS, GELU_TANH
from ..kernels import require_kernel


@rule(
    "onnxruntime",
    f"{GELU_ERF} -> com.microsoft.Gelu(x)",
    f"{GELU_ERF_SUMS} -> com.microsoft.Gelu(x)",
    f"{GELU_TANH} -> com.microsoft.FastGelu(x)",
    behind="Gelu",
    priority="first",
    precision="rounding",
    aliases="GeluOrt",
)
def gelu_erf(g: RewriteContext, x: str, e: str | None) -> None:
    """0.5 * x * (1 + Erf(x / sqrt(2))) -> com.microsoft.Gelu(x).

    1. the division by sqrt(2) may be a product by 1 / sqrt(2);
    2. x * (0.5 + 0.5 * Erf(...)), 0.5 * (x + x * Erf(...));
    3. constants may have been rounded to float16, factors come in any order;
    4. 0.5 * x * (1 + Tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) -> com.microsoft.FastGelu(x), because
       com.microsoft.Gelu is the formula with Erf and has no attribute.
    """
    require_kernel(g, "Gelu" if e else "FastGelu", x)


@rule(
    "onnxruntime",
    "com.microsoft.Gelu(a + b) -> com.microsoft.BiasGelu(a, b)",
    "Gelu(a + b) -> com.microsoft.BiasGelu(a, b)",
    f"x = a + b; {GELU_ERF} -> com.microsoft.BiasGelu(a, b)",
    root="e",
    precision="rounding",
)
def bias_gelu(g: RewriteContext, a: str, b: str) -> None:
    """Gelu(x + b) -> com.microsoft.BiasGelu(x, b).

    1. Gelu is the formula with Erf, or Gelu(approximate=none), or com.microsoft.Gelu;
    2. b has one dimension, the last one of x; either operand of the addition may be b.
    """
    shape, width = g.shape_or_none(a), g.shape_or_none(b)
    on_last = shape and width and len(width) == 1 and shape[-1] == width[0]
    g.require(on_last, "no operand is a bias on the last dimension")
    require_kernel(g, "BiasGelu", a)


@rule(
    "onnxruntime",
    "s = Sigmoid(x); x * s -> com.microsoft.QuickGelu(x, alpha=1.0)",
    "s = Sigmoid(product(alpha, x)); x * s -> com.microsoft.QuickGelu(x, alpha=alpha)",
    root="s",
    precision="rounding",
)
def quick_gelu(g: RewriteContext, x: str) -> None:
    """x * Sigmoid(alpha * x) -> com.microsoft.QuickGelu(x, alpha).

    1. x * Sigmoid(x): alpha is 1;
    2. Sigmoid reads x multiplied or divided by a scalar constant.
    """
    require_kernel(g, "QuickGelu", x)


@rule(
    "approximate",
    "uncanonicalize",
    "com.microsoft.Gelu(x) -> com.microsoft.FastGelu(x)",
    "Gelu(x, **_) -> com.microsoft.FastGelu(x)",
    precision="approximate",
)
def fast_gelu(g: RewriteContext, x: str) -> None:
    """Gelu(x) -> com.microsoft.FastGelu(x), the formula with Tanh.

    1. com.microsoft.Gelu(x) and Gelu(x) are the formula with Erf: the results differ by 4.8e-4 at
       most, near |x| = 2.7;
    2. Gelu(x, approximate=tanh) is the same formula;
    3. x is not known to hold infinities, NaN, nor the huge numbers of a mask.
    """
    g.require(not may_hold_infinities(g, x), "the operand holds infinities, or huge numbers")
    require_kernel(g, "FastGelu", x)
