"""Quantization operators of the main domain."""

from __future__ import annotations

from ...facts.facts import ResultFacts
from ..common import FLOAT, UINT8, facts_like, several
from ..context import ShapeContext
from ..shipped import shipped_function


@shipped_function("QuantizeLinear")
def quantize_linear(ctx: ShapeContext) -> ResultFacts:
    """QuantizeLinear: the type comes from `output_dtype`, or the zero point, or is uint8."""
    elem_type = ctx.attr("output_dtype", 0)
    if not elem_type:
        elem_type = ctx.type(2) if ctx.has_input(2) else UINT8
    return facts_like(ctx.facts(0), elem_type)


@shipped_function("DequantizeLinear")
def dequantize_linear(ctx: ShapeContext) -> ResultFacts:
    """DequantizeLinear: the type comes from `output_dtype`, or the scale."""
    return facts_like(ctx.facts(0), ctx.attr("output_dtype", 0) or ctx.type(1))


@shipped_function("DynamicQuantizeLinear")
def dynamic_quantize_linear(ctx: ShapeContext) -> list[ResultFacts]:
    """DynamicQuantizeLinear: uint8, with a scale and a zero point."""
    quantized = facts_like(ctx.facts(0), UINT8)
    return several(ctx, quantized, ResultFacts(FLOAT, ()), ResultFacts(UINT8, ()))
