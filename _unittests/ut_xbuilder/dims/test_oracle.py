"""Random expressions against two oracles: python at random sizes, and sympy for identities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from xbuilder.dims import (
    DimensionError,
    add,
    broadcast_dim,
    ceildiv,
    dim_max,
    dim_min,
    evaluate,
    floordiv,
    mod,
    mul,
    normalize,
    prove_equal,
    prove_ge,
    sub,
    substitute,
)

sympy = pytest.importorskip("sympy", reason="sympy is the oracle of these tests")

NAMES = ("a", "b", "seq", "batch size")
SYMBOLS = {n: sympy.Symbol(n, integer=True, nonnegative=True) for n in NAMES}
COMMON = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Undefined(Exception):
    """The expression has no value at these sizes."""


class Expression(NamedTuple):
    """An expression, three times: its text, its value and sympy's expression (None if it has no
    word for it)."""

    text: str
    value: Callable[[Mapping[str, int]], int]
    sympy: Any


def python_broadcast(x: int, y: int) -> int:
    if x < 0 or y < 0 or (x != y and 1 not in (x, y)):
        raise Undefined
    return y if x == 1 else x


def sympy_floor(x: Any, y: Any) -> Any:
    return sympy.floor(x / y)


class Operation(NamedTuple):
    """An operator: how it is written, what it computes."""

    text: str
    value: Callable[[int, int], int]
    sympy: Any
    function: Callable[[Any, Any], Any]


RING = [
    Operation("({}+{})", lambda x, y: x + y, lambda x, y: x + y, add),
    Operation("({}-{})", lambda x, y: x - y, lambda x, y: x - y, sub),
    Operation("({}*{})", lambda x, y: x * y, lambda x, y: x * y, mul),
]
ROUNDED = [
    Operation("({}//{})", lambda x, y: x // y, sympy_floor, floordiv),
    Operation("({}%{})", lambda x, y: x % y, lambda x, y: x - y * sympy_floor(x, y), mod),
    Operation("ceildiv({},{})", lambda x, y: -(-x // y), lambda x, y: -sympy_floor(-x, y), ceildiv),
]
EXTREMA = [
    Operation("max({},{})", max, sympy.Max, dim_max),
    Operation("min({},{})", min, sympy.Min, dim_min),
]
BROADCAST = [Operation("broadcast({},{})", python_broadcast, None, broadcast_dim)]


def symbol(name: str) -> Expression:
    return Expression(f"(`{name}`)" if " " in name else name, lambda s: s[name], SYMBOLS[name])


def integer(value: int) -> Expression:
    return Expression(f"({value})", lambda s: value, sympy.Integer(value))


def binary(args: tuple[Expression, Operation, Expression]) -> Expression:
    x, op, y = args
    has_sympy = None not in (x.sympy, y.sympy, op.sympy)
    return Expression(
        op.text.format(x.text, y.text),
        lambda s: op.value(x.value(s), y.value(s)),
        op.sympy(x.sympy, y.sympy) if has_sympy else None,
    )


def binary_text(text: str) -> Expression:
    """An expression known by its text only."""
    return Expression(text, lambda s: 0, None)


leaves = st.one_of(st.sampled_from(NAMES).map(symbol), st.integers(-7, 7).map(integer))
divisors = st.integers(1, 6).map(integer)


def operations(left: Any, table: list[Operation], right: Any) -> Any:
    return st.tuples(left, st.sampled_from(table), right).map(binary)


polynomials = st.recursive(leaves, lambda c: operations(c, RING, c), max_leaves=8)
expressions = st.recursive(
    leaves,
    lambda c: operations(c, RING + EXTREMA, c) | operations(c, ROUNDED, divisors),
    max_leaves=8,
)
anything = st.recursive(
    leaves.map(lambda e: e._replace(sympy=None)),
    lambda c: operations(c, RING + ROUNDED + EXTREMA + BROADCAST, c),
    max_leaves=10,
)
all_sizes = st.lists(
    st.fixed_dictionaries({n: st.integers(0, 9) for n in NAMES}), min_size=4, max_size=4
)


def values(expression: Expression, sizes: Mapping[str, int]) -> int | None:
    try:
        return expression.value(sizes)
    except (ZeroDivisionError, Undefined):
        return None


@COMMON
@given(anything, all_sizes)
def test_normal_form_keeps_the_value_and_is_stable(expression, all_sizes):
    dim = normalize(expression.text)
    assert normalize(dim) == dim
    assert normalize(f"({expression.text})") in (dim, f"({expression.text})")
    for sizes in all_sizes:
        expected = values(expression, sizes)
        if expected is not None and dim != expression.text:
            assert evaluate(dim, sizes) == expected


#: sums that hold several products of a remainder: reading them again must not shorten a part of them
nested = st.recursive(
    st.one_of(st.sampled_from(("a", "b")).map(str), st.integers(-8, 8).map("({})".format)).map(
        binary_text
    ),
    lambda c: (
        operations(c, RING + ROUNDED + EXTREMA + BROADCAST, c) | operations(c, ROUNDED, divisors)
    ),
    max_leaves=24,
)


@settings(COMMON, max_examples=600)
@given(nested)
@example(binary_text("(a-b)*(b%8+a)"))
@example(binary_text("ceildiv(ceildiv(b-a-(a+3),3)-(b%b-9*b),5)"))
@example(binary_text("ceildiv(-6*b*(b%5%b)+(max(a,b)%a+(6*b-b%a)),4)"))
@example(binary_text("broadcast(4//b+b*b-b%b*(6+b),(a-b)//2)"))
def test_normal_form_of_deep_expressions_is_stable(expression):
    dim = normalize(expression.text)
    assert normalize(dim) == dim
    assert normalize(f"({dim})" if isinstance(dim, str) else dim) in (dim, f"({dim})")
    assert add(dim, 0) == dim
    assert mul(dim, 1) == dim


@COMMON
@given(expressions, all_sizes)
def test_value_is_the_one_of_sympy(expression, all_sizes):
    sizes = all_sizes[0]
    expected = expression.sympy.subs({SYMBOLS[n]: v for n, v in sizes.items()})
    assert evaluate(normalize(expression.text), sizes) == int(expected)


@COMMON
@given(expressions, expressions, all_sizes)
def test_proofs_hold_at_random_sizes(x, y, all_sizes):
    equal, greater = prove_equal(x.text, y.text), prove_ge(x.text, y.text)
    for sizes in all_sizes:
        left, right = x.value(sizes), y.value(sizes)
        assert equal is None or equal == (left == right)
        assert greater is None or greater == (left >= right)


@COMMON
@given(anything, anything, all_sizes)
def test_proofs_hold_where_both_sides_are_defined(x, y, all_sizes):
    if normalize(x.text) == x.text or normalize(y.text) == y.text:
        return  # symbols, or something that is never defined
    equal, greater = prove_equal(x.text, y.text), prove_ge(x.text, y.text)
    for sizes in all_sizes:
        left, right = values(x, sizes), values(y, sizes)
        if left is not None and right is not None:
            assert equal is None or equal == (left == right)
            assert greater is None or greater == (left >= right)


@COMMON
@given(polynomials, polynomials)
def test_polynomials_are_equal_when_sympy_says_so(x, y):
    assert (prove_equal(x.text, y.text) is True) == (sympy.expand(x.sympy - y.sympy) == 0)


@COMMON
@given(polynomials)
def test_polynomial_equals_its_expansion(x):
    quoted = str(sympy.expand(x.sympy)).replace("batch size", "`batch size`")
    assert prove_equal(x.text, f"({quoted})") is True


@COMMON
@given(
    expressions,
    st.sampled_from(RING + EXTREMA),
    expressions,
)
def test_functions_agree_with_the_parser(x, op, y):
    expected = normalize(op.text.format(x.text, y.text))
    assert op.function(normalize(x.text), normalize(y.text)) == expected


@COMMON
@given(expressions, expressions, all_sizes)
def test_substitute_then_evaluate(x, y, all_sizes):
    replaced = substitute(normalize(x.text), {"seq": normalize(y.text)})
    for sizes in all_sizes:
        size = y.value(sizes)
        if size >= 0:  # symbols are sizes
            assert evaluate(replaced, sizes) == x.value({**sizes, "seq": size})


@COMMON
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_accepted(x, y):
    for text in filter(None, (x, y)):
        dim = normalize(text)
        assert normalize(dim) == dim
        assert prove_equal(text, dim) is True
        assert sub(add(text, 1), 1) == dim
    if x and y:
        assert prove_equal(add(x, y), add(y, x)) is True


@COMMON
@given(st.text(alphabet="ab1+-*/%(),` ", min_size=1, max_size=30))
def test_texts_that_look_like_expressions(text):
    try:
        dim = normalize(text)
        assert normalize(dim) == dim
        assert sub(add(text, "z"), "z") == dim
    except DimensionError as error:
        raise AssertionError("no text makes the parser fail") from error
