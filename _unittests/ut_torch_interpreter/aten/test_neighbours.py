"""The number after another one: the results are equal, not only close."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct2, run_ort

from torch_interpreter import ConversionError, to_onnx

HIGHEST = float(np.finfo(np.float32).max)


def test_floats():
    rng = np.random.default_rng(0)
    every = rng.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    powers = np.float32(2.0) ** np.arange(-149, 128).astype(np.float32)
    edges = np.array([0, -0.0, HIGHEST, -HIGHEST, np.inf, -np.inf, np.nan, 1e-45], np.float32)
    x = torch.from_numpy(np.concatenate([every, powers, -powers, edges]))
    onx = to_onnx(Fct2(torch.nextafter), (x, x), dynamic_shapes=({0: "n"}, {0: "n"}))
    for y in (x.flip(0), torch.full_like(x, torch.inf), torch.full_like(x, -torch.inf), x):
        np.testing.assert_array_equal(run_ort(onx, (x, y))[0], torch.nextafter(x, y).numpy())
    assert run_ort(onx, (x[:0], x[:0]))[0].shape == (0,)


def test_doubles_are_refused():
    x = torch.ones(2, dtype=torch.float64)
    with pytest.raises(ConversionError, match="nextafter of doubles"):
        to_onnx(Fct2(torch.nextafter), (x, x))
