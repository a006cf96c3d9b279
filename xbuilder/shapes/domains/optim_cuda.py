"""Fused CUDA kernels of package onnx-extended, written by the experimental patterns."""

from __future__ import annotations

from ...dims import Shape
from ...facts.facts import ResultFacts
from ...operators.domains import CUDA_DOMAIN, CUDA_UNARY
from ..arithmetic.elementwise import broadcast_all, broadcast_facts
from ..common import (
    FLOAT,
    FLOAT16,
    content,
    facts_like,
    first_type,
    length,
    new_shape,
    refuses_negative,
    same_as_first,
    several,
)
from ..context import ShapeContext
from ..shipped import shipped_function, shipped_table

shipped_table(
    ((op, same_as_first) for op in (*CUDA_UNARY, "Rotary")),
    CUDA_DOMAIN,
)


@shipped_function(
    "AddAdd", "AddMul", "MulAdd", "MulMul", "MulMulSigmoid", "MulSub", "SubMul", domain=CUDA_DOMAIN
)
def fused_elementwise(ctx: ShapeContext) -> ResultFacts:
    """Several elementwise operators in one; `transposeMiddle` swaps axes 1 and 2 at the end."""
    facts = [ctx.facts(i) for i in range(ctx.n_inputs)]
    result = broadcast_all(ctx, first_type(ctx), facts)
    shape = result.shape
    if ctx.attr("transposeMiddle", 0) and shape is not None:
        result.shape = (shape[0], shape[2], shape[1], shape[3]) if len(shape) == 4 else None
    return result


@shipped_function("AddSharedInput", "MulSharedInput", domain=CUDA_DOMAIN)
def shared_input(ctx: ShapeContext) -> list[ResultFacts]:
    """`op(A, B)` and `op(A, C)`."""
    first = ctx.facts(0)
    pairs = (broadcast_facts(ctx, first_type(ctx), first, ctx.facts(i)) for i in (1, 2))
    return several(ctx, *pairs)


@shipped_function("ScatterNDOfShape", "MaskedScatterNDOfShape", "TriMatrix", domain=CUDA_DOMAIN)
@refuses_negative
def of_shape(ctx: ShapeContext) -> ResultFacts:
    """The shape is the content of the first input, the type is the one of the last."""
    shape: Shape | None = content(ctx, 0)
    elem_type = ctx.type(max(ctx.n_inputs - 1, 0))
    if shape is None:
        rank = length(ctx, 0)
        shape = None if rank is None else new_shape(ctx, rank)
    return ResultFacts(elem_type, shape)


@shipped_function("Transpose2DCastFP16", "Transpose2DCastFP32", domain=CUDA_DOMAIN)
def transpose_cast(ctx: ShapeContext) -> ResultFacts:
    """Transposition of a matrix and cast."""
    result = facts_like(ctx.facts(0), FLOAT16 if ctx.op_type.endswith("16") else FLOAT)
    if result.shape is not None:
        result.shape = result.shape[::-1]
    return result
