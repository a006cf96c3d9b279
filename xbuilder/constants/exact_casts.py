"""Conversions that give the same result in every runtime, the only ones that are folded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx.helper as oh
from onnx import NodeProto, TensorProto

from ..nodes.attributes import find_attribute
from ..operators.domains import main_domain
from ..tensors.bits import element_type, is_packed

#: largest finite value of the float types of 8 bits, where saturation stops
_FLOAT8: dict[int, float] = {
    TensorProto.FLOAT8E4M3FN: 448.0,
    TensorProto.FLOAT8E4M3FNUZ: 240.0,
    TensorProto.FLOAT8E5M2: 57344.0,
    TensorProto.FLOAT8E5M2FNUZ: 57344.0,
}
_CONVERSIONS = frozenset({"Cast", "CastLike", "QuantizeLinear"})


def why_not_exact(
    node: NodeProto, values: Sequence[np.ndarray | None], types: Sequence[int]
) -> str:
    """The reason why runtimes may disagree on the result of a conversion.

    They disagree on a float that an integer type cannot hold (a fraction, infinity, nan, a number
    out of range), on what overflows a float8 without saturation, on types of less than one byte.

    :param node: the node, another operator is never refused
    :param values: value of each input, None for a missing one
    :param types: element type of every result, 0 if it is not known
    :return: the reason, an empty string if there is none

    ::

        node = oh.make_node("Cast", ["x"], ["y"], to=TensorProto.INT64)
        why_not_exact(node, [np.array([1e30])], [TensorProto.INT64])  # "a float is not ..."
    """
    if node.op_type not in _CONVERSIONS or main_domain(node.domain):
        return ""
    x, target = values[0] if values else None, types[0] if types else _declared_type(node)
    if x is None or x.dtype.kind in "OSU" or target in (0, TensorProto.STRING):
        return ""
    if is_packed(target) or is_packed(oh.np_dtype_to_tensor_dtype(x.dtype)):
        return "runtimes disagree on the types of less than a byte"
    if target == TensorProto.FLOAT8E8M0:
        return "runtimes disagree on float8e8m0"
    if node.op_type == "QuantizeLinear":
        scale = values[1] if len(values) > 1 else None
        divides = (
            scale is not None
            and _within(scale, np.inf)
            and bool((scale.astype(np.float64) != 0).all())
        )
        return "" if divides and _within(x, np.inf) else "a float is not finite"
    if target in _FLOAT8:
        return "" if _saturates(node) or _within(x, _FLOAT8[target]) else "a float8 overflows"
    return "" if _keeps_integers(x, target) else "a float is not an integer of the new type"


def _declared_type(node: NodeProto) -> int:
    to = find_attribute(node, "to")
    return 0 if to is None else to.i


def _saturates(node: NodeProto) -> bool:
    saturate = find_attribute(node, "saturate")
    return saturate is None or bool(saturate.i)


def _within(x: np.ndarray, largest: float) -> bool:
    """Whether every element is finite and not above a value."""
    as_double = np.abs(x.astype(np.float64))
    return bool((np.isfinite(as_double) & (as_double <= largest)).all())


def _keeps_integers(x: np.ndarray, target: int) -> bool:
    """Whether a conversion changes no value, if it is one to an integer type."""
    dtype = element_type(target).dtype
    if dtype.kind not in "iu" or x.dtype.kind in "biu":
        return True
    bounds = np.iinfo(dtype)
    as_double = x.astype(np.float64)
    # the upper bound plus one is a power of two, which every float type holds
    inside = (as_double >= float(bounds.min)) & (as_double < float(int(bounds.max) + 1))
    return bool((inside & (as_double == np.trunc(as_double))).all())
