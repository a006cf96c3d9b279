"""Operators of onnxruntime without CPU kernel, in numpy, from their definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import erf

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from xoptim.testing import assert_same_outputs, check_pattern, make_feeds, model_from_text


def _softmax(x: np.ndarray) -> np.ndarray:
    exponential = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponential / exponential.sum(axis=-1, keepdims=True)


def _bias_softmax(self, data, bias, axis=None, is_inner_broadcast=None):
    """Rows are read in order; the bias of a row is found by its number, as the kernel does."""
    assert axis in (-1, data.ndim - 1)
    length = data.shape[-1]
    rows, biases = data.reshape(-1, length), bias.reshape(-1, length)
    repeated = len(rows) // max(len(biases), 1)
    numbers = np.arange(len(rows))
    numbers = numbers // max(repeated, 1) if is_inner_broadcast else numbers % max(len(biases), 1)
    return (_softmax(rows + biases[numbers]).reshape(data.shape).astype(data.dtype),)


def _softmax_grad(self, dy, y, axis=None):
    return ((dy - (dy * y).sum(axis=axis, keepdims=True)) * y,)


def _gemma_rotary(self, angles, q, q_turned, k, k_turned):
    assert angles.dtype == np.float32 and q.dtype == np.float16
    cos, sin = (f(angles).astype(np.float16)[:, None] for f in (np.cos, np.sin))
    return q * cos + q_turned * sin, k * cos + k_turned * sin


def _gelu(x: np.ndarray) -> np.ndarray:
    return (x * 0.5 * (1 + np.vectorize(erf, otypes=[np.float64])(x / 2**0.5))).astype(x.dtype)


def _bias_split_gelu(self, x, bias):
    assert x.ndim == 3 and bias.ndim == 1 and x.shape[-1] in (2560, 5120, 10240)
    left, right = np.split(x + bias, 2, axis=-1)
    return (left * _gelu(right),)


def _bias_dropout(self, x, bias, residual=None, ratio=None, training=None, seed=None):
    """Without training: nothing is dropped, the mask is true."""
    assert not training and bias.shape in (x.shape, x.shape[-1:])
    assert residual is None or residual.shape == x.shape
    result = x + bias if residual is None else x + bias + residual
    return result, np.ones(x.shape, np.bool_)


def _complex(sign: int):
    def run(self, a, b):
        b = b * np.array([1, sign], b.dtype)
        real = a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1]
        imaginary = a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]
        return (np.stack([real, imaginary], axis=-1),)

    return run


def _relative_position_bias(self, table, queries, keys, is_bidirectional=0, max_distance=None):
    """The table is read as (heads, buckets), whatever its shape; logarithms are those of float."""
    (length,), (other,) = queries, keys
    assert length == other and table.ndim == 2
    buckets, heads = table.shape
    distances = np.arange(length)[None] - np.arange(length)[:, None]
    after = np.zeros_like(distances)
    if is_bidirectional:
        buckets //= 2
        after, distances = np.where(distances > 0, buckets, 0), np.abs(distances)
    else:
        distances = np.maximum(-distances, 0)
    exact = np.float32(buckets // 2)
    with np.errstate(divide="ignore"):
        log = np.log(distances.astype(np.float32) / exact)
    log = log / np.log(np.float32(max_distance) / exact) * np.float32(buckets - exact)
    far = np.minimum(np.maximum(log, 0).astype(np.int64) + int(exact), buckets - 1)
    rows = np.where(distances < exact, distances, far) + after
    return (table.reshape(heads, -1)[:, rows][None],)


def _gated_relative_position_bias(self, query, bias, relative, weight, shift, eco, num_heads=None):
    batch, steps = query.shape[:2]
    assert relative.shape == (1, num_heads, steps, steps) and eco.shape == (1, num_heads, 1, 1)
    size = query.shape[2] // num_heads
    heads = (query + bias).reshape(batch, steps, num_heads, size).transpose(0, 2, 1, 3)
    rows = (
        (heads @ weight + shift).reshape(batch, num_heads, steps, 2, len(shift) // 2).sum(axis=-1)
    )
    gates = 1 / (1 + np.exp(-rows))
    gate = gates[..., :1] * (gates[..., 1:] * eco - 1) + 2
    return ((gate * relative).astype(query.dtype),)


def _decoder_attention(
    self, query, key, q, kv, bias, mask, keys, values, other, past, state, masked,
    num_heads=None, mask_filter_value=None,
):  # fmt: skip
    """Positions come first; keys and values are those of *key* for cross-attention."""
    assert mask is None and keys is None and values is None and not (past or state or masked)
    width = query.shape[2]
    assert q.shape == (width, width) and kv.shape == (width, 2 * width) and len(bias) == 3 * width
    source = key if other.item() else query

    def heads(x, weight, shift):
        rows = (x @ weight + shift).reshape(*x.shape[:2], num_heads, -1)
        return rows.transpose(1, 2, 0, 3)

    first = heads(query, q, bias[:width])
    second = heads(source, kv[:, :width], bias[width : 2 * width])
    third = heads(source, kv[:, width:], bias[2 * width :])
    scores = first @ second.swapaxes(2, 3) / np.sqrt(np.float32(first.shape[3]))
    result = (_softmax(scores) @ third).transpose(2, 0, 1, 3)
    return (result.reshape(query.shape).astype(query.dtype),)


RUNS = {
    "BiasDropout": _bias_dropout,
    "BiasSoftmax": _bias_softmax,
    "BiasSplitGelu": _bias_split_gelu,
    "ComplexMul": _complex(1),
    "ComplexMulConj": _complex(-1),
    "DecoderAttention": _decoder_attention,
    "GatedRelativePositionBias": _gated_relative_position_bias,
    "GemmaRotaryEmbedding": _gemma_rotary,
    "RelativePositionBias": _relative_position_bias,
    "SoftmaxGrad_13": _softmax_grad,
    "Gelu": lambda self, x, approximate=None: (_gelu(x),),
}
OPS = [type(k, (OpRun,), {"op_domain": "com.microsoft", "_run": v}) for k, v in RUNS.items()]


def run(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs, with the operators of this module."""
    return ReferenceEvaluator(model, new_ops=OPS).run(None, dict(feeds))


def check(
    before: str,
    after: str,
    pattern: str,
    sizes: Iterable[Mapping[str, int]] = ({},),
    opset: int = 18,
) -> None:
    """Checks the graph on CUDA, then the results in numpy."""
    model = model_from_text(before, opset)
    result = check_pattern(
        model, model_from_text(after, opset), pattern, feeds=[], processor="CUDA"
    )
    for i, table in enumerate(sizes):
        feed = make_feeds(model, table, i)
        assert_same_outputs(run(model, feed), run(result, feed), 1e-5, 1e-5, pattern)
