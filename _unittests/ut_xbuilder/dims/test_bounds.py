from __future__ import annotations

import pytest

from xbuilder.dims.bounds import common_divisor, interval, never_zero, nonneg
from xbuilder.dims.parse import parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", (3, 3)),
        ("a", (0, None)),
        ("a+3", (3, None)),
        ("3-a", (None, 3)),
        ("a-b", (None, None)),
        ("a*b+1", (1, None)),
        ("a*(b-1)", (None, None)),
        ("a%4", (0, 3)),
        ("2*(a%4)*(b%3)+1", (1, 13)),
        ("(a%4)*b", (0, None)),
        ("a%b", (0, None)),
        ("a%(b%3)", (0, 1)),
        ("(a%10)//3", (0, 3)),
        ("a//b", (0, None)),
        ("(a%4)//b", (0, 3)),
        ("(a-1)//b", (None, None)),
        ("max(a,b)", (0, None)),
        ("max(a-b,2)", (2, None)),
        ("max(a%4,b%6)", (0, 5)),
        ("min(a,3)", (0, 3)),
        ("min(a-b,3)", (None, 3)),
        ("broadcast(a,b)", (0, None)),
        ("broadcast(a%3,b%4)", (0, 3)),
    ],
)
def test_interval(text, expected):
    assert interval(parse(text)) == expected


def test_nonneg_and_never_zero():
    assert nonneg(parse("a-a//2"))
    assert nonneg(parse("max(a,b)-b"))
    assert not nonneg(parse("a-b"))
    assert not nonneg(parse("a-1"))
    assert never_zero(parse("a+1"))
    assert never_zero(parse("2*a-3"))
    assert never_zero(parse("-a-1"))
    assert not never_zero(parse("a"))
    assert not never_zero(parse("a-b"))
    assert not never_zero(parse("0"))
    assert common_divisor(parse("4*a+6*b+1")) == 2
