"""Fourier transforms: products if the length is known, else DFT; both have our complex numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..writing.complex_names import Complex
from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import UNKNOWN_OUTPUTS, Converter, OutputFacts, aten, aten_table
from ..writing.symbols import Size, SymScalar, dim_of, int_vector, shape_tensor, vector1d
from .complex_tensors import as_complex, conj, part
from .fourier_products import Transform, as_products, first_numbers, frames_as_product
from .operands import INT64, axis_of, cast, const
from .view import MAX_INT

#: norm of torch -> (transform, inverse): power of the number of elements it is divided by
_POWERS = {None: (0.0, 1.0), "backward": (0.0, 1.0), "ortho": (0.5, 0.5), "forward": (1.0, 0.0)}
#: the same for the number that decompositions use instead
_NORMALIZATIONS = (0.0, 0.5, 1.0)


def _dft(
    g: GraphWriter, x: str, axis: int, inverse: bool = False, power: float = 0.0, **kwargs: int
) -> str:
    """One transform, divided by the number of elements raised to *power*.

    onnxruntime divides an inverse by a number of 32 bits: numbers of 64 bits take the conjugate of
    the transform of the conjugates.
    """
    turned = inverse and g.get_type(x) == TensorProto.DOUBLE
    y = conj(g, x) if turned else x
    y = g.op.DFTAnyOpset(y, None, const(axis, INT64), inverse=int(inverse and not turned), **kwargs)
    if turned:
        y = conj(g, y)
    # the operator already divides the inverse
    return _divided(g, y, dim_of(g, x, axis), power - (inverse and not turned))


def _divided(g: GraphWriter, y: str, size: Size, power: float) -> str:
    """Numbers divided by a size raised to *power*."""
    if not power:
        return y
    itype = g.get_type(y)
    if isinstance(size, int):
        return g.op.Mul(y, const(float(size) ** -power, itype))
    return g.op.Mul(y, g.op.Pow(cast(g, size, itype), const(-power, itype)))


def _halved(g: GraphWriter, n: Size, more: int) -> Size:
    """Half of n + *more*, rounded down."""
    if isinstance(n, int):
        return (n + more) // 2
    return SymScalar(g.op.Div(g.op.Add(n, int_vector([more])), int_vector([2])))


def _transformed(
    g: GraphWriter,
    x: str,
    axis: int,
    n: Size | None,
    power: float,
    *,
    inverse: bool = False,
    is_real: bool = False,
    halved: bool = False,
) -> str:
    """The complex numbers of one transform, divided by its length raised to *power*.

    :param g: builder
    :param x: numbers
    :param axis: not negative
    :param n: the length of the transform, None for the one of the axis
    :param power: exponent of the length
    :param inverse: inverse transform
    :param is_real: *x* has no dimension for the parts of the numbers
    :param halved: gives the first half only; the rest is its conjugate
    """
    held = dim_of(g, x, axis)
    size = held if n is None else n
    if isinstance(size, int):
        read = min(held, size) if isinstance(held, int) else size
        weights = np.full(read, max(size, 1) ** -power)
        wanted = size // 2 + 1 if halved else size
        t = Transform(size, weights, wanted, 1 if inverse else -1, reads_real=is_real)
        if (y := as_products(g, x, axis, t)) is not None:
            return y
    x = first_numbers(g, x, axis, n)
    if is_real:
        itype = g.get_type(x)
        x = str(as_complex(g, x, itype)) if inverse else _one_part(g, x)
    return _dft(g, x, axis, inverse, power, **({"onesided": 1} if halved else {}))


def _one_part(g: GraphWriter, x: str) -> str:
    """Real numbers with one part, as DFT reads them."""
    return g.op.UnsqueezeAnyOpset(x, int_vector([-1]))


def _from_half(g: GraphWriter, x: str, axis: int, n: Size | None, power: float) -> str:
    """The real numbers of which *x* is the first half of the transform."""
    held = dim_of(g, x, axis)
    size = 2 * (held - 1) if n is None and isinstance(held, int) else n
    half = None if n is None else _halved(g, n, 2)
    if isinstance(size, int):
        # each number stands for itself and for its conjugate
        weights = np.full(size // 2 + 1, 2 * float(max(size, 1)) ** -power)
        weights[[0, -1] if size % 2 == 0 else 0] /= 2
        read = min(held, len(weights)) if isinstance(held, int) else len(weights)
        t = Transform(size, weights[:read], size, 1, gives_real=True)
        if (y := as_products(g, x, axis, t)) is not None:
            return y
    x = first_numbers(g, x, axis, half)
    # the last one of an even number of elements has no conjugate
    start = -2 if n is None else _halved(g, n, -1)
    bounds = (vector1d(g, v) for v in (start, 0, axis, -1))
    whole = g.op.Concat(x, conj(g, g.op.Slice(x, *bounds)), axis=axis)
    return part(g, _dft(g, whole, axis, inverse=True, power=power), 0)


def _axes(dim: int | Sequence[int] | None, rank: int, sizes: Sequence[Size] | None) -> list[int]:
    """The axes of a transform: the last ones if they are not given."""
    if dim is None:
        return list(range(rank))[-len(sizes) if sizes is not None else 0 :]
    return [axis_of(d, rank) for d in ([dim] if isinstance(dim, int) else dim)]


def _sizes(n: Size | Sequence[Size] | None, count: int) -> list[Size | None]:
    """The number of elements along each axis, None where it does not change."""
    listed = [n] * count if n is None or isinstance(n, Size) else list(n)
    return [None if s is None or s == -1 else s for s in listed]


def _along(row: tuple[str, Any]) -> Converter:
    """A converter of a function of ``torch.fft``, from its transform and its default axes."""
    kind, default = row
    inverse = kind in ("complex inverse", "from half")

    def convert(
        g: GraphWriter,
        x: str,
        n: Size | Sequence[Size] | None = None,
        dim: int | Sequence[int] | None = default,
        norm: str | None = None,
        *,
        expected: OutputFacts = UNKNOWN_OUTPUTS,
    ) -> str:
        power = _POWERS[norm][inverse]
        is_real = not isinstance(x, Complex)
        axes = _axes(dim, g.get_rank(x) - (not is_real), n if isinstance(n, list | tuple) else None)
        pairs = list(zip(axes, _sizes(n, len(axes)), strict=True))
        y = cast(g, x, expected.type)
        if kind == "half":
            y = _transformed(g, y, *pairs.pop(), power, is_real=True, halved=True)
            is_real = False
        last = pairs.pop() if kind == "from half" else None
        for axis, size in pairs:
            y = _transformed(g, y, axis, size, power, inverse=inverse, is_real=is_real)
            is_real = False
        if last is None:
            return y
        y = str(as_complex(g, y, expected.type)) if is_real else y
        return _from_half(g, y, *last, power)

    return convert


_ROWS = {
    f"fft_{prefix}{name}{suffix}": (kind, default)
    for prefix, name, kind in (
        ("", "fft", "complex"),
        ("i", "fft", "complex inverse"),
        ("r", "fft", "half"),
        ("ir", "fft", "from half"),
    )
    for suffix, default in (("", -1), ("2", (-2, -1)), ("n", None))
}
aten_table(_along, _ROWS, "complex.aten.{}.default")

#: the division of the inverse of a transform
_OTHER_NORMS = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _hermitian(row: tuple[str, bool]) -> Converter:
    """A converter of hfft, irfft of the conjugates, or of ihfft, the conjugates of rfft."""
    name, reads_conjugates = row
    transform, default = _along(_ROWS[name]), _ROWS[name][1]

    def convert(
        g: GraphWriter,
        x: str,
        n: Size | Sequence[Size] | None = None,
        dim: int | Sequence[int] | None = default,
        norm: str | None = None,
        *,
        expected: OutputFacts = UNKNOWN_OUTPUTS,
    ) -> str:
        if reads_conjugates and isinstance(x, Complex):
            x = Complex(conj(g, x))
        y: str = transform(g, x, n, dim, _OTHER_NORMS[norm], expected=expected)
        return y if reads_conjugates else conj(g, y)

    return convert


_HERMITIAN = {
    f"fft_{name}{suffix}": (f"fft_{same}{suffix}", name == "hfft")
    for name, same in (("hfft", "irfft"), ("ihfft", "rfft"))
    for suffix in ("", "2", "n")
}
aten_table(_hermitian, _HERMITIAN, "complex.aten.{}.default")
# irfft and hfft return real numbers: a call that reads real numbers has no complex tensor
aten_table(_along, {k: v for k, v in _ROWS.items() if "irfft" in k}, "aten.{}.default")
aten_table(_hermitian, {k: v for k, v in _HERMITIAN.items() if "_hfft" in k}, "aten.{}.default")


@aten("complex.aten._fft_c2c.default")
def c2c(g: GraphWriter, x: str, dim: Sequence[int], normalization: int, forward: bool) -> str:
    """Complex numbers to complex ones."""
    power = _NORMALIZATIONS[normalization]
    for axis in _axes(dim, g.get_rank(x) - 1, None):
        x = _transformed(g, x, axis, None, power, inverse=not forward)
    return x


@aten("complex.aten._fft_r2c.default")
def r2c(
    g: GraphWriter,
    x: str,
    dim: Sequence[int],
    normalization: int,
    onesided: bool,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Real numbers to complex ones, the first half along the last axis if *onesided*."""
    *others, last = _axes(dim, g.get_rank(x), None)
    y, power = cast(g, x, expected.type), _NORMALIZATIONS[normalization]
    y = _transformed(g, y, last, None, power, is_real=True, halved=onesided)
    for axis in others:
        y = _transformed(g, y, axis, None, power)
    return y


