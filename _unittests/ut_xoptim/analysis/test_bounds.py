"""Results clipped between two bounds."""

from __future__ import annotations

import pytest

from xoptim.analysis.bounds import clipped
from xoptim.authoring.context import context_of
from xoptim.authoring.deduction import Refusal
from xoptim.testing import optimizer_of

INF = float("inf")
CASES = {
    "Y = Clip(X, two, three)": ("X", 2, 3),
    "Y = Clip(X, two)": ("X", 2, INF),
    "Y = Clip(X, , three)": ("X", -INF, 3),
    "Y = Clip(X, U, three)": ("X", None, 3),
    "R = Relu(X) Y = Min(R, three)": ("X", 0, 3),
    "R = Max(two, X) Y = Min(three, R)": ("X", 2, 3),
}
REFUSED = {
    "R = Abs(X) Y = Min(R, three)": "no lower bound",
    "R = Relu(X) Y = Min(R, X)": "no operand is a scalar",
    "R = Relu(X) Y = Min(R, three, two)": "not two operands",
    "R = Relu(X) S = Min(R, three) Y = Add(R, S)": "no lower bound",
}


def found(body: str, opset: int = 18) -> tuple[str, float | None, float | None]:
    """The result clipped by the last Clip or Min of a graph, with its bounds."""
    queries = optimizer_of(
        f"agraph (float[a] X, float U) => (float[a] Y) <float two = {{2}}, float three = {{3}}>"
        f" {{ {body} }}",
        opset=opset,
    )
    node = next(n for n in queries.iter_nodes() if n.op_type in ("Clip", "Min"))
    return clipped(context_of(queries), node)


@pytest.mark.parametrize("body", CASES)
def test_bounds(body: str) -> None:
    assert found(body) == CASES[body]


def test_attributes() -> None:
    assert found("Y = Clip<min = 2.0>(X)", 10) == ("X", 2, INF)
    assert found("Y = Clip<max = 2.0>(X)", 10) == ("X", -INF, 2)


@pytest.mark.parametrize("body", REFUSED)
def test_refuses(body: str) -> None:
    with pytest.raises(Refusal, match=REFUSED[body]):
        found(body)
