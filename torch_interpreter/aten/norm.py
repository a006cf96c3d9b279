"""Normalizations and dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from onnx import TensorProto

from ..common.types import to_torch_type
from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import aten
from ..writing.symbols import Size, dim_of, dims_of, int_vector
from .creation import constant_of_shape
from .operands import (
    BOOL,
    axes_of,
    axis_of,
    cast,
    const,
    float_type,
    integers,
    rank_of,
    reshape,
    shape_tensor_of,
)
from .reduce import reduce

Weight = str | None


@aten("aten.layer_norm.default")
def layer_norm(
    g: GraphWriter,
    x: str,
    normalized_shape: Sequence[int],
    weight: Weight = None,
    bias: Weight = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> str:
    """LayerNormalization from opset 17, its definition before."""
    axis = -len(normalized_shape)
    if g.main_opset >= 17 and weight is not None:
        return g.op.LayerNormalization(x, weight, bias, axis=axis, epsilon=eps)
    axes = list(range(axis, 0))
    centered, inverse = _standardized(g, x, axes, eps)
    return _affine(g, g.op.Mul(centered, inverse), weight, bias)


def _standardized(g: GraphWriter, x: str, axes: Sequence[int], eps: float) -> tuple[str, str]:
    """x - mean and 1 / sqrt(variance + eps)."""
    rank = g.get_rank(x)
    positive = axes_of(axes, rank)
    centered = g.op.Sub(x, reduce(g, "ReduceMean", x, positive, True))
    variance = reduce(g, "ReduceMean", g.op.Mul(centered, centered), positive, True)
    deviation = g.op.Sqrt(g.op.Add(variance, const(eps, g.get_type(x))))
    return centered, g.op.Reciprocal(deviation)


def _affine(g: GraphWriter, x: str, weight: Weight, bias: Weight) -> str:
    if weight is not None:
        x = g.op.Mul(x, weight)
    if bias is not None:
        return g.op.Add(x, bias)
    return x


def _by_channel(g: GraphWriter, rank: int, *weights: Weight) -> list[Weight]:
    """Weights with one value for each channel, for a product by tensors of this rank."""
    shape = int_vector([-1, *[1] * (rank - 2)])
    return [None if v is None else g.op.Reshape(v, shape) for v in weights]


@aten("aten.native_layer_norm.default")
def native_layer_norm(
    g: GraphWriter,
    x: str,
    normalized_shape: Sequence[int],
    weight: Weight,
    bias: Weight,
    eps: float,
) -> list[str]:
    """The normalization, the mean and the inverse of the deviation. The operator computes the last
    two in float."""
    if g.main_opset >= 17 and weight is not None and g.get_type(x) == TensorProto.FLOAT:
        axis = -len(normalized_shape)
        return [*several(g, "LayerNormalization", 3, x, weight, bias, axis=axis, epsilon=eps)]
    rank = g.get_rank(x)
    axes = list(range(rank - len(normalized_shape), rank))
    normalized = layer_norm(g, x, normalized_shape, weight, bias, eps)
    mean = reduce(g, "ReduceMean", x, axes, True)
    return [normalized, mean, _standardized(g, x, axes, eps)[1]]


@aten("aten.rms_norm.default")
def rms_norm(
    g: GraphWriter,
    x: str,
    normalized_shape: Sequence[int],
    weight: Weight = None,
    eps: float | None = None,
) -> str:
    """x / sqrt(mean(x^2) + eps), RMSNormalization from opset 23."""
    itype = g.get_type(x)
    eps = torch.finfo(to_torch_type(itype)).eps if eps is None else eps
    if g.main_opset >= 23 and weight is not None:
        axis = -len(normalized_shape)
        return g.op.RMSNormalization(x, weight, axis=axis, epsilon=eps)
    axes = list(range(g.get_rank(x) - len(normalized_shape), g.get_rank(x)))
    square = reduce(g, "ReduceMean", g.op.Mul(x, x), axes, True)
    inverse = g.op.Reciprocal(g.op.Sqrt(g.op.Add(square, const(eps, itype))))
    if weight is None:
        return g.op.Mul(x, inverse)
    return g.op.Mul(g.op.Mul(x, inverse), weight)


def _scale_and_shift(g: GraphWriter, x: str, weight: Weight, bias: Weight) -> tuple[str, str]:
    """One value per channel, 1 and 0 by default."""
    if weight is None:
        weight = constant_of_shape(g, [dim_of(g, x, 1)], 1, g.get_type(x))
    if bias is None:
        bias = constant_of_shape(g, [dim_of(g, x, 1)], 0, g.get_type(x))
    return weight, bias


def _batch_norm_inference(
    g: GraphWriter, x: str, weight: Weight, bias: Weight, mean: Weight, variance: Weight, eps: float
) -> str:
    scale, shift = _scale_and_shift(g, x, weight, bias)
    return g.op.BatchNormalization(x, scale, shift, mean, variance, epsilon=eps)


def _batch_norm_training(
    g: GraphWriter, x: str, weight: Weight, bias: Weight, eps: float
) -> list[str]:
    """Normalizes with the statistics of the batch, returns also mean and inverse deviation."""
    rank = g.get_rank(x)
    axes = [i for i in range(rank) if i != 1]
    centered, inverse = _standardized(g, x, axes, eps)
    wide = _by_channel(g, rank, weight, bias)
    result = _affine(g, g.op.Mul(centered, inverse), *wide)
    flat = int_vector([-1])
    mean = g.op.Reshape(reduce(g, "ReduceMean", x, axes, True), flat)
    return [result, mean, g.op.Reshape(inverse, flat)]


@aten("aten.batch_norm.default", "aten.cudnn_batch_norm.default")
def batch_norm(
    g: GraphWriter,
    x: str,
    weight: Weight,
    bias: Weight,
    running_mean: Weight,
    running_var: Weight,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> str:
    """BatchNormalization, with the statistics of the batch in training mode."""
    if training or running_mean is None or running_var is None:
        return _batch_norm_training(g, x, weight, bias, eps)[0]
    return _batch_norm_inference(g, x, weight, bias, running_mean, running_var, eps)


@aten("aten._native_batch_norm_legit_no_training.default")
def batch_norm_no_training(
    g: GraphWriter,
    x: str,
    weight: Weight,
    bias: Weight,
    running_mean: str,
    running_var: str,
    momentum: float,
    eps: float,
) -> list[str]:
    """Three outputs, the last two are empty."""
    result = _batch_norm_inference(g, x, weight, bias, running_mean, running_var, eps)
    empty = constant_of_shape(g, [0], 0, g.get_type(x))
    return [result, empty, empty]


@aten("aten._native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    g: GraphWriter,
    x: str,
    weight: Weight,
    bias: Weight,
    training: bool,
    momentum: float,
    eps: float,
) -> list[str]:
    """Always uses the statistics of the batch."""
    return _batch_norm_training(g, x, weight, bias, eps)


@aten("aten.instance_norm.default")
def instance_norm(
    g: GraphWriter,
    x: str,
    weight: Weight,
    bias: Weight,
    running_mean: Weight,
    running_var: Weight,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> str:
    """InstanceNormalization, or a batch normalization with known statistics."""
    if not use_input_stats:
        return _batch_norm_inference(g, x, weight, bias, running_mean, running_var, eps)
    scale, shift = _scale_and_shift(g, x, weight, bias)
    return g.op.InstanceNormalization(x, scale, shift, epsilon=eps)


def _in_groups(g: GraphWriter, x: str, groups: int) -> str:
    """One row for each group of channels; sizes are all explicit if one of them is zero."""
    sizes = integers(g.get_shape(x))
    if sizes is None or 0 not in sizes:
        return g.op.Reshape(x, int_vector([0, groups, -1]))
    size = sizes[1] // groups * math.prod(sizes[2:])
    return g.op.Reshape(x, int_vector([sizes[0], groups, size]), allowzero=1)


@aten("aten.group_norm.default")
def group_norm(
    g: GraphWriter,
    x: str,
    num_groups: int,
    weight: Weight = None,
    bias: Weight = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> str:
    """An instance normalization over groups of channels, then the scale of each channel."""
    rank, itype = g.get_rank(x), g.get_type(x)
    grouped = _in_groups(g, x, num_groups)
    ones, zeros = const([1] * num_groups, itype), const([0] * num_groups, itype)
    normalized = g.op.InstanceNormalization(grouped, ones, zeros, epsilon=eps)
    wide = _by_channel(g, rank, weight, bias)
    back = reshape(g, normalized, dims_of(g, x), g.get_shape(x))
    return _affine(g, back, *wide)


@aten("aten.native_group_norm.default")
def native_group_norm(
    g: GraphWriter,
    x: str,
    weight: Weight,
    bias: Weight,
    n: Size,
    c: Size,
    hxw: Size,
    group: int,
    eps: float,
) -> list[str]:
    """The normalization, the mean and the inverse of the deviation of each group."""
    result = group_norm(g, x, group, weight, bias, eps)
    grouped = _in_groups(g, x, group)
    mean = g.op.ReduceMeanAnyOpset(grouped, int_vector([2]), keepdims=0)
    inverse = _standardized(g, grouped, [2], eps)[1]
    return [result, mean, g.op.SqueezeAnyOpset(inverse, int_vector([2]))]


@aten("aten.dropout.default")
def dropout(g: GraphWriter, x: str, p: float, train: bool) -> str:
    """Identity at inference; Dropout in training mode, zeros if everything is dropped."""
    if not train or p == 0:
        return x
    if p == 1:
        return g.op.Mul(x, const(0, g.get_type(x)))
    return g.op.Dropout(x, const(p, TensorProto.FLOAT), const(True, BOOL))


@aten("aten.feature_dropout.default")
def feature_dropout(g: GraphWriter, x: str, p: float, train: bool) -> str:
    """Drops whole channels in training mode."""
    if not train or p == 0:
        return x
    shape: list[Size] = [dim_of(g, x, 0), dim_of(g, x, 1), *[1] * (g.get_rank(x) - 2)]
    return g.op.Mul(x, dropout(g, constant_of_shape(g, shape, 1, g.get_type(x)), p, True))


@aten("aten.alpha_dropout.default", "aten.feature_alpha_dropout.default")
def alpha_dropout(g: GraphWriter, x: str, p: float, train: bool) -> str:
    """Identity at inference, refused in training mode."""
    if train and p > 0:
        raise ValueError("alpha dropout in training mode has no equivalent in ONNX")
    return x


@aten("aten.native_dropout.default")
def native_dropout(g: GraphWriter, x: str, p: float, train: bool | None) -> list[str]:
    """The result and the mask."""
    if not train:
        return [x, cast(g, constant_of_shape(g, shape_tensor_of(g, x), 1, TensorProto.INT64), BOOL)]
    ratio = const(p, TensorProto.FLOAT)
    return [*several(g, "Dropout", 2, x, ratio, const(True, BOOL))]


@aten("aten._weight_norm.default")
def weight_norm(g: GraphWriter, v: str, size: str, dim: int = 0) -> str:
    """A weight whose norm is given along a dimension, or as a whole if it is -1."""
    rank = g.get_rank(v)
    axes = [i for i in range(rank) if i != dim]
    return g.op.Mul(v, g.op.Div(size, reduce(g, "ReduceL2", v, axes, True)))


@aten("aten.cosine_similarity.default")
def cosine_similarity(g: GraphWriter, x: str, y: str, dim: int = 1, eps: float = 1e-8) -> str:
    """The products of vectors divided by their lengths."""
    itype, rank = float_type(g, x, y), rank_of(g, x, y)
    axis = axis_of(dim, rank)
    ranks = {g.get_rank(v) for v in (x, y)}
    sizes = {dim_of(g, v, axis) for v in (x, y)} if ranks == {rank} and rank else ranks
    if len(sizes) > 1:  # a vector of one element is repeated, or a tensor has fewer dimensions
        x, y = g.op.Expand(x, g.op.Shape(y)), g.op.Expand(y, g.op.Shape(x))
    units = []
    for value in (cast(g, v, itype) for v in (x, y)):
        length = reduce(g, "ReduceL2", value, axis, True)
        units.append(g.op.Div(value, g.op.Max(length, const(eps, itype))))
    return reduce(g, "ReduceSum", g.op.Mul(*units), axis, False)
