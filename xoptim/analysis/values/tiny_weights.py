"""Masks that lower scores so much that their exponential is subnormal, not 0, and slow to
compute."""

from __future__ import annotations

import numpy as np

from ...authoring.context import RewriteContext
from ..constants import scalar_value

#: exponentials of numbers between these are too small for a normal float, and not 0
_LOWEST, _HIGHEST = -103.97, -87.33

#: least part of a constant mask: below it, avoiding them takes longer than computing them
_PART = 1 / 32

#: operators that move or repeat a mask
_MOVED = ("Expand", "Reshape", "Squeeze", "Transpose", "Unsqueeze")

#: most nodes between scores and their mask
_STEPS = 6


def has_subnormal_weights(g: RewriteContext, scores: str, depth: int = _STEPS) -> bool:
    """Whether scores, or a mask, are lowered somewhere by -100, or a number close to it.

    1. a constant, one element out of 32 at least;
    2. Where(condition, -100, anything), or the other way.

    It may be a term of a sum, moved or repeated. The answer only says that a rewrite pays off, not
    that it is valid.

    :param scores: input of Softmax, or a term of it
    :param depth: most nodes to follow
    """
    shape = g.get_constant_shape(scores)
    if shape is not None:
        return len(shape) > 1 and _part(g, scores) >= _PART
    node = g.producer_or_none(scores, "Add", "Where", *_MOVED) if depth else None
    if node is None:
        return False
    if node.op_type == "Where":
        return any(_is_tiny(g, name) for name in node.input[1:])
    terms = node.input if node.op_type == "Add" else node.input[:1]
    return any(has_subnormal_weights(g, term, depth - 1) for term in terms)


def _part(g: RewriteContext, name: str) -> float:
    """Part of the elements of a constant whose exponential is subnormal."""
    value = g.constant_or_none(name)
    if value is None or value.dtype != np.float32 or not value.size:
        return 0.0
    return float(np.mean((value > _LOWEST) & (value < _HIGHEST)))


def _is_tiny(g: RewriteContext, name: str) -> bool:
    """Whether a result is one number whose exponential is subnormal."""
    value = scalar_value(g, name)
    if value is None or value.dtype != np.float32:
        return False
    return bool(_LOWEST < value.item() < _HIGHEST)
