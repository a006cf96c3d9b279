"""Rewrites given as relations, mixed with the others."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xoptim.testing import check_no_match, check_pattern, model_from_text, optimize_with
from xoptim.toolkit.relations import (
    KanrenRelationSub,
    Operator,
    conde,
    cons,
    constant,
    eq,
    etuple,
    have_same_shape,
    lall,
    op,
    provided,
    reduceo,
    term_of,
    var,
    walko,
)


def distributes(product: Any, total: Any) -> Any:
    """MatMul(a, x + y) and MatMul(a, x) + MatMul(a, y)."""
    a, x, y = var(), var(), var()
    return lall(
        eq(product, op.MatMul(a, op.Add(x, y))),
        eq(total, op.Add(op.MatMul(a, x), op.MatMul(a, y))),
        provided(have_same_shape, x, y),
    )


def gathers(total: Any, product: Any) -> Any:
    """The same relation, the other way."""
    return distributes(product, total)


def everywhere(relation: Any) -> Any:
    """A relation applied in every term, as many times as it can."""
    return partial(reduceo, partial(walko, relation))


PRODUCT = """g (float[4,4] a, float[4,n] x, float[4,n] y, float[4,n] z) => (float[4,n] r) {
    p = Add(x, y) q = Add(p, z) r = MatMul(a, q) }"""
TOTAL = """g (float[4,4] a, float[4,n] x, float[4,n] y, float[4,n] z) => (float[4,n] r) {
    i = MatMul(a, x) j = MatMul(a, y) k = Add(i, j) l = MatMul(a, z) r = Add(k, l) }"""
TOLERANCE: dict[str, float] = {"atol": 1e-5, "rtol": 1e-5}


@pytest.mark.parametrize("walks", [False, True], ids=["engine walks", "relation walks"])
def test_one_relation_distributes_and_gathers(walks):
    """Nested sums included; the engine, or the relation itself, goes from term to term."""
    change = everywhere if walks else lambda relation: relation
    forward = KanrenRelationSub(change(distributes), "MatMul", name="Distribute")
    check_pattern(PRODUCT, TOTAL, [forward], **TOLERANCE)
    backward = KanrenRelationSub(change(gathers), "Add", name="Gather")
    check_pattern(TOTAL, PRODUCT, [backward], **TOLERANCE)


def splits(many: Any, nested: Any) -> Any:
    """Max(x, y, ...) and Max(x, Max(y, ...)), whatever the number of operands after two."""
    x, y, z, rest, greatest = var(), var(), var(), var(), Operator("Max")
    others = cons(y, cons(z, rest))
    return lall(
        eq(many, cons(greatest, cons(x, others))),
        eq(nested, op.Max(x, cons(greatest, others))),
    )


def nests(nested: Any, many: Any) -> Any:
    """The same relation, the other way."""
    return splits(many, nested)


@pytest.mark.parametrize("count", [3, 4])
def test_variable_numbers_of_operands(count: int) -> None:
    names = [f"x{i}" for i in range(count)]
    head = f"g ({', '.join(f'float[n] {n}' for n in names)}) => (float[n] y)"
    many = f"{head} {{ y = Max({', '.join(names)}) }}"
    body = f"m{count - 2} = Max({names[-2]}, {names[-1]})"
    for i in range(count - 3, -1, -1):
        body += f" m{i} = Max({names[i]}, m{i + 1})"
    nested = f"{head} {{ {body.replace('m0', 'y')} }}"
    check_pattern(many, nested, [KanrenRelationSub(splits, "Max")])
    check_pattern(nested, many, [KanrenRelationSub(nests, "Max")])


def test_operators_and_attributes_are_variables() -> None:
    """Any reduction after an exact copy of it is done once, whatever its attributes."""

    def once(term: Any, other: Any) -> Any:
        x, kind, attributes = var(), var(), var()
        same = Operator(kind, attributes=attributes)
        return lall(eq(term, etuple(same, etuple(same, x))), eq(other, etuple(same, x)))

    head = "g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z)"
    text = f"""{head} {{ a = Hardmax <axis=0> (x) y = Hardmax <axis=0> (a)
        b = Hardmax <axis=1> (x) c = Hardmax <axis=0> (b) z = Abs(c) }}"""
    expected = f"""{head} {{ y = Hardmax <axis=0> (x)
        b = Hardmax <axis=1> (x) c = Hardmax <axis=0> (b) z = Abs(c) }}"""
    check_pattern(text, expected, [KanrenRelationSub(once, ("Hardmax", "Abs"))])


def test_both_ways_at_once_is_stopped():
    both = [
        KanrenRelationSub(distributes, "MatMul", name="Distribute"),
        KanrenRelationSub(gathers, "Add", name="Gather"),
    ]
    with pytest.warns(UserWarning, match="Distribute.*Gather|Gather.*Distribute"):
        optimize_with(model_from_text(PRODUCT, 18), both)


def test_broadcast_sum_is_not_distributed():
    text = """g (float[4,4] a, float[4,4] x, float[4] y) => (float[4,4] r) {
        q = Add(x, y) r = MatMul(a, q) }"""
    check_no_match(text, KanrenRelationSub(distributes, "MatMul"), "gives nothing to write")


def test_engine_refuses_a_relation_that_changes_a_shape():
    def without_condition(product: Any, total: Any) -> Any:
        a, x, y = var(), var(), var()
        return lall(
            eq(product, op.MatMul(a, op.Add(x, y))),
            eq(total, op.Add(op.MatMul(a, y), op.MatMul(a, y))),
        )

    model = model_from_text(
        "g (float[2,4] a, float[4,3] x, float[4,1] y) => (float[2,3] r) { q = Add(x, y) r = MatMul(a, q) }",
        18,
    )
    with pytest.raises(PatternError, match="without_condition changes the type or the shape"):
        optimize_with(model, [KanrenRelationSub(without_condition, "MatMul")])


def test_answers_may_be_results_and_constants():
    def identity(term: Any, other: Any) -> Any:
        return eq(term, op.Add(other, np.zeros((1,), np.float32)))

    def zero(term: Any, other: Any) -> Any:
        x = var()
        return lall(eq(term, op.Sub(x, x)), eq(other, constant(np.zeros((2,), np.float32))))

    text = "g (float[2] x) => (float[2] y, float[2] z) <float[1] o = {0}> { a = Add(x, o) y = Neg(a) b = Sub(x, x) z = Add(b, y) }"
    expected = "g (float[2] x) => (float[2] y, float[2] z) <float[2] o = {0, 0}> { y = Neg(x) z = Add(o, y) }"
    both = [KanrenRelationSub(identity), KanrenRelationSub(zero)]
    check_pattern(text, expected, both, verifies=False)  # x - x is NaN if x is infinite


def test_answers_with_variables_or_nothing_new_do_not_count():
    def unbound(term: Any, other: Any) -> Any:
        return eq(other, op.Neg(var()))

    text = "g (float[2] x) => (float[2] y) { y = Neg(x) }"
    check_no_match(text, KanrenRelationSub(unbound), "gives nothing")
    check_no_match(text, KanrenRelationSub(eq), "gives nothing")


def test_results_filter_chooses():
    def either(term: Any, other: Any) -> Any:
        x = var()
        return lall(
            eq(term, op.Abs(op.Neg(x))), conde([eq(other, op.Relu(x))], [eq(other, op.Abs(x))])
        )

    def abs_only(answers: Any) -> Any:
        return next((a for a in answers if a[0].op_type == "Abs"), None)

    text = "g (float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }"
    expected = "g (float[2] x) => (float[2] y) { y = Abs(x) }"
    check_pattern(text, expected, [KanrenRelationSub(either, "Abs", abs_only)])
    refuses = KanrenRelationSub(either, "Abs", lambda answers: None)
    check_no_match(text, refuses, "gives nothing")


def test_a_result_used_elsewhere_stays():
    text = """g (float[4,4] a, float[4,4] x, float[4,4] y) => (float[4,4] r, float[4,4] q) {
        q = Add(x, y) r = MatMul(a, q) }"""
    expected = """g (float[4,4] a, float[4,4] x, float[4,4] y) => (float[4,4] r, float[4,4] q) {
        q = Add(x, y) i = MatMul(a, x) j = MatMul(a, y) r = Add(i, j) }"""
    relation = KanrenRelationSub(distributes, "MatMul")  # it rounds, and cannot say so
    check_pattern(text, expected, [relation], verifies=False, **TOLERANCE)


SHAPES = {
    "same": ("x", "y", True),
    "symbols": ("x", "z", False),
    "sum": (op.Add, "x", True),
    "sum of others": (op.Add, "z", False),
}


@pytest.mark.parametrize("case", SHAPES)
def test_have_same_shape(case):
    builder = GraphBuilder(
        model_from_text("g (float[n] x, float[n] y, float[m] z) => (float[n] s) { s = Neg(x) }", 18)
    )
    left, right, expected = SHAPES[case]
    x, y, other = (term_of(builder, n) for n in ("x", "y", right))
    a = x if isinstance(left, str) else left(x, y)
    assert have_same_shape(a, other) is expected


def test_have_same_shape_is_unknown_for_other_terms():
    builder = GraphBuilder(model_from_text("g (float[n] x) => (float[n] s) { s = Neg(x) }", 18))
    x = term_of(builder, "x")
    assert not have_same_shape(op.MatMul(x, x), x)
    assert not have_same_shape(op.Add(x, x, domain="a"), x)
    assert not have_same_shape(x, 1)
