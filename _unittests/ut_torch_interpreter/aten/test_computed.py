"""Windows and frequencies."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

X = torch.randn(3, 6)
CONSTANTS = {
    "bartlett": lambda: torch.bartlett_window(6),
    "blackman": lambda: torch.blackman_window(6, periodic=False),
    "hamming": lambda: torch.hamming_window(6, True, 0.5, 0.4),
    "hann": lambda: torch.hann_window(6),
    "symmetric hann": lambda: torch.hann_window(6, periodic=False, dtype=torch.float32),
    "hann of halves": lambda: torch.hann_window(6, dtype=torch.bfloat16).float(),
    "kaiser": lambda: torch.kaiser_window(6, True, 4.0),
    "fftfreq": lambda: torch.fft.fftfreq(6, d=0.5),
    "rfftfreq": lambda: torch.fft.rfftfreq(10),
}


@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_constants(name):
    onx = check_export(lambda x: x * CONSTANTS[name](), (X,), ({0: "n"},), [(torch.randn(5, 6),)])
    assert [n.op_type for n in onx.graph.node] == ["Mul"]
