"""Activations and softmax."""

from __future__ import annotations

import math
from typing import Any

import torch
from onnx import TensorProto

from ..common.types import to_onnx_type
from ..writing.graph_writer import GraphWriter, op_named, several
from ..writing.registry import aten, curried
from ..writing.symbols import Operand, dims_of
from .creation import drawn
from .operands import as_float, axis_of, cast, const, scalar_like
from .reduce import reduce


@aten("aten.gelu.default")
def gelu(g: GraphWriter, x: str, *, approximate: str = "none") -> str:
    """Gelu from opset 20, its definition before."""
    if g.main_opset >= 20:
        return g.op.Gelu(x, approximate=approximate)
    itype = g.get_type(x)
    one, half = const(1, itype), const(0.5, itype)
    if approximate == "tanh":
        cube = g.op.Mul(g.op.Mul(x, g.op.Mul(x, x)), const(0.044715, itype))
        inner = g.op.Mul(g.op.Add(x, cube), const(math.sqrt(2 / math.pi), itype))
        factor = g.op.Add(g.op.Tanh(inner), one)
        return g.op.Mul(g.op.Mul(x, half), factor)
    erf = g.op.Erf(g.op.Div(x, const(math.sqrt(2), itype)))
    return g.op.Mul(g.op.Mul(x, g.op.Add(erf, one)), half)


@aten("aten.silu.default")
def silu(g: GraphWriter, x: str) -> str:
    """x * sigmoid(x)."""
    return g.op.Mul(x, g.op.Sigmoid(x))


@aten("aten.mish.default")
def mish(g: GraphWriter, x: str) -> str:
    """x * tanh(softplus(x))."""
    return g.op.Mish(x) if g.main_opset >= 18 else g.op.Mul(x, g.op.Tanh(g.op.Softplus(x)))


@aten("aten.elu.default")
def elu(
    g: GraphWriter, x: str, alpha: Operand = 1.0, scale: Operand = 1.0, input_scale: Operand = 1.0
) -> str:
    """scale * elu(input_scale * x)."""
    itype = g.get_type(x)
    if scale == 1 and input_scale == 1 and not isinstance(alpha, str):
        return g.op.Elu(x, alpha=float(alpha))
    low, factor, inner = (
        scalar_like(g, v, itype, g.get_rank(x)) for v in (alpha, scale, input_scale)
    )
    negative = g.op.Sub(g.op.Exp(g.op.Mul(x, inner)), const(1, itype))
    negative = g.op.Mul(g.op.Mul(negative, low), factor)
    positive = g.op.Mul(x, factor)
    return g.op.Where(g.op.Greater(x, const(0, itype)), positive, negative)


@aten("aten.celu.default")
def celu(g: GraphWriter, x: str, alpha: float = 1.0) -> str:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return g.op.Celu(x, alpha=float(alpha))


@aten("aten.selu.default")
def selu(g: GraphWriter, x: str) -> str:
    """Selu with the constants of the paper, which are torch's."""
    return g.op.Selu(x)


@aten("aten.leaky_relu.default")
def leaky_relu(g: GraphWriter, x: str, negative_slope: Operand = 0.01) -> str:
    """LeakyRelu, its definition when the slope is computed."""
    if isinstance(negative_slope, str):
        itype = g.get_type(x)
        slope = scalar_like(g, negative_slope, itype, g.get_rank(x))
        return g.op.Where(g.op.Greater(x, const(0, itype)), x, g.op.Mul(x, slope))
    return g.op.LeakyRelu(x, alpha=float(negative_slope))


@aten("aten.prelu.default", "aten._prelu_kernel.default")
def prelu(g: GraphWriter, x: str, weight: str) -> str:
    """PRelu; prelu has one slope per channel (axis 1), _prelu_kernel already broadcasts.

    The slope of a scalar is one too.
    """
    rank, weight_rank = g.get_rank(x), g.get_rank(weight)
    if weight_rank == 1 and rank not in (1, 2):
        shape = [-1, *[1] * (rank - 2)] if rank else []
        weight = g.op.Reshape(weight, const(shape, TensorProto.INT64))
    return g.op.PRelu(x, weight)


@aten("aten.hardtanh.default")
def hardtanh(g: GraphWriter, x: str, min_val: float = -1.0, max_val: float = 1.0) -> str:
    """Clip."""
    itype = g.get_type(x)
    return g.op.Clip(x, const(min_val, itype), const(max_val, itype))


@aten("aten.relu6.default")
def relu6(g: GraphWriter, x: str) -> str:
    """Clip between 0 and 6."""
    return hardtanh(g, x, 0.0, 6.0)


@aten("aten.hardsigmoid.default")
def hardsigmoid(g: GraphWriter, x: str) -> str:
    """clip(x / 6 + 1/2, 0, 1)."""
    return g.op.HardSigmoid(x, alpha=1.0 / 6.0, beta=0.5)


@aten("aten.hardswish.default")
def hardswish(g: GraphWriter, x: str) -> str:
    """x * hardsigmoid(x)."""
    return g.op.HardSwish(x)


