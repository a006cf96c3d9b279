"""Random choices and permutations."""

from __future__ import annotations

from typing import Any

import torch

from ..common.types import to_onnx_type
from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import aten
from ..writing.symbols import Size, dims_of, int_vector, vector1d
from .creation import drawn
from .operands import FLOAT, INT64, cast


@aten("aten.multinomial.default")
def multinomial(
    g: GraphWriter, x: str, num_samples: int, replacement: bool = False, **_: Any
) -> str:
    """Positions drawn with the given weights.

    Without replacement, the highest sums of log-weights and Gumbel's noise are kept (T. Vieira,
    "Gumbel-max trick and weighted reservoir sampling", 2014).
    """
    if g.get_rank(x) == 1:
        rows = g.op.UnsqueezeAnyOpset(x, int_vector([0]))
        found = multinomial(g, rows, num_samples, replacement)
        return g.op.SqueezeAnyOpset(found, int_vector([0]))
    logits = g.op.Log(cast(g, x, FLOAT))
    if replacement:
        return g.op.Multinomial(logits, dtype=INT64, sample_size=num_samples)
    noise = g.op.RandomUniformLike(logits, dtype=FLOAT, low=1e-30, high=1.0 - 1e-7)
    noise = g.op.Log(g.op.Neg(g.op.Log(noise)))
    return several(g, "TopK", 2, g.op.Sub(logits, noise), int_vector([num_samples]), axis=-1)[1]


@aten("aten.randperm.default")
def randperm(g: GraphWriter, n: Size, *, dtype: torch.dtype = torch.int64, **_: Any) -> str:
    """The order of random numbers."""
    keys = drawn(g, "RandomUniform", [n], FLOAT)
    order = several(g, "TopK", 2, keys, vector1d(g, n))[1]
    return cast(g, order, to_onnx_type(dtype or torch.int64))


@aten("aten.normal_functional.default")
def normal_functional(g: GraphWriter, x: str, mean: float = 0.0, std: float = 1.0, **_: Any) -> str:
    """RandomNormal of the shape of x."""
    return drawn(g, "RandomNormal", dims_of(g, x), g.get_type(x), mean=mean, scale=std)
