"""Recognizes HardSigmoid and HardSwish written with bounds, sums and products by constants."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import other_input
from ...analysis.bounds import clipped
from ...analysis.constants import same_numbers, scalar_constant
from ...analysis.kernels import require_loaded
from ...analysis.scaling import scaled_operand
from ...authoring import RewriteContext
from ...declarative import rule

_BOUNDED = "y = Clip(x, *_, **_) | Min(x, *_)"
_SIGMOID = "HardSigmoid(x, alpha=alpha, beta=beta)"


@rule(
    "default",
    "specialize",
    f"{_BOUNDED}; product(inverse, y) -> {_SIGMOID}",
    f"{_BOUNDED}; product(inverse, z, y) -> z * {_SIGMOID}",
    f"{_BOUNDED}; y -> {_SIGMOID}",
    root="y",
    min_opset=7,
    priority="first",
    precision="rounding",
)
def hard_sigmoid(g: RewriteContext, y: str, inverse: float | None) -> dict[str, str | float]:
    """z * Clip(a * x + b, 0, c) / c -> z * HardSigmoid(x, alpha=a / c, beta=b / c).

    1. The bounds are those of a Clip, of Min(Relu(...), c) or of Min(Max(..., 0), c).
    2. a and b are scalar constants, either may be missing.
    3. When c is 1, there is no division; z may be missing; `/ c` is a division or a product by
       1 / c, of the bounded sum, of z, or of their product.

    A product that overflowed before its division no longer does.
    """
    source, low, high = clipped(g, g.before(y))
    g.require(low == 0 and high is not None, "the bounds are not 0 and a constant")
    assert high is not None
    g.require(0 < high < np.inf, "the upper bound is not positive and finite")
    divided = (
        high == 1 if inverse is None else same_numbers(np.array(inverse, np.float32), 1 / high)
    )
    g.require(divided, "it is not divided by its upper bound")
    known = has_kernel("HardSigmoid", g.type_or_none(y), g.main_opset)
    g.require(known, "HardSigmoid does not know this type")
    x, slope, offset = _affine(g, source)
    g.require(x != source or inverse is not None, "only the bounds are there")
    with np.errstate(over="ignore"):
        alpha, beta = np.float32(slope / high), np.float32(offset / high)
    g.require(np.isfinite([alpha, beta]).all(), "a coefficient is not finite")
    return {"x": x, "alpha": float(alpha), "beta": float(beta)}


def _affine(g: RewriteContext, name: str) -> tuple[str, float, float]:
    """`(x, a, b)` such that a result is `a * x + b`."""
    x, slope, offset = _shifted(g, name)
    product = _only_before(g, x, "Mul", "Div")
    scaled = None if product is None else scaled_operand(g, product)
    return (x, slope, offset) if scaled is None else (scaled.data, slope * scaled.factor, offset)


def _shifted(g: RewriteContext, name: str) -> tuple[str, float, float]:
    """`(x, a, b)` such that a result is `a * x + b`, where a is 1 or -1."""
    node = _only_before(g, name, "Add", "Sub")
    if node is None:
        return name, 1.0, 0.0
    for x in g.inputs(node):
        other = other_input(node, x)
        value = scalar_constant(g, other, g.rank_or_none(x)) if other != x else None
        if value is None or value.dtype.kind != "f" or not np.isfinite(value.item()):
            continue
        number = float(value.item())
        if node.op_type == "Add":
            return x, 1.0, number
        return (x, 1.0, -number) if node.input[0] == x else (x, -1.0, number)
    return name, 1.0, 0.0


def _only_before(g: RewriteContext, name: str, *op_types: str) -> NodeProto | None:
    """The node producing a result that has no other use, if it is one of some operators."""
    return None if g.is_used_more_than_once(name) else g.before_or_none(name, *op_types)


@rule(
    "default",
    "specialize",
    "x * HardSigmoid(x, alpha=a, beta=b) -> HardSwish(x)",
    min_opset=14,
    priority="first",
    precision="rounding",
)
def hard_swish(g: RewriteContext, x: str, a: float, b: float) -> None:
    """x * HardSigmoid(x, alpha=1/6, beta=1/2) -> HardSwish(x).

    With the pattern HardSigmoid, every way to write `x * Clip(x + 3, 0, 6) / 6`.
    """
    same = b == 0.5 and same_numbers(np.array(a, np.float32), 1 / 6)
    g.require(same, "the coefficients are not 1/6 and 1/2")
    require_loaded(g, "HardSwish", x)
