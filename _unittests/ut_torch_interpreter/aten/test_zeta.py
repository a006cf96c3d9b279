"""Hurwitz's zeta function, compared with scipy over wide ranges, and with torch."""

from __future__ import annotations

import numpy as np
import scipy.special as sp
import torch
from ut_torch_interpreter.export_checks import check_export, module_of, run_ort

from torch_interpreter import to_onnx


def test_against_scipy():
    rng = np.random.default_rng(0)
    x = 1 + np.exp(rng.uniform(np.log(1e-3), np.log(80), 3000))
    q = np.exp(rng.uniform(np.log(1e-3), np.log(1e4), 3000))
    # powers of negative numbers
    x = np.concatenate([x, [2.0, 3.0, 4.0, 5.0]])
    q = np.concatenate([q, [-0.5, -3.25, -20.7, -2.5]])
    tensors = torch.from_numpy(x), torch.from_numpy(q)
    shapes = ({0: "n"}, {0: "n"})
    onx = to_onnx(module_of(torch.special.zeta, 2), tensors, dynamic_shapes=shapes)
    (found,) = run_ort(onx, tensors)
    np.testing.assert_allclose(found, sp.zeta(x, q), rtol=1e-14, atol=1e-300)
    for count in (0, 1):
        (found,) = run_ort(onx, [t[:count] for t in tensors])
        np.testing.assert_allclose(found, sp.zeta(x[:count], q[:count]), rtol=1e-14)


def test_edges_and_types():
    x = torch.tensor([1.0, 0.5, 2.0, 2.5, float("nan"), 300.0])[:, None]
    q = torch.tensor([1.0, 0.0, -1.0, -1.5, float("nan"), 0.25, 7.0])
    check_export(torch.special.zeta, (x, q))
    check_export(torch.special.zeta, (torch.tensor(2), torch.tensor([3, 4])))
    check_export(lambda q: torch.special.zeta(3.0, q), (q,))
    check_export(lambda x: torch.special.zeta(x, 2.0), (x,))
