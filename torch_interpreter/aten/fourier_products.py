"""Fourier transforms of known lengths as products with constant cosines and sines.

DFT and STFT of onnxruntime are fast when the number of elements is a power of 2. Otherwise they
lose three digits and take up to fifteen times longer than products. A long transform is made of
two: n = a b numbers are a rows of b numbers, the columns are transformed, then the rows.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from ..writing.graph_writer import Array, GraphWriter
from ..writing.symbols import Size, dim_of, dims_of, int_vector, shape_tensor, vector1d
from .operands import const

#: the elements of a constant: beyond, or if a power of 2 is greater, DFT is better
_MOST_WEIGHTS, _MOST_POWER = 2**21, 2048
#: about the time of the transpositions of one number, in multiplications
_TRANSPOSED = 35
#: the same for the nodes of a step, which are as many whatever the number of rows
_STEP = 20_000
#: the lengths up to which the transforms of frames are a convolution, for a power of 2, for another
_MOST_POWER_FRAMES, _MOST_FRAMES = 512, 1024


class Transform(NamedTuple):
    """Sums of numbers multiplied by their weights and by exp(sign 2 pi i j k / size).

    :param size: the length of the whole transform
    :param weights: one for each number that is read, j = 0, 1, ...
    :param wanted: the number of results, k = 0, 1, ...
    :param sign: -1, or 1 for an inverse
    :param reads_real: the numbers have no imaginary part
    :param gives_real: the imaginary parts of the results are not wanted
    """

    size: int
    weights: Array
    wanted: int
    sign: int
    reads_real: bool = False
    gives_real: bool = False

    @property
    def read(self) -> int:
        """The number of elements that are read."""
        return len(self.weights)

    @property
    def read_parts(self) -> int:
        """The parts of a number that is read."""
        return 2 - self.reads_real

    @property
    def wanted_parts(self) -> int:
        """The parts of a result."""
        return 2 - self.gives_real

    def matrix(self) -> Array:
        """The constant of a single product: the parts of the numbers, those of the results."""
        j, k = np.arange(self.read)[:, None], np.arange(self.wanted)
        waves = self._waves(j * k, self.size) * self.weights[:, None]
        return _real_matrix(waves, self.reads_real, self.gives_real)

    def columns_matrix(self, rows: int, a: int) -> Array:
        """The matrices of the columns of some rows, the rest of the angles included."""
        b = self.size // a
        weights = np.zeros(rows * b)
        weights[: self.read] = self.weights
        j = np.arange(rows)[None, :, None] * b + np.arange(b)[:, None, None]
        waves = self._waves(j * np.arange(a), self.size) * weights[j]
        return _real_matrix(waves, self.reads_real, False)

    def of_rows(self, a: int) -> Transform:
        """The transform of the rows, once the *a* columns are transformed."""
        wanted = -(-self.wanted // a)
        b = self.size // a
        return Transform(b, np.ones(b), wanted, self.sign, False, self.gives_real)

    def _waves(self, turns: Array, size: int) -> Array:
        found: Array = np.exp(self.sign * 2j * np.pi / size * (turns % size))
        return found


class _Plan(NamedTuple):
    """The factors of the lengths, one after the other.

    :param factors: the number of rows of each step, the last product has none
    :param cost: multiplications of each transform
    :param weights: the elements of the constants
    """

    factors: tuple[int, ...]
    cost: int
    weights: int


@functools.cache
def _plan(size: int, read: int, wanted: int, read_parts: int, wanted_parts: int) -> _Plan:
    """The fastest steps among those whose constants are small enough, see :class:`Transform`."""
    single = read * read_parts * wanted * wanted_parts
    found = [_Plan((), single, single)]
    for a in range(2, math.isqrt(size) + 1):
        b = size // a
        columns = b * -(-read // b) * read_parts * 2 * a
        if size % a or columns > _MOST_WEIGHTS:
            continue
        rest = _plan(b, b, -(-wanted // a), 2, wanted_parts)
        moved = _TRANSPOSED * (read * read_parts + 2 * size + wanted * wanted_parts)
        cost = _STEP + columns + moved + a * rest.cost
        found.append(_Plan((a, *rest.factors), cost, columns + rest.weights))
    return min(found, key=lambda p: (p.weights > _MOST_WEIGHTS, p.cost))


def _real_matrix(waves: Array, reads_real: bool, gives_real: bool) -> Array:
    """The matrix of the parts of numbers, interleaved, from a matrix of complex numbers."""
    *lead, given, wanted = waves.shape
    real, imaginary = waves.real, waves.imag
    found = np.stack([np.stack([real, imaginary], -1), np.stack([-imaginary, real], -1)], -3)
    found = found[..., : 2 - reads_real, :, : 2 - gives_real]
    return found.reshape(*lead, given * (2 - reads_real), wanted * (2 - gives_real))


def first_numbers(g: GraphWriter, x: str, axis: int, n: Size | None) -> str:
    """The first *n* elements along an axis, then zeros if there are less."""
    size = dim_of(g, x, axis)
    if n is None or size == n:
        return x
    known = isinstance(size, int) and isinstance(n, int)
    more = int(n) - int(size) if known else None
    if more is None or more > 0:
        rank = g.get_rank(x)
        pads = [*[0] * (rank + axis), n if more is None else more, *[0] * (rank - 1 - axis)]
        x = g.op.Pad(x, shape_tensor(g, pads), const(0, g.get_type(x)))
        if more is not None:
            return x
    return g.op.Slice(x, int_vector([0]), vector1d(g, n), int_vector([axis]))


def as_products(g: GraphWriter, x: str, axis: int, t: Transform) -> str | None:
    """A transform along an axis, None if DFT is better.

    :param g: builder
    :param x: numbers; the parts of complex ones are the last dimension
    :param axis: not negative
    :param t: the transform, which reads the first numbers along the axis
    """
    itype, rank = g.get_type(x), g.get_rank(x) - (not t.reads_real)
    known = g.get_shape(x) if g.has_shape(x) else ()
    if itype not in (TensorProto.FLOAT, TensorProto.DOUBLE) or 0 in known:
        return None
    plan = _plan(t.size, t.read, t.wanted, t.read_parts, t.wanted_parts)
    if t.size < 1 or plan.weights > _MOST_WEIGHTS or (_is_power(t.size) and t.size > _MOST_POWER):
        return None
    x = first_numbers(g, x, axis, t.read)
    order = [i for i in range(rank) if i != axis] + [axis]
    if axis != rank - 1:
        x = g.op.Transpose(x, perm=[*order, *range(rank, g.get_rank(x))])
    parts = [2] * (not t.gives_real)
    if plan.factors:
        lead: list[Size] = dims_of(g, x)[: rank - 1]
        if sum(isinstance(d, str) for d in lead) == 1:
            lead = [-1 if isinstance(d, str) else d for d in lead]
        rows = g.op.Reshape(x, int_vector([-1, t.read * t.read_parts]))
        y = _steps(g, rows, t, plan.factors, itype)
        y = g.op.Reshape(y, shape_tensor(g, [*lead, t.wanted, *parts]))
    else:
        if not t.reads_real:
            x = g.op.Reshape(x, int_vector([*[0] * (rank - 1), t.read * 2]))
        y = g.op.MatMul(x, const(t.matrix(), itype))
        if parts:
            y = g.op.Reshape(y, int_vector([*[0] * (rank - 1), t.wanted, 2]))
    if axis != rank - 1:
        back = sorted(range(rank), key=order.__getitem__)
        y = g.op.Transpose(y, perm=[*back, *[rank] * len(parts)])
    return y


def _steps(g: GraphWriter, x: str, t: Transform, factors: tuple[int, ...], itype: int) -> str:
    """The transforms of the rows of a matrix."""
    if not factors:
        return g.op.MatMul(x, const(t.matrix(), itype))
    a, b = factors[0], t.size // factors[0]
    rows = -(-t.read // b)
    if missing := rows * b - t.read:
        x = g.op.Pad(x, int_vector([0, 0, 0, missing * t.read_parts]), const(0, itype))
    if t.reads_real:
        x = g.op.Transpose(g.op.Reshape(x, int_vector([-1, rows, b])), perm=[2, 0, 1])
    else:
        x = g.op.Transpose(g.op.Reshape(x, int_vector([-1, rows, b, 2])), perm=[2, 0, 1, 3])
        x = g.op.Reshape(x, int_vector([b, -1, 2 * rows]))
    x = g.op.MatMul(x, const(t.columns_matrix(rows, a), itype))
    x = g.op.Transpose(g.op.Reshape(x, int_vector([b, -1, a, 2])), perm=[1, 2, 0, 3])
    inner = t.of_rows(a)
    x = _steps(g, g.op.Reshape(x, int_vector([-1, 2 * b])), inner, factors[1:], itype)
    parts = [2] * (not t.gives_real)
    x = g.op.Reshape(x, int_vector([-1, a, inner.wanted, *parts]))
    x = g.op.Transpose(x, perm=[0, 2, 1, *[3] * len(parts)])
    x = g.op.Reshape(x, int_vector([-1, inner.wanted * a * t.wanted_parts]))
    if inner.wanted * a > t.wanted:
        end = int_vector([t.wanted * t.wanted_parts])
        x = g.op.Slice(x, int_vector([0]), end, int_vector([1]))
    return x


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
    if not isinstance(size, int) or not is_single:
        return None
    if not 0 < size <= (_MOST_POWER_FRAMES if _is_power(size) else _MOST_FRAMES):
        return None
    half = size // 2 + 1
    matrix = Transform(size, np.ones(size), half, -1, True).matrix()
    waves = matrix.reshape(size, half, 2).transpose(2, 1, 0).reshape(2 * half, 1, size)
    rows = g.op.UnsqueezeAnyOpset(x, int_vector([1]))
    found = g.op.Conv(rows, g.op.Mul(window, const(waves, TensorProto.FLOAT)), strides=[hop])
    parts = g.op.Reshape(found, int_vector([0, 2, half, -1]))
    return g.op.Transpose(parts, perm=[0, 2, 3, 1])


def _is_power(size: int) -> bool:
    """Whether a number is a power of 2."""
    return size & (size - 1) == 0
