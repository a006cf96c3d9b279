"""Incomplete gamma functions, compared with scipy over wide ranges, and with torch."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as sp
import torch
from ut_torch_interpreter.export_checks import check_export, module_of, run_ort

from torch_interpreter import to_onnx

FUNCTIONS = {"igamma": (torch.igamma, sp.gammainc), "igammac": (torch.igammac, sp.gammaincc)}
INF, NAN = float("inf"), float("nan")


def _pairs():
    """Orders of all sizes, and numbers around each."""
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(np.log(1e-3), np.log(1e4), 3000))
    return a, a * np.exp(rng.normal(size=3000) * np.minimum(3, 3 / np.sqrt(a)))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_against_scipy(name):
    fct, reference = FUNCTIONS[name]
    a, x = _pairs()
    tensors = torch.from_numpy(a), torch.from_numpy(x)
    onx = to_onnx(module_of(fct, 2), tensors, dynamic_shapes=({0: "n"}, {0: "n"}))
    (found,) = run_ort(onx, tensors)
    np.testing.assert_allclose(found, reference(a, x), rtol=0, atol=1e-12)
    assert run_ort(onx, [t[:0] for t in tensors])[0].shape == (0,)
    one = run_ort(onx, [t[:1] for t in tensors])[0]
    np.testing.assert_allclose(one, reference(a[:1], x[:1]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_edges_and_types(name):
    fct, _ = FUNCTIONS[name]
    values = torch.tensor([0.0, 1.0, 2.5, INF, NAN, -1.0, 1e-20])
    check_export(fct, (values[:, None], values))
    check_export(fct, (torch.tensor(2.0), torch.tensor([0.5, 30.0])))
