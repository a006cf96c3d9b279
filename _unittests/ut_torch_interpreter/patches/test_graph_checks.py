"""Functions of symbolic numbers that torch refuses, conditions that it does not print."""

from __future__ import annotations

import pytest
import sympy
import torch
from sympy.solvers import inequalities
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter.common.errors import ConversionError
from torch_interpreter.patches.graph_checks import accept_symbolic_functions

X = torch.randn(3, 8)
DYNAMIC = ({0: "b", 1: "n"},)


def test_a_function_of_a_size():
    number = torch._sym_log2
    check_export(lambda x: x * number(x.shape[1]), (X,), DYNAMIC, [(torch.randn(2, 5),)])


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (lambda x: x.shape[1] / 2 == 4, r"\(n / 2\) == 4 \(not n=9\)"),
        (lambda x: x.shape[1] / x.shape[0] > 2, r"2 < \(n / b\) \(not b=4\)"),
    ],
    ids=["equal", "ratio"],
)
def test_a_branch_on_a_float_of_sizes(chosen, text):
    with pytest.raises(ConversionError, match=text):
        check_export(lambda x: x * 2 if chosen(x) else x * 3, (X,), DYNAMIC)


def test_a_branch_on_the_bits_of_a_size():
    def model(x):
        return x * 2 if (x.shape[1] << 1) & 3 == 0 else x * 3

    with pytest.warns(UserWarning, match="not n=9"):
        check_export(model, (X,), DYNAMIC)


def test_an_equality_that_is_not_solved():
    """sympy raises an error on it, the one of the export says what is assumed."""

    def model(x):
        n = x.shape[1]
        return x * 2 if n / 8 == (n // 2) // 4 else x * 3

    with pytest.raises(ConversionError, match=r"\(n / 8\) == .* \(not n=9\)"):
        check_export(model, (X,), DYNAMIC)


def test_a_bound_is_its_own_solution(monkeypatch):
    """sympy is called once for what it has to solve, never for the least size of a dimension."""
    n = sympy.Symbol("n", integer=True, positive=True)
    bound, others = {sympy.Ge(n, 2)}, {sympy.Ge(n, 2), sympy.Le(n, 7)}
    solve, asked = inequalities.reduce_inequalities, []
    expected = [solve(bound, n), solve(others, n), solve(others, n)]

    def counted(conditions, symbol):
        asked.append(conditions)
        return solve(conditions, symbol)

    monkeypatch.setattr(inequalities, "reduce_inequalities", counted)
    with accept_symbolic_functions():
        found = [inequalities.reduce_inequalities(c, n) for c in (bound, others, others)]
    assert found == expected
    assert asked == [others]
    assert inequalities.reduce_inequalities is counted
