from __future__ import annotations

import itertools
import random

import pytest

from xbuilder.dims import (
    Constraints,
    DimensionError,
    add,
    broadcast_dim,
    dim_max,
    dim_min,
    evaluate,
    floordiv,
    mod,
    mul,
    prove_equal,
    prove_ge,
    sub,
)


def test_nothing_is_known_at_first():
    known = Constraints()
    assert len(known) == 0
    assert list(known.items()) == []
    assert known.canonical("b+a") == "a+b"
    assert known.canonical(3) == 3
    assert prove_equal("a", "b", known) is None
    assert prove_ge("a", "b", known) is None


def test_equalities_are_transitive_and_used_inside_expressions():
    known = Constraints()
    known.add_equal("a", "b")
    known.add_equal("c", "b")
    assert prove_equal("a", "c", known) is True
    assert prove_equal("2*a+1", "c+b+1", known) is True
    assert prove_equal("max(a,d)//2", "max(d,c)//2", known) is True
    assert prove_equal("a", "c+1", known) is False
    assert prove_equal("a", "d", known) is None
    assert prove_ge("a+d", "c", known) is True
    assert known.canonical("c") == "a"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_integers_are_preferred_whatever_the_order(order):
    known = Constraints(generated=["g"])
    pairs = [("g", "a"), ("a", "b"), ("g", 8)]
    for i in order:
        known.add_equal(*pairs[i])
    assert [known.canonical(d) for d in ("a", "b", "g", "a+g//3")] == [8, 8, 8, 10]


@pytest.mark.parametrize("pair", [("g", "a"), ("a", "g")])
def test_names_of_the_user_are_preferred(pair):
    known = Constraints()
    known.add_generated("g")
    assert known.is_generated("g")
    assert not known.is_generated("a")
    known.add_equal(*pair)
    assert known.canonical("g") == "a"
    assert known.canonical("g+1") == "a+1"


def test_name_of_the_user_is_preferred_to_an_expression():
    known = Constraints(generated=["g"])
    known.add_equal("total", "past+seq")
    assert known.canonical("total") == "total"
    assert known.canonical("seq+past") == "total"
    known.add_equal("half", "g//2")
    assert known.canonical("g//2") == "half"
    assert prove_equal("total-seq", "past", known) is True
    known.add_equal("past", 0)
    assert known.canonical("seq+past") == "seq"
    assert prove_equal("total", "seq", known) is True


def test_expressions_are_solved():
    known = Constraints(generated=["g", "h"])
    known.add_equal("2*g+2", "4*h", "one")
    assert known.canonical("g+1") == "2*h"
    known.add_equal("h", "seq", "two")
    assert known.canonical("g") == "2*seq-1"
    known.add_equal("3*other", 12)
    assert known.canonical("other") == 4


def test_relations_no_symbol_can_solve():
    known = Constraints()
    known.add_equal("2*a", "3*b", "reshape")
    assert prove_equal("4*a", "6*b", known) is True
    assert prove_equal("2*a+1", "3*b+1", known) is True
    assert prove_ge("2*a", "3*b", known) is True
    assert prove_equal("a", "b", known) is None
    known.add_equal("a*c", "b*d")
    assert prove_equal("b*d", "a*c", known) is True
    known.add_equal("a", 6)
    assert known.canonical("b") == 4
    with pytest.raises(DimensionError, match="reshape"):
        known.add_equal("b", 5)


def test_contradiction_quotes_both_origins():
    known = Constraints()
    known.add_equal("a", 2, "node Add_1")
    known.add_equal("b", "a", "node Mul_2")
    with pytest.raises(DimensionError) as info:
        known.add_equal("b", 3, "node Concat_3")
    for origin in ("node Add_1", "node Mul_2", "node Concat_3", "2 differs from 3"):
        assert origin in str(info.value)


@pytest.mark.parametrize(("a", "b"), [(2, 3), ("a", "a+1"), ("2*a", 3), ("a", -1), ("a+b+1", 0)])
def test_contradiction_alone(a, b):
    known = Constraints()
    with pytest.raises(DimensionError, match="cannot be equal"):
        known.add_equal(a, b, "here")
    assert len(known) == 0


