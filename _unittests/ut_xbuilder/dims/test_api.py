from __future__ import annotations

import numpy as np
import pytest

from xbuilder.dims import (
    DimensionError,
    add,
    ceildiv,
    dim_max,
    dim_min,
    evaluate,
    exact_div,
    floordiv,
    is_static,
    mod,
    mul,
    neg,
    normalize,
    prod,
    sub,
    substitute,
    symbols,
    total,
)
from xbuilder.dims.api import MAX_TEXT, Dim
from xbuilder.dims.parse import parse


@pytest.mark.parametrize(
    ("function", "a", "b", "expected"),
    [
        (add, 2, 3, 5),
        (add, "seq", 1, "seq+1"),
        (add, 1, "seq", "seq+1"),
        (add, "seq", 0, "seq"),
        (add, "a%2", "2*(a//2)", "a"),
        (sub, "a+b", "b", "a"),
        (sub, "2*seq", "seq", "seq"),
        (sub, "a", "a", 0),
        (sub, "b", "a", "b-a"),
        (mul, "a+1", 2, "2*a+2"),
        (mul, "b", "a", "a*b"),
        (mul, "a", 0, 0),
        (floordiv, -7, 2, -4),
        (floordiv, "2*a", 2, "a"),
        (floordiv, "4*a+2", 2, "2*a+1"),
        (floordiv, "a-1", 2, "(a+1)//2-1"),
        (floordiv, "a", -2, "a//2-a"),
        (floordiv, "a*b", "b", "a*b//b"),
        (floordiv, "a*(b+1)", "b+1", "a"),
        (floordiv, "a*b+c", "b", "a+c//b"),
        (floordiv, "a//2", 3, "a//6"),
        (floordiv, "6*a", 4, "a+a//2"),
        (floordiv, "a%4", 4, 0),
        (floordiv, "b", "b+1", 0),
        (ceildiv, -7, 2, -3),
        (ceildiv, "a", 2, "(a+1)//2"),
        (ceildiv, "a", "b", "ceildiv(a,b)"),
        (ceildiv, "a*b+c", "b", "a+ceildiv(c,b)"),
        (mod, -7, 2, 1),
        (mod, "4*a+3", 2, 1),
        (mod, "2*a+1", 4, "2*(a%2)+1"),
        (mod, "a%4", 2, "a%2"),
        (mod, "a", -3, "-(2*a%3)"),
        (mod, "a*b", "b", "a*b%b"),
        (dim_max, 2, 3, 3),
        (dim_max, "a", "a+1", "a+1"),
        (dim_max, "b", "a", "max(a,b)"),
        (dim_max, "a", 0, "a"),
        (dim_max, "max(a,c)", "b", "max(a,b,c)"),
        (dim_max, "a+1", "b+1", "max(a,b)+1"),
        (dim_min, 2, 3, 2),
        (dim_min, "a", "a+1", "a"),
        (dim_min, "a", 0, 0),
        (dim_min, "a", "max(a,b)", "a"),
    ],
)
def test_binary(function, a, b, expected):
    result = function(a, b)
    assert result == expected
    assert normalize(result) == expected
    assert type(result) is type(expected)


def test_negative_divisor_keeps_its_value():
    for a in range(10):
        assert evaluate(floordiv("a", -2), {"a": a}) == a // -2
        assert evaluate(mod("a", -3), {"a": a}) == a % -3


@pytest.mark.parametrize("function", [floordiv, ceildiv, mod])
@pytest.mark.parametrize("a", ["a", 4])
def test_division_by_zero(function, a):
    with pytest.raises(DimensionError, match="division by zero"):
        function(a, 0)


def test_other_types():
    assert add(np.int64(2), 3) == 5
    assert type(add(np.int64(2), 3)) is int
    assert type(normalize(np.int32(2))) is int
    with pytest.raises(DimensionError, match="not float: 1.5"):
        add("other_types", 1.5)


