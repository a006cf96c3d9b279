"""Changes of type: Cast, CastLike, BitCast."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ...facts.facts import MAX_TRACKED, ResultFacts, Value
from .. import values as V
from ..common import BOOL, facts_like
from ..context import ShapeContext
from ..shipped import shipped_function


def cast_facts(facts: ResultFacts, to: int) -> ResultFacts:
    """Facts *facts* cast into type *to*. The content is kept when the conversion is exact.

    :param facts: facts of the input
    :param to: a `TensorProto.DataType`, 0 if unknown
    """
    result = facts_like(facts, to)
    if facts.value is not None and to in V.TRACKED:
        if to == BOOL or facts.type == BOOL:
            result.value = V.map_value(V.not_zero, facts.value)
        else:
            result.value = V.checked(facts.value, to)
    return result


#: opset 1 stores the type of Cast as a string
_NAMES = dict(TensorProto.DataType.items())


@shipped_function("Cast")
def cast(ctx: ShapeContext) -> ResultFacts:
    """Cast to the type of attribute `to`."""
    to = ctx.attr("to", 0)
    facts = ctx.facts(0)
    if not isinstance(to, int):
        to = _NAMES.get(str(to).upper(), 0)
    if facts.value is None:
        return ResultFacts(to, facts.shape, facts.rank)
    return cast_facts(facts, to)


@shipped_function("CastLike")
def cast_like(ctx: ShapeContext) -> ResultFacts:
    """Cast to the type of the second input. The content of a constant input is propagated even if
    the result is not computed."""
    facts, to = ctx.facts(0), ctx.type(1)
    if facts.value is None and to in V.TRACKED:
        facts = ResultFacts(facts.type, facts.shape, facts.rank, _integers(ctx.constant(0)))
    return cast_facts(facts, to)


def _integers(array: np.ndarray | None) -> Value:
    """Content of a small tensor of floats that are integers."""
    if array is None or array.ndim > 1 or array.size > MAX_TRACKED or array.dtype.kind != "f":
        return None
    if not (np.isfinite(array) & (array == np.trunc(array))).all():
        return None
    items = tuple(int(value) for value in array.reshape(-1))
    return items if array.ndim else items[0]


@shipped_function("BitCast")
def bit_cast(ctx: ShapeContext) -> ResultFacts:
    """Same bits under another type of the same size. The content is not the same number."""
    return facts_like(ctx.facts(0), ctx.attr("to", 0))
