"""Elementwise operators: unary, binary and variadic arithmetic, with numpy's broadcasting."""

from __future__ import annotations

from functools import partial

from ...dims import Dim, add, dim_max, dim_min, neg
from ...facts.facts import ResultFacts, Value
from ...operators.op_traits import ELEMENTWISE_UNARY, KEEPS_TYPE
from .. import values as V
from ..common import (
    BOOL,
    broadcast_shape,
    facts_like,
    first_type,
    is_one,
    merge_shapes,
    same_as_first,
    several,
)
from ..context import ShapeContext
from ..shipped import shipped_function, shipped_table

_UNARY_VALUES = {
    "Abs": V.absolute,
    "Ceil": lambda a: a,
    "Floor": lambda a: a,
    "Neg": neg,
    "Relu": lambda a: dim_max(a, 0),
    "Round": lambda a: a,
    "Sign": V.sign,
}

#: operators whose single output has the type and the shape of the first input, and no known value
UNARY = (
    *sorted(ELEMENTWISE_UNARY & KEEPS_TYPE - {*_UNARY_VALUES, "Clip", "Identity", "Not"}),
    *("CumProd", "Hardmax", "LogSoftmax", "ReverseSequence", "Softmax", "Trilu"),
)

shipped_table((op_type, same_as_first) for op_type in UNARY)


@shipped_function(*_UNARY_VALUES)
def unary_with_value(ctx: ShapeContext) -> ResultFacts:
    """Unary operators whose integer content is propagated, since shapes are computed with them."""
    facts = ctx.facts(0)
    result = ResultFacts(facts.type, facts.shape, facts.rank)
    if facts.value is not None:
        value = V.map_value(_UNARY_VALUES[ctx.op_type], facts.value)
        result.value = V.checked(value, facts.type)
    return result


@shipped_function("Identity")
def identity(ctx: ShapeContext) -> ResultFacts:
    """Identity: all the known facts of the input, sequences and optionals included."""
    facts = ctx.facts(0)
    return ResultFacts(
        facts.type, facts.shape, facts.rank, facts.value, facts.sequence, facts.optional
    )


def broadcast_facts(
    ctx: ShapeContext, elem_type: int, a: ResultFacts, b: ResultFacts
) -> ResultFacts:
    """Facts of a result whose shape is the broadcast shape of two results.

    :param ctx: context, receives the constraints
    :param elem_type: type of the result
    :param a: facts of one side
    :param b: facts of the other side
    """
    sa, sb = a.shape, b.shape
    if sa is not None:
        if sa == sb or sb == ():
            return ResultFacts(elem_type, sa)
        if sb is not None:
            return ResultFacts(elem_type, broadcast_shape(ctx, sa, sb) if sa else sb)
    ra, rb = a.known_rank(), b.known_rank()
    if ra is None or rb is None:
        return ResultFacts(elem_type)
    if sb == () or ra == 0:
        return facts_like(a if sb == () else b, elem_type)
    return ResultFacts(elem_type, None, max(ra, rb))


def broadcast_all(ctx: ShapeContext, elem_type: int, facts: list[ResultFacts]) -> ResultFacts:
    """Facts of a result whose shape is the broadcast shape of several results."""
    if not facts:
        return ResultFacts(elem_type)
    result = facts_like(facts[0], elem_type)
    for other in facts[1:]:
        result = broadcast_facts(ctx, elem_type, result, other)
    return result


@shipped_function("Add", "Sub", "Mul", "Div", "Pow", "Mod", since=7)
def binary(ctx: ShapeContext) -> ResultFacts:
    """Arithmetic on two tensors. The content of integer tensors is propagated."""
    a, b = ctx.facts(0), ctx.facts(1)
    elem_type = a.type or (0 if ctx.op_type == "Pow" else b.type)
    if a.value is None or b.value is None:
        shape = a.shape
        if shape is not None and shape == b.shape:
            return ResultFacts(elem_type, shape)
        return broadcast_facts(ctx, elem_type, a, b)
    result = broadcast_facts(ctx, elem_type, a, b)
    function: V.Binary
    if ctx.op_type == "Mod":
        function = V.truncated_modulo if ctx.attr("fmod", 0) else V.modulo
    elif ctx.op_type == "Div":
        function = partial(V.div, constraints=ctx.constraints)
    else:
        function = V.ARITHMETIC[ctx.op_type]
    result.value = V.checked(V.map_values(function, a.value, b.value), elem_type)
    return result


@shipped_function("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", since=7)
def binary_same_type(ctx: ShapeContext) -> ResultFacts:
    """Binary operators whose content is not propagated."""
    a, b = ctx.facts(0), ctx.facts(1)
    return broadcast_facts(ctx, a.type or b.type, a, b)


