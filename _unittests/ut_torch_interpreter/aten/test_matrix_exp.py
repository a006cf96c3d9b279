"""The exponential of a matrix."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

torch.manual_seed(0)
DYNAMIC = ({0: "n"},)
X = torch.randn(4, 4, dtype=torch.float64)


@pytest.mark.parametrize("scale", [0.0, 1e-8, 0.1, 1.0, 10.0])
def test_norms(scale):
    x = X * scale
    check_export(torch.linalg.matrix_exp, (x,), None, atol=1e-12 * float(torch.matrix_exp(x).max()))


@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(1, 1),
        torch.full((1, 1), -30.0),
        torch.tensor([[0.0, 1.0], [-1.0, 0.0]]) * 3,
        torch.tensor([[0.0, 1000.0], [0.0, 0.0]]),
    ],
    ids=["zero", "decay", "rotation", "nilpotent"],
)
def test_known_matrices(x):
    check_export(torch.linalg.matrix_exp, (x,), None, atol=1e-4)


def test_each_matrix_has_its_scale():
    """The small matrix keeps its precision beside a large one."""
    x = torch.stack([X * 1e-3, X * 5])
    onx_args = [(x[:1],), (X[None].repeat(3, 1, 1),)]

    def model(x):
        values = torch.linalg.matrix_exp(x)
        return values / values.abs().amax(dim=(1, 2), keepdim=True)

    check_export(model, (x,), DYNAMIC, onx_args, atol=1e-12)
