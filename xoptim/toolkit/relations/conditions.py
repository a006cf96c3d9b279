"""Conditions on the terms of an answer, which must be proven for a relation to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from etuples.core import ExpressionTuple
from unification import reify
from unification.core import isground

from xbuilder.dims import Shape, same_shape
from xbuilder.operators.op_traits import BROADCASTING

from .terms import GraphResult, Operator

Goal = Callable[[Mapping[Any, Any]], Iterator[Mapping[Any, Any]]]


def provided(condition: Callable[..., bool], *terms: Any) -> Goal:
    """A goal that holds if a condition does. It comes after the goals that give its terms a value
    a term that still holds a variable.

    :param condition: called with the terms
    :param terms: terms, variables included

    ::

        lall(eq(term, op.MatMul(a, op.Add(x, y))), provided(have_same_shape, x, y))
    """

    def goal(state: Mapping[Any, Any]) -> Iterator[Mapping[Any, Any]]:
        values = [reify(t, state) for t in terms]
        if all(isground(v, {}) for v in values) and condition(*values):
            yield state

    return goal


def have_same_shape(a: Any, b: Any) -> bool:
    """Whether two terms are proven to have the same shape.

    :param a: a result of the graph, or operators that work element by element on results
    :param b: another one
    """
    first, second = _shape(a), _shape(b)
    if first is None or second is None:
        return False
    constraints = _any_result(a).graph.facts.constraints
    return first == second or same_shape(first, second, constraints) is True


def _shape(term: Any) -> Shape | None:
    """Shape of a term, None if it is not known or if its operands are broadcast."""
    if isinstance(term, GraphResult):
        return term.graph.facts[term.name].shape
    if not isinstance(term, ExpressionTuple) or not isinstance(term[0], Operator):
        return None
    operator, *operands = term
    if operator.domain or operator.op_type not in BROADCASTING or len(operands) != 2:
        return None
    return _shape(operands[0]) if have_same_shape(*operands) else None


def _any_result(term: Any) -> GraphResult:
    return term if isinstance(term, GraphResult) else _any_result(term[1])
