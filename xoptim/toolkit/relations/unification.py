"""Registers results and operators in the libraries of unification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from cons.core import ConsPair, _car, _cdr
from etuples import etuple
from etuples.core import ExpressionTuple
from etuples.dispatch import apply
from kanren.assoccomm import commutative
from kanren.facts import fact
from unification.core import _reify, _unify, construction_sentinel

from xbuilder.operators.op_traits import COMMUTATIVE

from .terms import ConstantTerm, GraphResult, Operator

#: the state of a goal: values of variables
State = Mapping[Any, Any]


def _unify_operators(a: Operator, b: Operator, state: State) -> Iterator[Any]:
    if a.result != b.result:
        yield False
        return
    pairs = (a.op_type, a.domain, a.attributes_beside(b)), (b.op_type, b.domain)
    yield _unify(pairs[0], (*pairs[1], b.attributes_beside(a)), state)


def _reify_operator(operator: Operator, state: State) -> Iterator[Any]:
    op_type = yield _reify(operator.op_type, state)
    domain = yield _reify(operator.domain, state)
    attributes = yield _reify(operator.attributes, state)
    yield construction_sentinel
    yield Operator(
        op_type, domain, attributes, operator.result, operator.results, operator.defaults
    )


def _unify_result(result: GraphResult, other: Any, state: State) -> Iterator[Any]:
    """Reads the producer of a result to compare it with a term."""
    if not result.is_computed:
        yield False
    else:
        yield _unify(result.term, other, state)


def _unify_number(result: GraphResult, number: float, state: State) -> State | bool:
    return state if result.is_number(number) else False


def _unify_constant(result: GraphResult, value: ConstantTerm, state: State) -> State | bool:
    return state if result.is_constant(value) else False


def _both_ways(kind: type, function: Any) -> None:
    _unify.add((GraphResult, kind, Mapping), function)
    _unify.add((kind, GraphResult, Mapping), lambda a, b, state: function(b, a, state))


def _apply_operator(operator: Operator, operands: ExpressionTuple) -> ExpressionTuple:
    """A term; the library would call the operator at once, but operands may be variables."""
    return etuple(operator, *operands)


@cache
def register() -> None:
    """Registers the terms in the libraries, once."""
    _unify.add((Operator, Operator, Mapping), _unify_operators)
    _reify.add((Operator, Mapping), _reify_operator)
    for kind in (ExpressionTuple, tuple, ConsPair):
        _both_ways(kind, _unify_result)
    for kind in (bool, int, float):
        _both_ways(kind, _unify_number)
    _both_ways(ConstantTerm, _unify_constant)
    _car.add((GraphResult,), lambda result: result.term[0])
    _cdr.add((GraphResult,), lambda result: result.term[1:])
    apply.add((Operator, ExpressionTuple), _apply_operator)
    for op_type in sorted(COMMUTATIVE):
        fact(commutative, Operator(op_type))
