"""erfcx, ndtri and log_ndtr, compared with scipy over wide ranges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as sp
import torch
from ut_torch_interpreter.export_checks import check_export, module_of, run_ort

from torch_interpreter import to_onnx

special: object = torch.special
WIDE = np.concatenate([np.linspace(-25, 60, 4001), np.geomspace(1e-300, 1e300, 400)])
PROBABILITIES = np.concatenate(
    [
        np.linspace(1e-6, 1 - 1e-6, 4001),
        np.geomspace(1e-307, 0.5, 500),
        1 - np.geomspace(1e-15, 0.5),
    ]
)
FUNCTIONS = {
    "erfcx": (sp.erfcx, WIDE),
    "ndtri": (sp.ndtri, PROBABILITIES),
    "log_ndtr": (sp.log_ndtr, np.linspace(-1e3, 8, 4001)),
}
EDGES = torch.tensor([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -3.0, 1e-40, 0.5, 2.0])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_against_scipy(name):
    reference, points = FUNCTIONS[name]
    x = torch.from_numpy(points)
    onx = to_onnx(module_of(getattr(special, name), 1), (x,))
    (found,) = run_ort(onx, (x,))
    expected = reference(points)
    error = np.abs(found - expected) / (np.abs(expected) + 1e-2)
    assert error[found != expected].max() < 1e-12


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_edges_as_torch(name):
    check_export(getattr(special, name), (EDGES,), ({0: "n"},), [(EDGES[:0],), (EDGES[:1],)])
    check_export(getattr(special, name), (torch.tensor(0.3),))
