"""Masks that lower scores so much that their exponential is not a normal float, and not 0."""

from __future__ import annotations

import numpy as np

from ...authoring.context import RewriteContext
from ..constants import scalar_value
from ..neighbours import producer

#: exponentials of what is between are too small for a normal float, and are not 0
_LOWEST, _HIGHEST = -103.97, -87.33

#: least part of a constant mask: what is computed to avoid fewer of them takes longer
_PART = 1 / 32

#: operators that move or repeat a mask
_MOVED = ("Expand", "Reshape", "Squeeze", "Transpose", "Unsqueeze")

#: nodes between scores and their mask, at most
_STEPS = 6


def makes_tiny_weights(g: RewriteContext, scores: str, depth: int = _STEPS) -> bool:
    """Tells if scores, or a mask, are lowered somewhere by -100, or a number close to it.

    1. a constant, one element out of 32 at least;
    2. Where(condition, -100, anything), or the other way.

    It may be a term of a sum, moved or repeated. It says that a rewrite is worth it, nothing about
    what the rewrite may change.

    :param g: the rewrite
    :param scores: what Softmax reads, or what is added to it
    :param depth: number of nodes it is looked for through, at most
    """
    shape = g.get_constant_shape(scores)
    if shape is not None:
        return len(shape) > 1 and _part(g, scores) >= _PART
    node = producer(g, scores, "Add", "Where", *_MOVED) if depth else None
    if node is None:
        return False
    if node.op_type == "Where":
        return any(_is_tiny(g, name) for name in node.input[1:])
    terms = node.input if node.op_type == "Add" else node.input[:1]
    return any(makes_tiny_weights(g, term, depth - 1) for term in terms)


def _part(g: RewriteContext, name: str) -> float:
    """Part of a constant whose exponential is too small."""
    value = g.get_computed_constant(name)
    if value is None or value.dtype != np.float32 or not value.size:
        return 0.0
    return float(np.mean((value > _LOWEST) & (value < _HIGHEST)))


def _is_tiny(g: RewriteContext, name: str) -> bool:
    """Tells if a result is one number whose exponential is too small."""
    value = scalar_value(g, name)
    if value is None or value.dtype != np.float32:
        return False
    return bool(_LOWEST < value.item() < _HIGHEST)
