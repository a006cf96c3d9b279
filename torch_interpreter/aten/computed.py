"""Constants torch computes from numbers alone: windows and frequencies."""

from __future__ import annotations

from typing import Any

import torch

from ..common.types import to_numpy_type, to_onnx_type
from ..writing.graph_writer import GraphWriter, constant
from ..writing.registry import aten_table, curried

_WINDOWS = ("bartlett", "blackman", "hamming", "hann", "kaiser")
_FUNCTIONS = [
    *(f"{name}_window.{overload}" for name in _WINDOWS for overload in ("default", "periodic")),
    "hamming_window.periodic_alpha",
    "hamming_window.periodic_alpha_beta",
    "kaiser_window.beta",
    "fft_fftfreq.default",
    "fft_rfftfreq.default",
]


@curried
def _computed(name: str, g: GraphWriter, *args: Any, **kwargs: Any) -> str:
    packet, overload = name.split(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload)
    if any(isinstance(a, str) for a in args):
        raise ValueError(f"{name} needs numbers known before the model runs, not {list(args)}")
    values = operator(*args, **{**kwargs, "device": "cpu"})
    return constant(g, values.double().numpy().astype(to_numpy_type(to_onnx_type(values.dtype))))


aten_table(_computed, {name: name for name in _FUNCTIONS}, "aten.{}")
