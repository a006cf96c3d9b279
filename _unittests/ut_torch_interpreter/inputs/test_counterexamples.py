"""A size that makes a condition false."""

from __future__ import annotations

import sympy
from torch.utils._sympy.functions import FloorDiv

from torch_interpreter.inputs.counterexamples import DynamicSize, find_counterexamples


def nearest(conditions, known, sizes):
    """The symbol and the size that break a condition."""
    found = next(find_counterexamples(conditions, known, sizes), None)
    assert found is None or found.condition in conditions
    return None if found is None else (found.symbol, found.size)


S, B = sympy.symbols("s50 s33", integer=True, positive=True)


def test_the_nearest_size():
    even = sympy.Eq(2 * (S // 2), S)
    seq = DynamicSize("s50", 8, 2, None)
    assert nearest([even], [], [seq]) == ("s50", 9)
    assert nearest([even, even], [], [seq._replace(most=8)]) == ("s50", 7)
    assert nearest([even], [], [seq._replace(most=8, least=8)]) is None


def test_a_size_in_thousands():
    """The number of frames of 960 samples changes far from 16000 samples, which are 16 of them."""
    samples = DynamicSize("s50", 16000, 2, None)
    symbol, size = nearest([S // 960 < 17], [], [samples])
    assert symbol == "s50" and 16320 <= size < 16640
    assert nearest([S // 960 < 17], [], [samples._replace(most=16319)]) is None


def test_a_size_follows_what_is_known():
    seq = DynamicSize("s50", 8, 2, None)
    assert nearest([S < 11], [sympy.Eq(sympy.Mod(S, 4), 0)], [seq]) == ("s50", 12)


def test_the_second_dimension():
    sizes = [DynamicSize("s33", 2, 2, None), DynamicSize("s50", 8, 2, None)]
    assert nearest([S < 10], [], sizes) == ("s50", 10)
    assert nearest([B * S < 20], [], sizes) == ("s33", 3)


def test_what_cannot_be_checked():
    seq = DynamicSize("s50", 8, 2, None)
    unknown = sympy.Function("unknown")(S) > 0
    assert nearest([sympy.Symbol("u0") > 3, unknown, S > 8], [], [seq]) is None
    assert nearest([S < 9], [], [seq._replace(hint=None)]) is None


def test_dimensions_of_0_or_1_are_not_told():
    seq = DynamicSize("s50", 8, 2, None)
    usual = [sympy.Ne(B * (S // 4), B), sympy.Ge(S // 4, 2), sympy.Le(2, S // 3)]
    sizes = [seq, DynamicSize("s33", 2, 2, None)]
    assert nearest(usual, [], sizes) is None
    # 7 is nearer than 13, its quarter is 1
    assert nearest([*usual, sympy.Eq(sympy.Mod(S // 4, 3), 2)], [], sizes) == (
        "s50",
        12,
    )


def test_a_length_that_is_not_cut():
    """``if n < padded: x = x[:n]``: torch did not cut, n is a multiple of 4."""
    seq = DynamicSize("s50", 8, 2, None)
    for condition in (sympy.Le(0, S + 4 * FloorDiv(-S, 4)), sympy.Ge(S + 4 * FloorDiv(-S, 4), 0)):
        assert nearest([condition], [], [seq]) == ("s50", 9)
    assert nearest([sympy.Lt(0, S + 4 * FloorDiv(-S, 4) + 1)], [], [seq]) is None


def test_a_size_that_is_tried_may_make_another_one_0():
    """9 rows are 3 chunks of 3, 4 rows are 2 chunks, and the third one would be empty."""
    rows = DynamicSize("s50", 9, 2, None)
    size = FloorDiv(S + 2, 3)
    three, usual = sympy.Eq(FloorDiv(S + size - 1, size), 3), [sympy.Ge(S - 2 * size, 1)]
    assert nearest([*usual, three], [], [rows]) is None
    assert next(find_counterexamples([*usual, three], [], [rows], True)).size == 4
    assert next(find_counterexamples([three], [sympy.Ge(S, 5)], [rows], True), None) is None
