from __future__ import annotations

import pytest

from xbuilder.dims.build import BUILDERS, broadcast, dim_max, rebuild, shrink
from xbuilder.dims.errors import DimensionError, TooLargeError
from xbuilder.dims.expr import Poly
from xbuilder.dims.parse import parse


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("floordiv", ("a//2+b", "2"), "(a+2*b)//4"),
        ("floordiv", ("2*a", "2*b"), "a//b"),
        ("floordiv", ("a", "-b"), "(-a)//b"),
        ("floordiv", ("2*a+1", "4"), "a//2"),
        ("mod", ("a", "1"), "0"),
        ("mod", ("a%6+b", "3"), "(a+b)%3"),
        ("mod", ("a%3", "5"), "a%3"),
        ("mod", ("2*a", "2*b"), "2*(a%b)"),
        ("mod", ("a*(b+1)", "b+1"), "0"),
        ("mod", ("a", "a+1"), "a"),
        ("ceildiv", ("a+1", "a+1"), "1"),
        ("ceildiv", ("a+1", "a+b+1"), "1"),
        ("ceildiv", ("(-2)%a", "3"), "((-2)%a+2)//3"),
        ("max", ("a", "b", "a+1"), "max(a+1,b)"),
        ("min", ("a+2", "b+2"), "min(a,b)+2"),
        ("broadcast", ("1", "1"), "1"),
    ],
)
def test_operation(op, args, expected):
    assert BUILDERS[op](*map(parse, args)) == parse(expected)


def test_broadcast_of_incompatible_dimensions():
    with pytest.raises(DimensionError, match="2 and 3"):
        broadcast(Poly.integer(2), Poly.symbol("a"), Poly.integer(3))


def test_number_of_arguments_is_bounded():
    with pytest.raises(TooLargeError):
        dim_max(*(Poly.symbol(f"a{i}") for i in range(100)))


def test_shrink_and_rebuild():
    assert shrink(parse("a%3").add(parse("3*(a//3)"))) == parse("a")
    assert shrink(parse("a%3")) == parse("a%3")
    form = parse("a*max(a,b)+2")
    assert rebuild(form, lambda atom: Poly.integer(3), BUILDERS) == Poly.integer(11)
