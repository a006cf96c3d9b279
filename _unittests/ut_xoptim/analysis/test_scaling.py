"""Products by one constant number, sums with a constant."""

from __future__ import annotations

import pytest
from ut_xoptim.analysis.small_graph import optimizer

from xoptim.analysis.scaling import Scaled, added_constant, scalar_factor, scaled_operand
from xoptim.authoring import Refusal
from xoptim.authoring.context import context_of
from xoptim.testing import optimizer_of


@pytest.mark.parametrize(
    ("body", "factor"),
    [
        ("Y = Mul(X, two)", 2.0),
        ("Y = Mul(two, X)", 2.0),
        ("Y = Div(X, two)", 0.5),
        ("Y = Mul(X, one1)", 1.0),
        ("Y = Div(two, X)", None),
        ("Y = Mul(X, w)", None),
        ("Y = Mul(X, Z)", None),
        ("Y = Mul(X, X)", None),
        ("Y = Mul(X, deep)", None),
    ],
)
def test_operand(body: str, factor: float | None) -> None:
    g = optimizer(body)
    node = g.producer_or_none("Y")
    assert node is not None
    assert scalar_factor(g, node, "X") == factor
    assert scaled_operand(g, node) == (None if factor is None else Scaled("X", factor))
    assert scalar_factor(g, node, "U") is None, "not an operand"


@pytest.mark.parametrize(
    ("op_type", "number", "factor"),
    [
        ("Mul", "0", None),
        ("Div", "0", None),
        ("Mul", "-3", -3.0),
        ("Div", "-4", -0.25),
        ("Mul", "inf", None),
        ("Div", "inf", None),
    ],
)
def test_number(op_type: str, number: str, factor: float | None) -> None:
    g = optimizer_of(
        f"agraph (float[a] X) => (float[a] Y) <float c = {{{number}}}> {{ Y = {op_type}(X, c) }}"
    )
    node = g.producer_or_none("Y")
    assert node is not None and scalar_factor(g, node, "X") == factor


def test_integers() -> None:
    """The inverse of an integer is not one."""
    g = optimizer_of("agraph (int64[a] X) => (int64[a] Y) <int64 c = {2}> { Y = Div(X, c) }")
    node = g.producer_or_none("Y")
    assert node is not None and scaled_operand(g, node) is None


@pytest.mark.parametrize(
    ("body", "data", "sign", "value"),
    [
        ("Y = Add(X, two)", "X", 1, 2.0),
        ("Y = Add(two, X)", "X", 1, 2.0),
        ("Y = Sub(X, two)", "X", 1, -2.0),
        ("Y = Sub(two, X)", "X", -1, 2.0),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_added_constant(body: str, data: str, sign: int, value: float, named: bool) -> None:
    queries = optimizer(body)
    node = queries.node_before("Y")
    context = context_of(queries)
    name, found, constant = added_constant(context, node, data if named else "")
    assert (name, found, constant.item()) == (data, sign, value)


def test_nothing_constant_is_added() -> None:
    queries = optimizer("Y = Add(X, Z)")
    with pytest.raises(Refusal, match="not constant"):
        added_constant(context_of(queries), queries.node_before("Y"))