@aten("complex.torch_interpreter.spectrum.default")
def spectrum(g: GraphWriter, x: str, window: str, hop: int) -> str:
    """The transforms of the frames, which become the last dimension."""
    if (product := frames_as_product(g, x, window, hop)) is not None:
        return product
    size = g.get_shape(window)[0]
    signal = g.op.UnsqueezeAnyOpset(x, int_vector([-1]))
    found = g.op.STFT(signal, const(hop, INT64), window, const(size, INT64), onesided=1)
    return g.op.Transpose(found, perm=[0, 2, 1, 3])


@aten("complex.torch_interpreter.signal.default")
def signal(
    g: GraphWriter, x: str, window: str, hop: int, start: int, length: Size, is_padded: bool
) -> str:
    """The frames of each row are added where they overlap, as their weights are."""
    size, frames = int(g.get_shape(window)[0]), dim_of(g, x, 2)
    columns = g.op.UnsqueezeAnyOpset(window, int_vector([-1]))
    squares = g.op.Expand(g.op.Mul(columns, columns), shape_tensor(g, [1, size, frames]))
    total = _affine(g, frames, hop, size - hop)
    image, block = shape_tensor(g, [1, total]), int_vector([1, size])
    added, weights = (
        g.op.Col2Im(y, image, block, strides=[1, hop])
        for y in (g.op.Mul(_from_half(g, x, 1, size, 1.0), columns), squares)
    )
    end = vector1d(g, _affine(g, length, 1, start))
    found = g.op.Slice(g.op.Div(added, weights), int_vector([start]), end, int_vector([3]))
    found = g.op.SqueezeAnyOpset(found, int_vector([1, 2]))
    if not is_padded:
        return found
    more = g.op.Sub(vector1d(g, length), vector1d(g, dim_of(g, found, 1)))
    return g.op.Pad(found, shape_tensor(g, [0, 0, 0, SymScalar(more)]))


