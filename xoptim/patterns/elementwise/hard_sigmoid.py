"""Recognizes HardSigmoid and HardSwish written with bounds, sums and products by constants."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import optional_input, other_input
from ...analysis.bounds import clipped
from ...analysis.constants import same_numbers, scalar_constant
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule


@rewrite(
    "default",
    "specialize",
    root=("Clip", "Min"),
    min_opset=7,
    priority="first",
    precision="rounding",
)
def hard_sigmoid(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """z * Clip(a * x + b, 0, c) / c -> z * HardSigmoid(x, alpha=a / c, beta=b / c).

    1. The bounds are those of a Clip, of Min(Relu(...), c) or of Min(Max(..., 0), c).
    2. a and b are scalar constants, either may be missing.
    3. When c is 1, there is no division; z may be missing; `/ c` is a division or a product by
       1 / c, of the bounded sum, of z, or of their product.

    A product that overflowed before its division no longer does.
    """
    source, low, high = clipped(g, node)
    g.require(low == 0 and high is not None, "the bounds are not 0 and a constant")
    assert high is not None
    g.require(0 < high < np.inf, "the upper bound is not positive and finite")
    known = has_kernel("HardSigmoid", g.type_or_none(node.output[0]), g.main_opset)
    g.require(known, "HardSigmoid does not know this type")
    x, slope, offset = _affine(g, source)
    result, factor = _divided(g, node.output[0], high)
    changed = x != source or result != node.output[0]
    g.require(changed, "only the bounds are there")
    with np.errstate(over="ignore"):
        alpha, beta = np.float32(slope / high), np.float32(offset / high)
    g.require(np.isfinite([alpha, beta]).all(), "a coefficient is not finite")
    sigmoid = g.op.HardSigmoid(x, alpha=float(alpha), beta=float(beta))
    return {result: g.op.Mul(factor, sigmoid) if factor else sigmoid}


def _scalar_beside(g: RewriteContext, node: NodeProto, name: str) -> np.ndarray | None:
    """The scalar constant a binary node combines with a result without changing its shape."""
    other = other_input(node, name)
    return scalar_constant(g, other, g.rank_or_none(name)) if other and other != name else None


def _term(g: RewriteContext, name: str, *op_types: str) -> tuple[NodeProto, str, float] | None:
    """The node computing a result from another one and a finite scalar constant, if the result has
    no other use."""
    node = None if g.is_used_more_than_once(name) else g.before_or_none(name, *op_types)
    for operand in () if node is None else g.inputs(node):
        assert node is not None
        value = _scalar_beside(g, node, operand)
        if value is not None and value.dtype.kind == "f" and np.isfinite(float(value.item())):
            return node, operand, float(value.item())
    return None


def _affine(g: RewriteContext, name: str) -> tuple[str, float, float]:
    """`(x, a, b)` such that a result is `a * x + b`."""
    slope, offset = 1.0, 0.0
    found = _term(g, name, "Add", "Sub")
    if found is not None:
        node, x, value = found
        if node.op_type == "Add":
            name, offset = x, value
        elif node.input[0] == x:
            name, offset = x, -value
        else:
            name, slope, offset = x, -1.0, value
    found = _term(g, name, "Mul", "Div")
    if found is not None:
        node, x, value = found
        if node.op_type == "Mul":
            name, slope = x, slope * value
        elif node.input[0] == x and value:
            name, slope = x, slope / value
    return name, slope, offset


def _divided(g: RewriteContext, result: str, bound: float) -> tuple[str, str]:
    """The result divided by the bound, and its factor, empty without one; refuses if there is no
    division."""
    if bound == 1:
        return result, ""
    after = g.known(g.after_or_none(result, "Mul", "Div"), "it is not divided by its upper bound")
    if _divides(g, after, result, bound):
        return after.output[0], ""
    factor = other_input(after, result) if after.op_type == "Mul" else None
    factor = g.known(factor or None, "it is not divided by its upper bound")
    inner = None if g.is_used_more_than_once(factor) else g.before_or_none(factor, "Mul", "Div")
    for operand in () if inner is None else g.inputs(inner):
        assert inner is not None
        if _divides(g, inner, operand, bound):
            return after.output[0], operand
    last = g.known(
        g.after_or_none(after.output[0], "Mul", "Div"), "it is not divided by its upper bound"
    )
    divided = factor != result and _divides(g, last, after.output[0], bound)
    g.require(divided, "it is not divided by its upper bound")
    return last.output[0], factor


def _divides(g: RewriteContext, node: NodeProto, name: str, bound: float) -> bool:
    """Whether a node divides a result by a number."""
    value = _scalar_beside(g, node, name)
    if value is None or value.dtype.kind != "f":
        return False
    if node.op_type == "Mul":
        return same_numbers(value, 1 / bound)
    return optional_input(node, 0) == name and value.item() == bound


@rule(
    "default",
    "specialize",
    "x * HardSigmoid(x, alpha=a, beta=b) -> HardSwish(x)",
    min_opset=14,
    priority="first",
    precision="rounding",
)
def hard_swish(g: RewriteContext, a: float, b: float) -> None:
    """x * HardSigmoid(x, alpha=1/6, beta=1/2) -> HardSwish(x).

    With the pattern HardSigmoid, every way to write `x * Clip(x + 3, 0, 6) / 6`.
    """
    same = b == 0.5 and same_numbers(np.array(a, np.float32), 1 / 6)
    g.require(same, "the coefficients are not 1/6 and 1/2")
