"""Draws random numbers with the Dropout of onnxruntime, where it has no kernel for other operators.

Dropout keeps an element with a probability of 1/2 when it trains: a bit. A number takes 24 of them,
the precision of float.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx.numpy_helper as onh
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import FLOATS

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from .missing import in_float, missing_types

#: bits of a number between 0 and 1
_BITS = 24
_NORMAL = ("RandomNormal", "RandomNormalLike")


@rewrite(
    "onnxruntime",
    "fix",
    root=("RandomUniform", "RandomUniformLike", *_NORMAL),
    precision="rounding",
    aliases="MissingRandomNormal",
)
def missing_random_uniform(g: RewriteContext, node: NodeProto) -> NewNode:
    """RandomUniform(low, high) -> u * (high - low) + low, and RandomUniformLike; u is made of bits.

    1. The type of the result is known, it is a float: the numbers have the 24 bits of float.
    2. RandomNormal(mean, scale) -> sqrt(-2 * log(1 - u)) * cos(2 * pi * v) * scale + mean, and
       RandomNormalLike: the numbers are less than 6 deviations away from the mean.

    The numbers have the distribution asked, a seed gives others than those of another runtime.
    """
    kind, shape = _result(g, node)
    normal = node.op_type in _NORMAL
    defaults = {"mean": 0.0, "scale": 1.0} if normal else {"low": 0.0, "high": 1.0}
    start, end = (g.get_attribute_with_default(node, k, v) for k, v in defaults.items())
    draws = _uniform(g, node, shape, 1 + normal)
    number, width = (_normal(g, *draws), end) if normal else (draws[0], end - start)
    return _cast(g, g.op.Add(g.op.Mul(number, _f32(width)), _f32(start)), kind)


def _normal(g: RewriteContext, u: NewNode, v: NewNode) -> NewNode:
    """Normal numbers from uniform ones, by the transform of Box and Muller."""
    radius = g.op.Sqrt(g.op.Mul(g.op.Log(g.op.Sub(_f32(1), u)), _f32(-2)))
    return g.op.Mul(radius, g.op.Cos(g.op.Mul(v, _f32(2 * math.pi))))


def _f32(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


@rewrite("onnxruntime", "fix", root="Bernoulli", precision="rounding")
def missing_bernoulli(g: RewriteContext, node: NodeProto) -> NewNode:
    """Bernoulli(p) -> Cast(u < p); u is made of bits.

    A seed gives other numbers than those of another runtime.
    """
    kind = missing_types(g, node)[0]
    p = node.input[0]
    (draws,) = _uniform(g, node, g.op.Shape(p), 1)
    wide = p if kind == TensorProto.FLOAT else g.op.Cast(p, to=TensorProto.FLOAT)
    to = g.get_attribute_with_default(node, "dtype", kind)
    return g.op.Cast(g.op.Less(draws, wide), to=to)


@rewrite("onnxruntime", "fix", root="Multinomial", precision="rounding")
def missing_multinomial(g: RewriteContext, node: NodeProto) -> NewNode:
    """Multinomial(logits) -> the number of cumulated probabilities that u is above; u is made of
    bits.

    1. Logits are floats.

    A seed gives other classes than those of another runtime.
    """
    kind = missing_types(g, node)[0]
    g.require(kind in FLOATS, "the type is not a float")
    logits = in_float(g, node.input[0], kind)
    size = np.array([g.get_attribute_with_default(node, "sample_size", 1)], dtype=np.int64)
    shape = g.op.Concat(g.op.Shape(logits, start=0, end=1), size, axis=0)
    (draws,) = _uniform(g, node, shape, 1)
    sums = g.op.CumSum(g.op.Softmax(logits, axis=1), np.array(1, dtype=np.int64))
    if kind == TensorProto.DOUBLE:
        sums = g.op.Cast(sums, to=TensorProto.FLOAT)
    # the last sum, which is 1, is left out: the last class is above all the others
    inner = g.op.Slice(sums, *(np.array([i], dtype=np.int64) for i in (0, -1, 1)))
    above = g.op.GreaterOrEqual(g.op.Unsqueeze(draws, axes=[2]), g.op.Unsqueeze(inner, axes=[1]))
    to = g.get_attribute_with_default(node, "dtype", TensorProto.INT32)
    counts = g.op.Cast(above, to=TensorProto.INT32)
    return _cast(g, g.op.ReduceSum(counts, axes=[2], keepdims=0), to, TensorProto.INT32)


def _result(g: RewriteContext, node: NodeProto) -> tuple[int, Any]:
    """The type of the numbers an operator draws, and their shape: a constant or a new operator."""
    types = missing_types(g, node)
    default = types[0] if types else TensorProto.FLOAT
    kind = g.get_attribute_with_default(node, "dtype", default)
    g.require(kind in FLOATS, "the type is not a float")
    if node.input:
        return kind, g.op.Shape(node.input[0])
    return kind, np.array(g.get_attribute_with_default(node, "shape", ()), dtype=np.int64)


def _uniform(g: RewriteContext, node: NodeProto, shape: Any, count: int) -> list[NewNode]:
    """Numbers between 0 and 1, 1 excluded, in float: *count* tensors."""
    bits = np.array([_BITS * count], dtype=np.int64)
    if isinstance(shape, np.ndarray):
        wide: Any = np.concatenate([shape, bits])
    else:
        wide = g.op.Concat(shape, bits, axis=0)
    one = onh.from_array(np.array([1], dtype=np.float32))
    ones = g.op.ConstantOfShape(wide, value=one)
    half, trains = _f32(0.5), np.array(True)
    seed = g.get_attribute_with_default(node, "seed", None)
    drawn = g.op.Dropout(ones, half, trains, seed=None if seed is None else int(seed))
    # Dropout multiplies what it keeps by two
    powers = 2.0 ** -np.arange(2, _BITS + 2, dtype=np.float32)
    weights = np.kron(np.eye(count, dtype=np.float32), powers[:, np.newaxis])
    numbers = g.op.MatMul(drawn, weights.astype(np.float32))
    last = np.array([-1], dtype=np.int64)
    if count == 1:
        return [g.op.Squeeze(numbers, last)]
    sizes = np.ones(count, dtype=np.int64)
    parts = g.op.Split(numbers, sizes, axis=-1, outputs=count)
    return [g.op.Squeeze(parts[i], last) for i in range(count)]


def _cast(g: RewriteContext, x: NewNode, to: int, source: int = TensorProto.FLOAT) -> NewNode:
    return x if to == source else g.op.Cast(x, to=to)
