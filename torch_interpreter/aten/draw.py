"""Random choices and permutations."""

from __future__ import annotations

from typing import Any

import torch

from ..common.types import to_onnx_type
from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import aten
from ..writing.symbols import Size, dims_of, int_vector, vector1d
from .creation import constant_of_shape, drawn
from .operands import FLOAT, INT64, cast, const


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


@aten("aten.bernoulli.default")
def bernoulli(g: GraphWriter, x: str, **_: Any) -> str:
    """One where a uniform number is less than the probability, zero elsewhere."""
    return chosen(g, x, x)


@aten("aten.bernoulli.p", "aten.bernoulli.Tensor")
def chosen(g: GraphWriter, x: str, p: float | str = 0.5, **_: Any) -> str:
    """The same for another probability, of the shape and of the type of x."""
    uniform = drawn(g, "RandomUniform", dims_of(g, x), FLOAT)
    limit = cast(g, p, FLOAT) if isinstance(p, str) else const(p, FLOAT)
    return cast(g, g.op.Less(uniform, limit), g.get_type(x))


@aten("aten.normal_functional.default")
def normal_functional(g: GraphWriter, x: str, mean: float = 0.0, std: float = 1.0, **_: Any) -> str:
    """RandomNormal of the shape of x."""
    itype, dims = g.get_type(x), dims_of(g, x)
    if not std:  # onnxruntime stops the process
        return constant_of_shape(g, dims, mean, itype)
    return drawn(g, "RandomNormal", dims, itype, mean=mean, scale=std)
