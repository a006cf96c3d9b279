"""Comparisons and boolean logic."""

from __future__ import annotations

from ...facts.facts import ResultFacts
from .. import values as V
from ..common import BOOL, facts_like
from ..context import ShapeContext
from ..shipped import shipped_function
from .elementwise import broadcast_facts


@shipped_function("Equal", "Greater", "Less", "And", "Or", "Xor")
def legacy_comparison(ctx: ShapeContext) -> ResultFacts:
    """Before opset 7 the second input is broadcast to the first one."""
    return facts_like(ctx.facts(0), BOOL)


@shipped_function("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", since=7)
def comparison(ctx: ShapeContext) -> ResultFacts:
    """Comparisons, whose content is known when they are proven for every element."""
    a, b = ctx.facts(0), ctx.facts(1)
    result = broadcast_facts(ctx, BOOL, a, b)
    if a.value is not None and b.value is not None:
        function = V.COMPARISONS[ctx.op_type]
        constraints = ctx.constraints
        result.value = V.map_values(lambda x, y: function(x, y, constraints), a.value, b.value)
    return result


@shipped_function("And", "Or", "Xor", since=7)
def logic(ctx: ShapeContext) -> ResultFacts:
    """Logic on booleans."""
    a, b = ctx.facts(0), ctx.facts(1)
    result = broadcast_facts(ctx, BOOL, a, b)
    if a.value is not None and b.value is not None:
        result.value = V.map_values(V.LOGIC[ctx.op_type], a.value, b.value)
    return result


@shipped_function("Not")
def logical_not(ctx: ShapeContext) -> ResultFacts:
    """Negation."""
    facts = ctx.facts(0)
    result = facts_like(facts, BOOL)
    if facts.value is not None:
        result.value = V.map_value(lambda x: 1 - bool(x), facts.value)
    return result


@shipped_function("IsInf", "IsNaN")
def is_special(ctx: ShapeContext) -> ResultFacts:
    """Tests on floats."""
    return facts_like(ctx.facts(0), BOOL)
