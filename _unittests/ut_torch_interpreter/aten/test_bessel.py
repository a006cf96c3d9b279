"""Bessel functions, compared with scipy over wide ranges, in 64 and 32 bits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as sp
import torch
from ut_torch_interpreter.export_checks import check_export, module_of, run_ort

from torch_interpreter import to_onnx

special: object = torch.special
EVERYWHERE = np.concatenate(
    [np.linspace(-40, 40, 4001), np.geomspace(1e-300, 700, 400), -np.geomspace(1e-5, 600, 100)]
)
POSITIVE = np.concatenate([np.linspace(0.001, 40, 4001), np.geomspace(1e-30, 600, 400)])
#: name -> reference, points, whether the error is relative
FUNCTIONS = {
    "i0": (sp.i0, EVERYWHERE, True),
    "i0e": (sp.i0e, EVERYWHERE, True),
    "i1": (sp.i1, EVERYWHERE, True),
    "i1e": (sp.i1e, EVERYWHERE, True),
    "modified_bessel_i0": (sp.i0, EVERYWHERE, True),
    "modified_bessel_i1": (sp.i1, EVERYWHERE, True),
    "modified_bessel_k0": (sp.k0, POSITIVE, True),
    "modified_bessel_k1": (sp.k1, POSITIVE, True),
    "scaled_modified_bessel_k0": (sp.k0e, POSITIVE, True),
    "scaled_modified_bessel_k1": (sp.k1e, POSITIVE, True),
    "bessel_j0": (sp.j0, EVERYWHERE, False),
    "bessel_j1": (sp.j1, EVERYWHERE, False),
    "bessel_y0": (sp.y0, POSITIVE, False),
    "bessel_y1": (sp.y1, POSITIVE[POSITIVE > 1e-3], False),
    "spherical_bessel_j0": (lambda x: sp.spherical_jn(0, x), EVERYWHERE, False),
}
EDGES = torch.tensor([0.0, -0.0, np.nan, -3.0, 1e-20, 8.0, 2.0])
# torch has nan for most of them
AT_INFINITY = {"i0": np.inf, "i1": np.inf, "i0e": 0, "i1e": 0, "bessel_j0": 0, "bessel_y1": 0}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_against_scipy(name):
    reference, points, relative = FUNCTIONS[name]
    fct = getattr(special, name)
    x = torch.from_numpy(points)
    onx = to_onnx(module_of(fct, 1), (x,))
    (found,) = run_ort(onx, (x,))
    expected = reference(points)
    error = np.abs(found - expected) / (np.abs(expected) if relative else 1 + np.abs(expected))
    assert np.nanmax(np.where(expected == found, 0, error)) < 2e-13
    check_export(fct, (x[:16].float().abs().reshape(8, 2),), ({0: "n"},), [(torch.rand(3, 2),)])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_edges_as_torch(name):
    check_export(getattr(special, name), (EDGES,), ({0: "n"},), [(EDGES[:0],), (EDGES[:1],)])


def test_other_types_and_a_scalar():
    check_export(special.i0e, (torch.arange(5),))
    check_export(lambda x: special.i1(x.half()).float(), (torch.randn(4),), atol=1e-2)
    check_export(special.bessel_j0, (torch.tensor(2.5),))


@pytest.mark.parametrize("name", sorted(AT_INFINITY))
def test_infinity(name):
    x = torch.tensor([np.inf])
    (found,) = run_ort(to_onnx(module_of(getattr(special, name), 1), (x,)), (x,))
    np.testing.assert_allclose(found, [AT_INFINITY[name]], atol=1e-30)
