"""Elementwise formulas merged into one CUDA kernel."""

from __future__ import annotations

from xbuilder.operators.domains import CUDA_DOMAIN

from ..authoring import RewriteContext
from ..declarative import rule
from .cuda import require_cuda


@rule("experimental", f"y = x * Sigmoid(x); y -> {CUDA_DOMAIN}.MulSigmoid(x)", min_opset=6)
def mul_sigmoid(g: RewriteContext, y: str) -> None:
    """X * Sigmoid(X) -> MulSigmoid(X), on CUDA, for float and float16."""
    require_cuda(g, y)


@rule("experimental", f"y = 1 - x; y -> {CUDA_DOMAIN}.NegXplus1(x)", min_opset=7, name="NegXplus1")
def neg_x_plus_1(g: RewriteContext, y: str) -> None:
    """1 - X -> NegXplus1(X), on CUDA, for float and float16."""
    require_cuda(g, y)


@rule(
    "experimental",
    f"y = Where(Equal(x, 0), by, x); y -> {CUDA_DOMAIN}.ReplaceZero(x, by=by)",
    f"y = Where(Cast(x, to=9), x, by); y -> {CUDA_DOMAIN}.ReplaceZero(x, by=by)",
    f"y = Where(Not(Cast(x, to=9)), by, x); y -> {CUDA_DOMAIN}.ReplaceZero(x, by=by)",
    min_opset=9,
)
def replace_zero(g: RewriteContext, y: str) -> None:
    """Where(X == 0, c, X) -> ReplaceZero(X, by=c), on CUDA, for float and float16.

    1. Where(Cast(X), X, c) or Where(Not(Cast(X)), c, X), the Cast being to booleans.
    2. c is a scalar constant that keeps the shape of X.
    """
    require_cuda(g, y)
