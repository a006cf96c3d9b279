"""Weights a rewrite multiplies: what must hold, what it costs, how they are rounded."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.constants.evaluation import predicted_bytes
from xbuilder.constants.table import COMPUTED_BYTES
from xbuilder.op_traits import FLOATS

from ..api import RewriteContext
from .affine import wide
from .arguments import optional_input

#: operators whose result takes the same room as their first input
_MOVES = frozenset({"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
#: elements converted to a wider type at a time
_BLOCK = 1 << 20


def require_weight(g: RewriteContext, name: str) -> None:
    """Refuses unless another weight may replace this one; nothing is read.

    1. It is a constant, of a float type.
    2. It leaves the file: it is an initializer of this graph, or the value of a Constant, maybe
       transposed or reshaped, and nothing else reads it. Or it is not bigger than what a fold may
       add, `constant_size`.
    3. The budget of what the model computes is not spent.
    """
    shape = g.known(g.get_constant_shape(name), "the weight is not constant")
    g.require(g.try_infer_type(name) in FLOATS, "the type of the weight is not a float type")
    size = predicted_bytes(g.try_infer_type(name), shape) or 0
    if size > g.graph.scope.options.constant_size:
        _require_freed(g, name)
    g.require(size <= COMPUTED_BYTES, "the weight is too big")
    refusal = g.graph.constants.refusal(size, size)
    g.require(not refusal, refusal)


def _require_freed(g: RewriteContext, name: str) -> None:
    """Refuses unless the bytes of a constant are in this graph, for nothing else."""
    constants = g.graph.constants
    while True:
        alone = not g.is_used_more_than_once(name)
        g.require(alone, "the weight is used elsewhere, the model would grow")
        producer = constants.computed.get(name)
        if producer is None or producer.op_type not in _MOVES:
            break
        name = producer.inputs[0]
    made = producer is not None and producer.op_type == "Constant"
    stored = made or name in constants.initializers
    g.require(stored, "the weight is computed, the model would grow")


def multiplied_weight(g: RewriteContext, name: str, factor: np.ndarray) -> np.ndarray:
    """A weight multiplied by a factor it is broadcast with, rounded once.

    Refused when the result is not finite, or when what is multiplied by one factor becomes too
    small to keep its precision.

    :param g: the optimizer
    :param name: a weight :func:`require_weight` accepts
    :param factor: as many dimensions as the weight, or none
    """
    weight = g.constant(name, "the weight cannot be read")
    axes = tuple(i for i in range(weight.ndim) if factor.ndim == 0 or factor.shape[i] == 1)
    result = np.empty(weight.shape, weight.dtype)
    with np.errstate(all="ignore"):
        longer = wide(weight[:0]).dtype
        np.multiply(weight, factor, out=result, dtype=longer, casting="unsafe")
    before, after = _amplitude(weight, axes), _amplitude(result, axes)
    g.require(np.isfinite(after).all(), "the new weight is not finite")
    tiny = np.minimum(_smallest_normal(weight.dtype), before)
    kept = (after >= tiny) | (np.broadcast_to(factor, after.shape) == 0)
    g.require(kept.all(), "the new weight is too small for its type")
    g.graph.constants.budget.spend(result.nbytes, result.size)
    return result


def _smallest_normal(dtype: np.dtype) -> float:
    """Below this number a type loses digits."""
    if dtype == np.float16:
        return 2.0**-14
    return 2.0**-1022 if dtype == np.float64 else 2.0**-126


def _amplitude(value: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Largest absolute value along some axes, nan if there is one. Nothing is copied."""
    if value.size == 0:
        return np.zeros([1 if i in axes else d for i, d in enumerate(value.shape)])
    high = value.max(axis=axes, keepdims=True).astype(np.float64)
    low = value.min(axis=axes, keepdims=True).astype(np.float64)
    found: np.ndarray = np.maximum(high, -low)
    return found


def sum_over(weight: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """`sum(weight[m, c, k] * shift[m, c])` over c and k, in a wider type, block by block.

    :param weight: three dimensions
    :param shift: its first two dimensions
    """
    rows = max(1, _BLOCK // max(1, weight.shape[1] * weight.shape[2]))
    blocks = [
        np.einsum("mck,mc->m", wide(weight[i : i + rows]), shift[i : i + rows])
        for i in range(0, weight.shape[0], rows)
    ]
    return np.concatenate(blocks) if blocks else np.zeros((0,))


def rounded(g: RewriteContext, value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A vector in the type of the model; refuses when it is not finite."""
    with np.errstate(over="ignore"):
        result: np.ndarray = value.astype(dtype)
    g.require(np.isfinite(result.astype(np.float64)).all(), "the new bias is not finite")
    return result


def bias_of(g: RewriteContext, node: NodeProto, index: int) -> np.ndarray:
    """The bias of a node in a wider type, 0 if it has none; refuses if it is not constant."""
    name = optional_input(node, index)
    return wide(g.constant(name, "the bias is not constant")) if name else np.zeros(())