def test_neg_prod_symbols():
    assert neg("a-b") == "b-a"
    assert prod(()) == 1
    assert prod(("a", 2, "b", 3)) == "6*a*b"
    assert symbols("a+max(b,`c d`)*0+c//(d+1)") == {"a", "c", "d"}
    assert symbols(3) == frozenset()


def test_total_is_the_sum_whatever_the_order() -> None:
    assert total(()) == 0
    assert total((1, 2, 3)) == 6
    assert total(("a", 2, "a")) == "2*a+2"
    assert total(("a", "b-a")) == "b"
    assert total(("y%2", "b", "2*(y//2)")) == "b+y"
    dims = [f"{'xyz'[i % 3]}{i}+{i}" for i in range(20)]
    by_pairs: Dim = 0
    for dim in dims:
        by_pairs = add(by_pairs, dim)
    assert total(dims) == total(dims[::-1]) == by_pairs


def test_the_total_of_one_dimension_is_as_it_is_written() -> None:
    assert total(["batch - size"]) == "batch - size"


def test_a_total_does_not_read_its_partial_sums() -> None:
    names = [f"summed{i}" for i in range(60)]
    before = parse.cache_info().misses
    total(names)
    assert parse.cache_info().misses == before + len(names)


def test_a_total_too_large_is_one_symbol() -> None:
    names = [f"far_too_many{i}" for i in range(2000)]
    large = total(names)
    assert isinstance(large, str)
    assert symbols(large) == {large}
    assert large == total(names[::-1])


def test_exact_div():
    assert exact_div("a*b*c", "b*c") == "a"
    assert exact_div("2*a*b+4*a", "2*a") == "b+2"
    assert exact_div("a*b", "c") is None
    assert exact_div("a", 2) is None
    assert exact_div(6, 3) == 2
    assert exact_div("a", 0) is None


def test_evaluate():
    assert evaluate("a+max(b,1)*(a//2)%4+broadcast(a,c)", {"a": 5, "b": 0, "c": 1}) == 5 + 2 + 5
    assert evaluate(4, {}) == 4
    assert evaluate("batch size", {"batch size": 3}) == 3
    assert evaluate("batch-size", {"batch-size": 3}) == 3


@pytest.mark.parametrize(
    ("expr", "sizes", "message"),
    [
        ("a+b", {"a": 1}, "no size is given for dimension 'b'"),
        ("a//b", {"a": 1, "b": 0}, "division by zero"),
        ("broadcast(a,b)", {"a": 2, "b": 3}, "cannot be broadcast"),
    ],
)
def test_evaluate_undefined(expr, sizes, message):
    with pytest.raises(DimensionError, match=message):
        evaluate(expr, sizes)


def test_substitute():
    assert substitute("a+b", {"a": "b", "b": 1}) == "b+1"
    assert substitute("max(a,b)//2", {"a": 4, "b": "2*c"}) == "max(2*c,4)//2"
    assert substitute("a+1", {"z": 3}) == "a+1"
    assert substitute("a", {"a": 0}) == 0
    with pytest.raises(DimensionError, match="division by zero"):
        substitute("a//b", {"b": 0})


def test_results_are_bounded():
    total = prod(f"a{i}+1" for i in range(40))
    assert isinstance(total, str)
    assert len(total) <= MAX_TEXT
    assert normalize(total) == total
    assert total == prod(f"a{i}+1" for i in range(40))
    assert sub(add(total, 1), 1) == total
    nested = "a"
    for i in range(100):
        nested = floordiv(add(nested, f"b{i}"), f"c{i}")
        assert len(nested) <= MAX_TEXT
        assert normalize(nested) == nested
    power = 3
    for _ in range(12):
        power = mul(mul(power, "a"), power)
    assert len(power) <= MAX_TEXT


def test_substitution_is_bounded():
    big = "+".join(f"x{i}" for i in range(100))
    result = substitute("a*b", {"a": big, "b": big.replace("x", "y")})
    assert normalize(result) == result
    assert result == substitute("a*b", {"b": big.replace("x", "y"), "a": big})


def test_static_dimensions_are_all_integers() -> None:
    assert is_static(()) and is_static((2, 0))
    assert not is_static((2, "a"))
