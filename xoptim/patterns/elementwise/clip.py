"""Merges two Clip, one after the other, and removes bounds that bound nothing."""

from __future__ import annotations

import numpy as np

from ...analysis.constants import scalar_constant
from ...authoring import RewriteContext
from ...declarative import rule


@rule(
    "default",
    "Clip(Clip(x, low), None, high) -> Clip(x, low, high)",
    "Clip(Clip(x, None, high), low) -> Clip(x, low, high)",
    min_opset=11,
)
def clip_clip(g: RewriteContext, low: str, high: str) -> None:
    """Clip(Clip(X, min=a), max=b) -> Clip(X, min=a, max=b) when a <= b.

    1. The lower bound first, then the upper one.
    2. The upper bound first, then the lower one.

    The bounds are constants, because the order of the two Clip matters if a > b. They are finite,
    because a Clip without one of them returns the largest number, not infinity.
    """
    a, b = (g.constant_of(name, "a bound is not constant") for name in (low, high))
    ordered = a.size == b.size == 1 and (a.ravel() <= b.ravel()).all()
    g.require(ordered, "the lower bound is not proven below the upper one")
    g.require(np.isfinite(a).all() and np.isfinite(b).all(), "a bound is infinite")


_UNBOUNDED = {"Max": -np.inf, "Min": np.inf}


@rule("default", "y = Max(x, bound) | Min(x, bound); y -> x", min_opset=8)
def infinite_bound(g: RewriteContext, x: str, bound: str, y: str) -> None:
    """Max(X, -inf) -> X, Min(X, inf) -> X.

    The bound is a constant of one element that adds no dimension. jax starts a maximum with it.
    """
    value = scalar_constant(g, bound, g.rank_or_none(x))
    infinite = value is not None and value.item() == _UNBOUNDED[g.producer_of(y).op_type]
    g.require(infinite, "the bound is not an infinity")