def _affine(g: GraphWriter, n: Size, factor: int, added: int) -> Size:
    """n * factor + added."""
    if isinstance(n, int):
        return n * factor + added
    scaled = n if factor == 1 else g.op.Mul(n, int_vector([factor]))
    return SymScalar(g.op.Add(scaled, int_vector([added])))


@aten("complex.aten._fft_c2r.default")
def c2r(g: GraphWriter, x: str, dim: Sequence[int], normalization: int, last_dim_size: Size) -> str:
    """The first half of a transform to real numbers."""
    *others, last = _axes(dim, g.get_rank(x) - 1, None)
    power = _NORMALIZATIONS[normalization]
    for axis in others:
        x = _transformed(g, x, axis, None, power, inverse=True)
    return _from_half(g, x, last, last_dim_size, power)


def _rolled(odd: int) -> Converter:
    """A converter that exchanges both halves of an axis; *odd* says if the first is the longer."""

    def convert(g: GraphWriter, x: str, dim: int | Sequence[int] | None = None) -> str:
        for axis in _axes(dim, g.get_rank(x) - 1, None):
            size, axes = dim_of(g, x, axis), int_vector([axis])
            middle: Tensor = (
                int_vector([(size + odd) // 2])
                if isinstance(size, int)
                else g.op.Div(g.op.Add(size, int_vector([odd])), int_vector([2]))
            )
            last = g.op.Slice(x, middle, int_vector([MAX_INT]), axes)
            x = g.op.Concat(last, g.op.Slice(x, int_vector([0]), middle, axes), axis=axis)
        return x

    return convert


aten_table(_rolled, {"fftshift": 1, "ifftshift": 0}, "complex.aten.fft_{}.default")
