"""Half of a sum multiplied by the Gelu of the other half, for CUDA: BiasSplitGelu."""

from __future__ import annotations

from ...analysis.axes import axis_of
from ...authoring import RewriteContext
from ...declarative import rule
from ..kernels import require_kernel

#: lengths of the last axis the kernel is written for
LENGTHS = (2560, 5120, 10240)


@rule(
    "onnxruntime",
    """x = a + b; left, right = Split(x, *_, **_); e = Gelu(right) | com.microsoft.Gelu(right)
    left * e -> com.microsoft.BiasSplitGelu(a, b)""",
    root="e",
    precision="rounding",
)
def bias_split_gelu(g: RewriteContext, a: str, b: str, x: str, left: str, right: str) -> None:
    """l, r = Split(x + b); l * Gelu(r) -> com.microsoft.BiasSplitGelu(x, b), on CUDA.

    1. x has three dimensions, the last one is 2560, 5120 or 10240, as is the one of b;
    2. Gelu is the formula with Erf.
    """
    shape, on_last = g.shape_of(x), axis_of(g, g.before(left), 3) == 2
    g.require(len(shape) == 3 and on_last, "the last of three axes is not split")
    g.require(shape[2] in LENGTHS, f"the last dimension is not one of {LENGTHS}")
    equal = g.shape_of(left)[2] == g.shape_of(right)[2]
    g.require(equal, "the halves do not have the same length")
    vector = g.shape_or_none(b) == (shape[2],) and g.same_shape(a, x)
    g.require(vector, "no operand is a bias on the last dimension")
    require_kernel(g, "BiasSplitGelu", a)
