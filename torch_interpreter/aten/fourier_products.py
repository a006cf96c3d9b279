"""Fourier transforms of real numbers as products with constant cosines and sines.

DFT and STFT of onnxruntime are fast when the number of elements is a power of 2. Otherwise they
lose three digits and take up to twenty times longer than a product.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..writing.graph_writer import Array, GraphWriter
from ..writing.symbols import dim_of, int_vector
from .operands import const

#: the number of elements up to which a product is faster, for a power of 2, for another number
_MOST_POWER, _MOST = 512, 1024


def half_as_product(g: GraphWriter, x: str, axis: int) -> str | None:
    """The first half of the transform of real numbers, None if a product is not better.

    :param g: builder
    :param x: real numbers, without a dimension for their parts
    :param axis: not negative
    """
    size, rank, itype = dim_of(g, x, axis), g.get_rank(x), g.get_type(x)
    if not isinstance(size, int) or not _is_better(size) or axis != rank - 1:
        return None
    if itype not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return None
    waves = _waves(size).transpose(2, 1, 0).reshape(size, -1)
    found = g.op.MatMul(x, const(waves, itype))
    return g.op.Reshape(found, int_vector([*[0] * (rank - 1), size // 2 + 1, 2]))


def frames_as_product(g: GraphWriter, x: str, window: str, hop: int) -> str | None:
    """The first half of the transform of each frame, which become the last dimension but the parts;
    None if a convolution is not better.

    :param g: builder
    :param x: rows of real numbers
    :param window: the weights of the elements of a frame
    :param hop: the distance between the beginnings of two frames
    """
    size = g.get_shape(window)[0]
    is_single = g.get_type(x) == g.get_type(window) == TensorProto.FLOAT
    if not isinstance(size, int) or not _is_better(size) or not is_single:
        return None
    half = size // 2 + 1
    waves = const(_waves(size).reshape(2 * half, 1, size), TensorProto.FLOAT)
    rows = g.op.UnsqueezeAnyOpset(x, int_vector([1]))
    found = g.op.Conv(rows, g.op.Mul(window, waves), strides=[hop])
    parts = g.op.Reshape(found, int_vector([0, 2, half, -1]))
    return g.op.Transpose(parts, perm=[0, 2, 3, 1])


def _is_better(size: int) -> bool:
    """Whether a product is faster than a transform of onnxruntime, or as fast and more precise."""
    is_power = size & (size - 1) == 0
    return 0 < size <= (_MOST_POWER if is_power else _MOST)


def _waves(size: int) -> Array:
    """The cosines, then the sines: two parts, half of the frequencies, the elements."""
    turns = np.arange(size // 2 + 1)[:, None] * np.arange(size) % size
    angles = 2 * np.pi / size * turns
    return np.stack([np.cos(angles), -np.sin(angles)])
