"""Finds infinities in constants, and in masks made of them."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh

from xbuilder.operators.op_traits import RESHAPES

from ...authoring import RewriteContext
from ..constants import is_cheap

#: operators whose result holds every element of the first input, and no other
_MOVES = RESHAPES | {"Cast", "Expand", "Transpose"}
#: most nodes between a result and the constant
_MAX_DEPTH = 6


def may_hold_infinities(g: RewriteContext, name: str, narrow: int = 0) -> bool:
    """Whether a result is known to hold infinities, NaN, or huge numbers such as those of masks,
    whose square overflows.

    It follows constants, branches of Where, nodes that move or add such a result. Cost: bounded.

    :param name: the result
    :param narrow: a float type it is converted to; a number too large for it is infinite there
    """
    pending = [name]
    for _ in range(_MAX_DEPTH):
        following: list[str] = []
        for result in pending:
            if g.is_constant(result):
                if _is_huge(g, result, narrow):
                    return True
                continue
            node = g.producer_or_none(result, *_MOVES, "Where", "Add")
            if node is not None:
                inputs = g.inputs(node)
                sources = {"Where": inputs[1:], "Add": inputs}
                following.extend(sources.get(node.op_type, inputs[:1]))
        pending = following[:_MAX_DEPTH]
    return False


def _is_huge(g: RewriteContext, name: str, narrow: int) -> bool:
    """Whether a constant is known to hold a huge number; a big constant is not read."""
    value = g.graph.constants.uniform_value(name)
    if value is None and is_cheap(g, name):
        value = g.constant_or_none(name)
    found = np.asarray(0 if value is None else value)
    if found.dtype.kind not in "fV":
        return False
    kind = found.dtype if found.dtype.kind == "f" else np.dtype(np.float32)
    numbers = found.astype(np.float64)
    if not bool((np.abs(numbers) < np.sqrt(float(np.finfo(kind).max))).all()):
        return True
    with np.errstate(over="ignore"):
        held = numbers if not narrow else numbers.astype(oh.tensor_dtype_to_np_dtype(narrow))
    return not bool(np.isfinite(held.astype(np.float64)).all())