def test_what_is_refused_leaves_no_trace():
    known = Constraints()
    known.add_equal("2*a", "3*b", "one")
    known.add_equal_or_one("a", "c", "two")
    before = {name: value.copy() for name, value in vars(known).items() if name != "_cache"}
    with pytest.raises(DimensionError):
        known.add_equal("a", 5, "three")
    before["_seen"] = known._seen
    assert {name: value for name, value in vars(known).items() if name != "_cache"} == before
    assert prove_equal("a", 5, known) is None


def test_equal_or_one_with_a_known_side():
    known = Constraints()
    known.add_equal_or_one("a", 4, "add")
    assert prove_equal("a", 4, known) is None
    assert prove_equal("a", 1, known) is None
    assert prove_equal("a", 3, known) is False
    known.add_equal("a", "b+2")
    assert known.canonical("a") == 4
    assert known.canonical("b") == 2


def test_equal_or_one_waits_for_a_known_side():
    known = Constraints()
    known.add_equal_or_one("a", "b", "node Add_1")
    assert prove_equal("a", "b", known) is None
    known.add_equal("a", 4, "node A")
    assert prove_equal("b", 5, known) is False
    assert prove_equal("b", 4, known) is None
    with pytest.raises(DimensionError, match="node B requires: .* node Add_1, node A"):
        known.add_equal("b", 5, "node B")
    known.add_equal("b", "c+2")
    assert known.canonical("c") == 2


@pytest.mark.parametrize(
    ("short", "long", "expected"),
    [
        ("min(64,seq)", "seq", True),
        ("seq", "min(seq,64)", True),
        ("min(64,a+b)", "a+b", True),
        ("min(1,seq)", "seq", None),
        ("min(0,seq)", "seq", None),
        ("min(64,seq)", "other", None),
        ("min(a,seq)", "seq", None),
        ("max(64,seq)", "seq", None),
    ],
)
def test_equal_or_one_what_is_cut(short: str, long: str, expected: bool | None):
    """min(64, seq) is broadcast with seq: above 64 the model does not run."""
    known = Constraints()
    known.add_equal_or_one(short, long, "add")
    assert known.prove_equal(short, long) is expected


def test_equal_or_one_what_is_cut_is_too_long():
    known = Constraints()
    known.add_equal_or_one("min(64,seq)", "seq", "add")
    with pytest.raises(DimensionError, match="add"):
        known.add_equal("seq", 100, "input")


def test_equal_or_one_when_equality_is_excluded():
    known = Constraints()
    known.add_equal("a", 4)
    known.add_equal_or_one("4*b+1", "a")
    assert known.canonical("b") == 0
    with pytest.raises(DimensionError):
        known.add_equal_or_one("a", 5, "here")


def test_equal_or_one_already_true():
    known = Constraints()
    known.add_equal_or_one("a", "a")
    known.add_equal_or_one("a", 1)
    known.add_equal("a", 7)
    assert list(known.items()) == [
        ("equal_or_one", "a", "a", ""),
        ("equal_or_one", "a", 1, ""),
        ("equal", "a", 7, ""),
    ]


def wide(letter: str, count: int) -> str:
    """The sum of many products: the difference of two of them passes the bounds of a form."""
    return "+".join(f"{letter}{i}*{letter}{i + 1}" for i in range(count))


@pytest.mark.parametrize("count", [40, 60, 80, 100, 120])
def test_forms_whose_difference_is_too_large(count: int):
    known = Constraints()
    known.add_equal("a*b", "c*d")
    left, right = wide("p", count), wide("q", count)
    assert known.prove_equal(left, right) is None
    assert known.prove_ge(left, right) is None
    known.add_equal(left, right)
    known.add_equal_or_one(left, right)
    assert known.prove_equal(left, left) is True
    assert known.prove_equal("a*b", "c*d") is True


def test_not_one():
    known = Constraints()
    assert known.prove_equal("a", 1) is None
    assert known.prove_equal("a+2", 1) is False
    assert known.prove_equal("2*a", 1) is False
    known.add_equal("a", "b+2")
    assert known.prove_equal("a", 1) is False


def test_copy_is_independent():
    known = Constraints()
    known.add_equal("a", "b")
    other = known.copy()
    other.add_equal("a", 3)
    assert other.canonical("b") == 3
    assert known.canonical("b") == "a"
    assert len(known) == 1


