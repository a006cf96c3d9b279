"""The least values of symbols."""

from __future__ import annotations

import random

import pytest

from xbuilder.dims import evaluate
from xbuilder.dims.api import form
from xbuilder.dims.minimums import least_values, raised


@pytest.mark.parametrize(
    ("dim", "least", "expected"),
    [
        ("a", 3, [("a", 3)]),
        ("a-10", 0, [("a", 10)]),
        ("2*a+1", 8, [("a", 4)]),
        ("a//5-1", 8, [("a", 45)]),
        ("(a+15)//20-2", 8, [("a", 185)]),
        ("3*((a+15)//20)-2", 8, [("a", 65)]),
        ("a+b", 3, []),
        ("a*b", 3, [("a", 1), ("b", 1)]),
        ("2*a*b-1", 1, [("a", 1), ("b", 1)]),
        ("a*b", 0, []),
        ("a*(b//2)", 1, []),
        ("5-a", 3, []),
        ("a%4", 3, []),
        ("max(a,7)", 3, []),
        ("a//b", 3, []),
        (7, 3, []),
    ],
)
def test_least_values(dim, least, expected):
    assert list(least_values(form(dim), least)) == expected


@pytest.mark.parametrize("seed", range(20))
def test_the_least_value_is_the_least_one(seed):
    rnd = random.Random(seed)
    divisor, coef, shift, least = (rnd.randint(1, 6) for _ in range(4))
    dim = f"{coef}*((a+{shift})//{divisor})-{rnd.randint(0, 9)}"
    ((name, value),) = least_values(form(dim), least)
    found = [n for n in range(200) if evaluate(dim, {"a": n}) >= least]
    assert name == "a"
    assert found[0] == max(value, 0)


def test_raised():
    assert raised(form("a//5-2+b"), {"a": 10}) == form("a//5+b")
    assert raised(form("b"), {"a": 10}) == form("b")
