from __future__ import annotations

import itertools
import random

import pytest

from xbuilder.dims import evaluate, is_plain, zero_cases


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ([3, 0], {(False, True)}),
        (["a", "2*a*b"], {(False, False), (False, True), (True, True)}),
        (["a+b", "a"], {(False, False), (False, True), (True, True)}),
        (["a%2+1", "a//2"], {(False, False), (False, True)}),
        (["a-b", "2*b-2*a"], {(False, False), (True, True)}),
        (["a*b-a", "b-1"], {(False, False), (True, False), (True, True)}),
        (["a+1", "3*a+1"], {(False, False)}),
        ([], {()}),
    ],
)
def test_zero_cases(dims, expected):
    cases = zero_cases(dims)
    assert set(cases) == expected
    assert len(cases) == len(expected)


def test_too_many_factors():
    assert zero_cases([f"s{i}" for i in range(8)]) is not None
    assert zero_cases([f"s{i}" for i in range(9)]) is None


def test_every_size_is_one_of_the_cases():
    rng = random.Random(0)
    items = [
        "a",
        "b",
        "a*b",
        "2*a",
        "a+b",
        "a//2",
        "a%2*b",
        "a-b",
        "a*b-b",
        "max(a,b)",
        "b+1",
        0,
        5,
    ]
    for _ in range(300):
        dims = [rng.choice(items) for _ in range(rng.randint(1, 4))]
        cases = set(zero_cases(dims))
        for a, b in itertools.product(range(5), repeat=2):
            assert tuple(evaluate(d, {"a": a, "b": b}) == 0 for d in dims) in cases


@pytest.mark.parametrize(
    ("dim", "expected"),
    [("a", True), ("2*a*b+1", True), (3, True), ("a-1", False), ("a//2", False), ("a%2+b", False)],
)
def test_is_plain(dim, expected):
    assert is_plain(dim) is expected