def test_broadcast_records_and_uses():
    known = Constraints()
    assert broadcast_dim("a", 4, known, "node Add_1") == 4
    assert list(known.items()) == [("equal_or_one", "a", 4, "node Add_1")]
    assert broadcast_dim("a", "b", known) == "broadcast(a,b)"
    known.add_equal("a", "b")
    assert broadcast_dim("a", "b", known) == "a"
    known.add_equal("b", "c+2")
    assert broadcast_dim("a", "d", known) == 4
    with pytest.raises(DimensionError, match="node Add_1"):
        broadcast_dim("a", 5, known, "node Add_2")


def test_cost_is_linear():
    # 3000 generated names unified one after the other: a quadratic version takes minutes
    known = Constraints(generated=[f"g{i}" for i in range(3000)])
    for i in range(3000):
        known.add_equal(f"g{i}", f"n{i % 7}+{i}")
        assert known.canonical(f"g{i}") == f"n{i % 7}+{i}" if i else "n0"
    known.add_equal("n0", "n1+1")
    assert prove_equal("g0", "n1+1", known) is True


def test_a_dimension_that_is_not_below_an_integer():
    known = Constraints()
    known.add_at_least("samples//5-9", 0)
    known.add_at_least("samples", 3)
    assert known.minimums == {"samples": 45}
    assert prove_ge("samples//5-9", 0, known) is True
    assert prove_ge("(samples+15)//20", 3, known) is True
    assert prove_ge("(samples+15)//20", 4, known) is None
    assert prove_ge(44, "samples", known) is False
    assert prove_equal("samples", 44, known) is False
    assert prove_equal("samples", 45, known) is None
    assert prove_equal("max(samples,45)", "samples", known) is True
    other = known.copy()
    other.add_at_least("samples", 100)
    assert prove_ge("samples", 100, known) is None
    assert prove_ge("samples", 100, other) is True


def test_a_solved_symbol_that_is_not_below_an_integer():
    known = Constraints(generated=["g"])
    known.add_equal("g", "a+1")
    known.add_at_least("g", 5)
    assert known.minimums == {"a": 4}
    assert prove_ge("a", 4, known) is True


def test_a_sum_that_is_not_below_an_integer():
    known = Constraints(generated=["g"])
    known.add_at_least("a+b", 2)
    known.add_at_least("a+b", 1)
    known.add_at_least("5-c", 0)
    assert known.minimums == {}
    assert list(known.lower_bounds()) == [("a+b", 2), ("5-c", 0)]
    assert prove_ge("a+b", 2, known) is True
    assert prove_ge("a+b+c", 1, known) is True
    assert prove_ge("a+b", 3, known) is None
    assert prove_ge("a", 1, known) is None
    assert prove_ge(6, "c", known) is True
    known.add_equal("b", "g+1")
    assert prove_ge("a+g", 1, known) is True
    assert prove_ge("a+g", 2, known) is None
    other = known.copy()
    other.add_at_least("a*d", 1)
    assert other.minimums == {"a": 1, "d": 1} and known.minimums == {}


def random_expression(rnd: random.Random, depth: int = 0):
    if depth > 2 or rnd.random() < 0.45:
        return rnd.choice("abcdef") if rnd.random() < 0.75 else rnd.randint(0, 4)
    left = random_expression(rnd, depth + 1)
    if rnd.random() < 0.3:
        return rnd.choice([floordiv, mod])(left, rnd.randint(1, 4))
    return rnd.choice([add, sub, mul, dim_max, dim_min])(left, random_expression(rnd, depth + 1))


@pytest.mark.parametrize("seed", range(12))
def test_what_true_constraints_prove_is_true(seed):
    rnd = random.Random(seed)
    sizes = {name: rnd.choice([0, 1, 1, 2, 3, 4, 6]) for name in "abcdef"}
    known = Constraints(generated="def")
    values = [(e, evaluate(e, sizes)) for e in (random_expression(rnd) for _ in range(12))]
    pairs = list(itertools.product(values, values))
    for (x, left), (y, right) in pairs:
        if rnd.random() < 0.25:
            if left == right:
                known.add_equal(x, y)
            elif 1 in (left, right) and min(left, right) >= 0:
                known.add_equal_or_one(x, y)
    for x, left in values:
        known.add_at_least(x, left - rnd.randint(0, 2))
    for (x, left), (y, right) in pairs:
        assert evaluate(known.canonical(x), sizes) == left
        assert prove_equal(x, y, known) in (None, left == right)
        assert prove_ge(x, y, known) in (None, left >= right)