@aten("aten.softplus.default")
def softplus(g: GraphWriter, x: str, beta: Operand = 1.0, threshold: Operand = 20.0) -> str:
    """log(1 + exp(beta * x)) / beta, x itself above the threshold."""
    itype = g.get_type(x)
    factor, limit = (scalar_like(g, v, itype, g.get_rank(x)) for v in (beta, threshold))
    scaled = x if beta == 1 else g.op.Mul(x, factor)
    soft = g.op.Softplus(scaled)
    if beta != 1:
        soft = g.op.Div(soft, factor)
    linear = g.op.Greater(scaled, limit)
    return g.op.Where(linear, x, soft)


@aten("aten.log_sigmoid.default")
def log_sigmoid(g: GraphWriter, x: str) -> str:
    """-softplus(-x)."""
    return g.op.Neg(g.op.Softplus(g.op.Neg(x)))


@aten("aten.hardshrink.default")
def hardshrink(g: GraphWriter, x: str, lambd: float = 0.5) -> str:
    """0 between -lambd and lambd, x elsewhere."""
    itype = g.get_type(x)
    inside = g.op.LessOrEqual(g.op.Abs(x), const(lambd, itype))
    return g.op.Where(inside, const(0, itype), x)


@aten("aten.softshrink.default")
def softshrink(g: GraphWriter, x: str, lambd: float = 0.5) -> str:
    """x moved by lambd towards 0; Shrink gives 0 for nan, torch nan."""
    moved = g.op.Shrink(x, bias=float(lambd), lambd=float(lambd))
    return g.op.Where(g.op.IsNaN(x), x, moved)


@aten("aten.threshold.default")
def threshold(g: GraphWriter, x: str, threshold: Operand, value: Operand) -> str:
    """A value up to the threshold, x elsewhere: nan is kept."""
    itype, rank = g.get_type(x), g.get_rank(x)
    replaced = g.op.LessOrEqual(x, scalar_like(g, threshold, itype, rank))
    return g.op.Where(replaced, scalar_like(g, value, itype, rank), x)


@aten("aten.glu.default")
def glu(g: GraphWriter, x: str, dim: int = -1) -> str:
    """The first half times the sigmoid of the second one."""
    axis = axis_of(dim, g.get_rank(x))
    size = g.get_shape(x)[axis]
    if isinstance(size, int):
        sizes = const([size // 2, size // 2], TensorProto.INT64)
        a, b = several(g, "Split", 2, x, sizes, axis=axis)
    else:
        a, b = several(g, "Split", 2, x, num_outputs=2, axis=axis)
    return g.op.Mul(a, g.op.Sigmoid(b))


@curried
def _softmax(
    op_type: str, g: GraphWriter, x: str, dim: int, dtype: torch.dtype | None = None
) -> str:
    x = as_float(g, x) if dtype is None else cast(g, x, to_onnx_type(dtype))
    if g.get_rank(x) == 0:
        vector = g.op.Unsqueeze(x, const([0], TensorProto.INT64))
        return g.op.Squeeze(op_named(g, op_type)(vector, axis=0))
    return op_named(g, op_type)(x, axis=dim)


softmax = aten("aten.softmax.int")(_softmax("Softmax"))
log_softmax = aten("aten.log_softmax.int")(_softmax("LogSoftmax"))


@curried
def _raw_softmax(op_type: str, g: GraphWriter, x: str, dim: int, half_to_float: bool) -> str:
    x = cast(g, x, TensorProto.FLOAT) if half_to_float else x
    return _softmax(op_type)(g, x, dim)


aten("aten._softmax.default")(_raw_softmax("Softmax"))
aten("aten._log_softmax.default")(_raw_softmax("LogSoftmax"))


@aten("aten._safe_softmax.default")
def safe_softmax(g: GraphWriter, x: str, dim: int, dtype: torch.dtype | None = None) -> str:
    """Softmax giving 0 on the rows where everything is -inf."""
    x = x if dtype is None else cast(g, x, to_onnx_type(dtype))
    itype = g.get_type(x)
    normal = g.op.Softmax(x, axis=dim)
    highest = reduce(g, "ReduceMax", x, dim, True)
    masked = g.op.Equal(highest, const(-float("inf"), itype))
    return g.op.Where(masked, const(0, itype), normal)


@aten("aten.rrelu_with_noise_functional.default")
def rrelu(
    g: GraphWriter,
    x: str,
    noise: str,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> list[str]:
    """A leaky relu with the mean slope, in training with a random slope for each value."""
    if training:
        itype = g.get_type(x)
        drawn_slopes = drawn(g, "RandomUniform", dims_of(g, x), itype, low=lower, high=upper)
        is_drawn = g.op.LessOrEqual(x, const(0, itype))
        slopes = g.op.Where(is_drawn, drawn_slopes, const(1, itype))
        return [g.op.Mul(x, slopes), slopes]
    slope = (lower + upper) / 2
    return [g.op.LeakyRelu(x, alpha=slope), noise]
