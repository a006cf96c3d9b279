"""Orthogonal polynomials: the degree is a number or a tensor."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

NAMES = [
    *(f"chebyshev_polynomial_{k}" for k in "tuvw"),
    *(f"shifted_chebyshev_polynomial_{k}" for k in "tuvw"),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]
X = torch.tensor([[-1.5, -1.0, -0.3, 0.0], [0.25, 0.9, 1.0, 2.5]])
DEGREES = torch.tensor([[0, 1, 2, 3], [4, 5, 7, -1]])


@pytest.mark.parametrize("name", NAMES)
def test_degrees(name):
    fct = getattr(torch.special, name)
    onx = check_export(fct, (X, DEGREES), ({0: "n"}, {0: "n"}), [(X[:1], DEGREES[1:])], atol=1e-4)
    assert "Loop" in op_types(onx)
    check_export(lambda x: fct(x, 5), (X,), ({0: "n"},), [(X[:0],), (X[:1],)], atol=1e-4)
    check_export(lambda x: (fct(x, 0), fct(x, 1)), (X,), ({0: "n"},), [(X[:1],)], atol=1e-4)


def test_a_number_and_doubles():
    fct = torch.special.legendre_polynomial_p
    check_export(lambda n: fct(0.3, n), (DEGREES,))
    check_export(lambda x: fct(x, DEGREES[0]), (X.double(),), atol=1e-12)


def test_one_value_without_dimension():
    def model(x, n):
        return torch.special.chebyshev_polynomial_u(x, n)

    check_export(model, (torch.tensor(0.3), torch.tensor(5)), None)
