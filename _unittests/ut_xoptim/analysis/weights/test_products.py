"""Products read as factors."""

from __future__ import annotations

from typing import Any

from ut_xoptim.analysis.small_graph import optimizer

from xoptim.analysis.weights.products import Factors, product
from xoptim.declarative.matcher_checks import NumberCheck


def product_of(g: Any, name: str) -> Factors:
    return product(g, g.node_before(name))


def has_scalar(found: Factors, value: float) -> bool:
    return NumberCheck(value).multiplies(found)


def test_product() -> None:
    g = optimizer("a = Mul(X, two) b = Div(Z, two) Y = Mul(a, b)")
    found = product(g, g.node_before("Y"))
    assert found.names == ["X", "Z"] and not found.divisors
    assert [(float(v), d) for v, d in found.scalars] == [(2, False), (2, True)]
    assert [n.output[0] for n in found.nodes] == ["b", "a", "Y"]
    assert not has_scalar(found, 1), "two scalars"


def test_product_of_one_scalar() -> None:
    g = optimizer("a = Mul(X, Z) Y = Div(a, two)")
    found = product_of(g, "Y")
    assert found.names == ["X", "Z"] and has_scalar(found, 0.5) and not has_scalar(found, 2)
    assert found.keeps_shape(0) and found.keeps_shape(None)


def test_product_stops_at_other_uses() -> None:
    g = optimizer("a = Mul(X, two) b = Mul(a, Z) Y = Add(b, a)")
    found = product_of(g, "b")
    assert found.names == ["a", "Z"] and len(found.nodes) == 1


def test_product_and_divisions() -> None:
    g = optimizer("a = Div(X, Z) b = Mul(a, Z) Y = Div(two, b)")
    found = product_of(g, "Y")
    assert found.divisors == ["b"] and not has_scalar(found, 2)
    assert product_of(g, "b").names == ["a", "Z"], "a division by a result is not a factor"


def test_product_is_bounded() -> None:
    g = optimizer(
        "r0 = Mul(X, Z) "
        + " ".join(f"r{i + 1} = Mul(r{i}, Z)" for i in range(30))
        + " Y = Neg(r30)"
    )
    assert len(product_of(g, "r30").nodes) <= 6


def test_shape_of_a_product() -> None:
    g = optimizer("a = Mul(U, one1) Y = Mul(X, deep)")
    assert not product_of(g, "a").keeps_shape(0) and product_of(g, "a").keeps_shape(1)
    assert not product_of(g, "Y").keeps_shape(2) and not product_of(g, "Y").keeps_shape(None)
