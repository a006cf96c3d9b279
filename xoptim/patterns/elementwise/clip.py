"""Merges two Clip, one after the other."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.arguments import optional_input
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


@rewrite("default", root="Clip", after="Clip", min_opset=11, sole_use=True)
def clip_clip(g: RewriteContext, outer: NodeProto) -> NewNode:
    """Clip(Clip(X, min=a), max=b) -> Clip(X, min=a, max=b) when a <= b.

    1. The lower bound first, then the upper one.
    2. The upper bound first, then the lower one.

    The bounds are constants, because the order of the two Clip matters if a > b. They are finite,
    because a Clip without one of them returns the largest number, not infinity.
    """
    inner = g.before(outer, "Clip")
    bounds = [(optional_input(n, 1), optional_input(n, 2)) for n in (inner, outer)]
    lows, highs = zip(*bounds, strict=True)
    g.require(
        sorted(map(bool, lows)) == sorted(map(bool, highs)) == [False, True]
        and all(map(any, bounds)),
        "one does not have the bound the other one misses",
    )
    low, high = "".join(lows), "".join(highs)
    a, b = (g.constant_of(name, "a bound is not constant") for name in (low, high))
    ordered = a.size == b.size == 1 and (a.ravel() <= b.ravel()).all()
    g.require(ordered, "the lower bound is not proven below the upper one")
    g.require(np.isfinite(a).all() and np.isfinite(b).all(), "a bound is infinite")
    return g.op.Clip(inner.input[0], low, high)