shipped_table((op, same_as_first) for op in ("Add", "Sub", "Mul", "Div", "Pow", "PRelu"))
shipped_table((op, same_as_first) for op in ("Max", "Min", "Mean", "Sum"))


@shipped_function("PRelu", since=7)
def prelu(ctx: ShapeContext) -> ResultFacts:
    """PRelu: the slope is broadcast to the input, not the other way round.

    The shape is unknown for a wider slope, which onnxruntime accepts and which widens the result.
    """
    facts, slope = facts_like(ctx.facts(0), first_type(ctx, 0, 1)), ctx.shape(1)
    if facts.shape is None or slope is None:
        return facts
    pairs = zip(facts.shape[::-1], slope[::-1], strict=False)
    if len(slope) > len(facts.shape) or any(is_one(x) and not is_one(d) for x, d in pairs):
        return ResultFacts(facts.type)
    return facts


@shipped_function("SwiGLU")
def swiglu(ctx: ShapeContext) -> ResultFacts:
    """SwiGLU: both inputs have the same shape."""
    a, b = ctx.facts(0), ctx.facts(1)
    shape = merge_shapes(ctx, [a.shape, b.shape])
    return facts_like(a if shape is None else ResultFacts(a.type, shape), a.type or b.type)


@shipped_function("Max", "Min", "Mean", "Sum", since=8)
def variadic(ctx: ShapeContext) -> ResultFacts:
    """Variadic arithmetic with broadcasting."""
    facts = [ctx.facts(i) for i in range(ctx.n_inputs)]
    elem_type = first_type(ctx)
    result = broadcast_all(ctx, elem_type, facts)
    function = V.ARITHMETIC.get(ctx.op_type)
    if function is None or not facts or facts[0].value is None:
        return result
    value: Value = facts[0].value
    for other in facts[1:]:
        value = V.map_values(function, value, other.value)
    result.value = V.checked(value, elem_type)
    return result


@shipped_function("Clip")
def clip(ctx: ShapeContext) -> ResultFacts:
    """Clip: bounds are attributes before opset 11, inputs after; they never change the shape."""
    facts = ctx.facts(0)
    result = facts_like(facts)
    if facts.value is None:
        return result
    value: Value = facts.value
    for i, function in ((1, dim_max), (2, dim_min)):
        if ctx.has_input(i):
            value = V.map_values(function, value, ctx.value(i))
    result.value = V.checked(V.shaped(value, facts.shape), facts.type)
    return result


@shipped_function("Where")
def where(ctx: ShapeContext) -> ResultFacts:
    """Where: three inputs are broadcast together, the type is the one of the branches."""
    condition, a, b = ctx.facts(0), ctx.facts(1), ctx.facts(2)
    elem_type = a.type or b.type
    result = broadcast_all(ctx, elem_type, [condition, a, b])
    if a.value is not None and b.value is not None:
        if condition.value is not None:
            value = V.map_values(V.select, condition.value, a.value, b.value)
        else:
            value = _same_branches(a.value, b.value, condition, result)
        result.value = V.checked(value, elem_type)
    return result


def _same_branches(a: Value, b: Value, condition: ResultFacts, result: ResultFacts) -> Value:
    """Content of a Where whose branches are equal and not widened by the condition."""
    rank = 1 if isinstance(a, tuple) else 0
    if a != b or result.shape is None or len(result.shape) != rank:
        return None
    return V.shaped(a, result.shape)


@shipped_function("CumSum")
def cumsum(ctx: ShapeContext) -> ResultFacts:
    """CumSum, whose content is propagated on integer vectors."""
    facts = ctx.facts(0)
    result = facts_like(facts)
    if isinstance(facts.value, tuple):
        items = facts.value[::-1] if ctx.attr("reverse", 0) else facts.value
        exclusive = ctx.attr("exclusive", 0)
        total: Dim = 0
        sums: list[Dim] = []
        for item in items:
            before, total = total, add(total, item)
            sums.append(before if exclusive else total)
        value = tuple(sums[::-1] if ctx.attr("reverse", 0) else sums)
        result.value = V.checked(value, facts.type)
    return result


@shipped_function("Dropout")
def dropout(ctx: ShapeContext) -> list[ResultFacts]:
    """Dropout: the mask has the type of the input before opset 10, it is boolean after."""
    facts = ctx.facts(0)
    mask = facts_like(facts, facts.type if ctx.opset < 10 else BOOL)
    return several(ctx, facts_like(facts), mask)
