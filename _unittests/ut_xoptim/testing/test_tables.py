"""Tables of cases become tests that fail when a case fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from xoptim.testing import PatternTestError, refusal_tests, rewrite_tests, table_rows

G = "g (bool[a] x) => (bool[a] y)"
TWO = f"{G} {{ n = Not(x) m = Not(n) y = Identity(m) }}"
NONE = f"{G} {{ y = Identity(x) }}"
ONE = f"{G} {{ y = Not(x) }}"
MODELS = {"NotNot": {"two": (TWO, NONE)}}
REFUSED = {"NotNot": {"alone": (ONE, "no Not before")}}


def run_all(test: Callable[..., None]) -> list[str]:
    """Runs every case as pytest does, returns their names."""
    (mark,) = test.pytestmark
    names = inspect.signature(test).parameters
    for case in mark.args[1]:
        test(**dict(zip(names, case.values, strict=True)))
    return [case.id for case in mark.args[1]]


test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_rows_of_the_three_forms() -> None:
    row = ("before", "after")
    table = {"A": {"case": row}, "B": [row, row], "C": row}
    names = [(pattern, name) for pattern, name, _ in table_rows(table)]
    assert names == [("A", "case"), ("B", "0"), ("B", "1"), ("C", "")]
    assert all(r == row for _, _, r in table_rows(table))


def test_names_of_the_cases() -> None:
    assert run_all(rewrite_tests({**MODELS, "NotNot,Identity": [(TWO, None)]})) == [
        "NotNot: two",
        "NotNot,Identity: 0",
    ]
    assert run_all(rewrite_tests({"NotNot": (TWO, NONE)})) == ["NotNot"]


def test_a_wrong_case_fails() -> None:
    with pytest.raises(PatternTestError, match="expected graph"):
        run_all(rewrite_tests({"NotNot": (TWO, ONE)}))
    with pytest.raises(PatternTestError, match="the pattern matches"):
        run_all(refusal_tests({"NotNot": (TWO, "no Not before")}))
    with pytest.raises(PatternTestError, match="no rejection"):
        run_all(refusal_tests({"NotNot": (ONE, "another reason")}))


def test_options_of_the_table_and_of_a_row() -> None:
    def options(test: Callable[..., None]) -> list[dict]:
        return [case.values[-1] for case in test.pytestmark[0].args[1]]

    table = {"NotNot": [(TWO, NONE), (TWO, NONE, {"opset": 13, "atol": 1.0})]}
    assert options(rewrite_tests(table, atol=2.0, rtol=3.0)) == [
        {"atol": 2.0, "rtol": 3.0},
        {"atol": 1.0, "rtol": 3.0, "opset": 13},
    ]
    assert run_all(rewrite_tests(table)) == ["NotNot: 0", "NotNot: 1"]
    refused = refusal_tests({"NotNot": [(ONE, "no Not before", {"opset": 9})]}, opset=13)
    assert options(refused) == [{"opset": 9}]
    assert run_all(refused) == ["NotNot: 0"]


@pytest.mark.parametrize("row", [(TWO,), (TWO, NONE, 13), (TWO, NONE, {}, {})])
def test_rows_of_another_form(row: tuple) -> None:
    with pytest.raises(ValueError, match="Case 'two' of 'NotNot' is two texts"):
        rewrite_tests({"NotNot": {"two": row}})
