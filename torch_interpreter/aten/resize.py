"""Interpolation, padding, grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import aten, curried
from ..writing.symbols import (
    Operand,
    Size,
    SymScalar,
    dim_of,
    first_integers,
    int_vector,
    shape_tensor,
    vector1d,
)
from .operands import BOOL, FLOAT, INT64, cast, const, integers
from .reduce import reduce
from .view import MAX_INT

# interpolation -> the weight of a point at some distance
Window = Callable[[GraphWriter, str], str]
_COORDINATES = {True: "align_corners", False: "half_pixel"}


def _resize(
    g: GraphWriter,
    x: str,
    size: Sequence[Size] | None,
    scales: Sequence[float | None] | None,
    mode: str,
    coordinates: str,
    **attributes: Any,
) -> str:
    """Resizes to a size, or with scales, since torch places the points with scales if given."""
    head = [dim_of(g, x, 0), dim_of(g, x, 1)]
    attributes |= {"mode": mode, "coordinate_transformation_mode": coordinates}
    known = [s for s in scales or () if s is not None]
    if scales is not None and len(known) == len(scales):
        return _resize_by(g, x, known, attributes)
    if size is None:
        raise ValueError("an interpolation needs a size or scales")
    sizes = shape_tensor(g, [*head, *size])
    return g.op.Resize(x, None, None, sizes, **attributes)


def _resize_by(g: GraphWriter, x: str, scales: Sequence[float], attributes: dict[str, Any]) -> str:
    """Resizes with scales: torch rounds the size in float64, Resize in float32.

    The excess of a dynamic dimension is cut.
    """
    sizes = [dim_of(g, x, axis + 2) for axis in range(len(scales))]
    pairs = list(zip(sizes, scales, strict=True))
    factors = [_float32_scale(n, s) for n, s in pairs]
    if None in factors:
        head = [dim_of(g, x, 0), dim_of(g, x, 1)]
        target = shape_tensor(g, [*head, *(_scaled(g, n, s) for n, s in pairs)])
        return g.op.Resize(x, None, None, target, **attributes)
    resized = g.op.Resize(x, None, np.array([1, 1, *factors], dtype=np.float32), **attributes)
    for axis, (n, scale) in enumerate(pairs, 2):
        if isinstance(n, str) and not _is_short(scale):
            limits = int_vector([0]), vector1d(g, _scaled(g, n, scale)), int_vector([axis])
            resized = g.op.Slice(resized, *limits)
    return resized


def _is_short(scale: float) -> bool:
    """Whether the product of any size and this number is the same in float32 and float64."""
    return float(scale * 1024).is_integer()


def _float32_scale(size: Size, scale: float) -> np.float32 | None:
    """A float32 scale with the size torch gives, None if the size says as much as the scale."""
    found = np.float32(scale)
    if isinstance(size, str) or _gives(found, size, scale):
        return found
    if np.float32(int(size * scale) / size) == found:
        return None
    below, above = (np.nextafter(found, np.float32(side)) for side in (-np.inf, np.inf))
    return next((c for c in (below, above) if _gives(c, size, scale)), None)


def _gives(candidate: np.float32, size: int, scale: float) -> bool:
    """Whether the size computed in float32 and in float64 is the one of torch."""
    return int(np.float32(size) * candidate) == int(size * float(candidate)) == int(size * scale)


def _scaled(g: GraphWriter, size: Size, scale: float) -> Size:
    """The size torch computes with a scale, in float64."""
    if not isinstance(size, str):
        return int(size * scale)
    wide = g.op.Mul(g.op.Cast(size, to=TensorProto.DOUBLE), const([scale], TensorProto.DOUBLE))
    return SymScalar(g.op.Cast(g.op.Floor(wide), to=INT64))


@curried
def _nearest(
    n: int, g: GraphWriter, x: str, output_size: Sequence[Size] | None, *scales: Any, **_: Any
) -> str:
    flat = _flat_scales(scales, n)
    options = {"nearest_mode": "floor"}
    return _resize(g, x, output_size, flat, "nearest", "asymmetric", **options)


def _flat_scales(scales: Sequence[Any], n: int) -> list[float | None] | None:
    """The scales as a list; the overload *vec* has a list, the others a number per dimension."""
    if len(scales) == 1 and isinstance(scales[0], list | tuple):
        return list(scales[0])
    return list(scales[:n]) if len(scales) >= n else None


@curried
def _linear(
    n: int,
    mode: str,
    options: dict[str, Any],
    g: GraphWriter,
    x: str,
    output_size: Sequence[Size] | None,
    align_corners: bool,
    *scales: Any,
    **_: Any,
) -> str:
    # with align_corners the scales only set the size
    flat = None if align_corners and output_size else _flat_scales(scales, n)
    coordinates = _COORDINATES[bool(align_corners)]
    return _resize(g, x, output_size, flat, mode, coordinates, **options)


def _triangle(g: GraphWriter, distance: str) -> str:
    return g.op.Relu(g.op.Sub(const(1, FLOAT), distance))


def _cubic(g: GraphWriter, distance: str) -> str:
    """The cubic filter of coefficient -1/2: two polynomials, below 1 and below 2."""

    def polynomial(*coefficients: float) -> Tensor:
        result: Tensor = const(coefficients[0], FLOAT)
        for c in coefficients[1:]:
            result = g.op.Add(g.op.Mul(result, distance), const(c, FLOAT))
        return result

    near, far = polynomial(1.5, -2.5, 0, 1), polynomial(-0.5, 2.5, -4, 2)
    far = g.op.Where(g.op.Less(distance, const(2, FLOAT)), far, const(0, FLOAT))
    return g.op.Where(g.op.Less(distance, const(1, FLOAT)), near, far)


def _filter_matrix(g: GraphWriter, before: Size, after: Size, window: Window) -> str:
    """The matrix of the weights of the source points in every point of a resized axis.

    Torch places points by the ratio of the corners, and centers them in the pixels.
    """
    one, half = const([1], FLOAT), const([0.5], FLOAT)
    sizes = [g.op.Cast(vector1d(g, n), to=FLOAT) for n in (before, after)]
    gaps = [g.op.Sub(n, one) for n in sizes]
    ratio = g.op.Div(g.op.Mul(gaps[0], g.op.Min(gaps[1], one)), g.op.Max(gaps[1], one))
    points, centers = (
        g.op.Add(g.op.Cast(first_integers(g, n), to=FLOAT), half) for n in (before, after)
    )
    column = g.op.UnsqueezeAnyOpset(g.op.Mul(centers, ratio), int_vector([1]))
    distance = g.op.Abs(g.op.Div(g.op.Sub(points, column), g.op.Max(ratio, one)))
    weights = window(g, distance)
    return g.op.Div(weights, reduce(g, "ReduceSum", weights, 1, True))


@curried
def _antialiased(
    resize: Callable[..., str],
    window: Window,
    g: GraphWriter,
    x: str,
    output_size: Sequence[Size] | None,
    align_corners: bool,
    *scales: Any,
) -> str:
    """A converter of antialiased resizing with aligned corners, as two products of matrices.

    Resize does not average as torch does in that case.
    """
    if not align_corners:
        return resize(g, x, output_size, align_corners, *scales)
    before = [dim_of(g, x, axis) for axis in (2, 3)]
    if output_size is None:
        factors = [s or 1.0 for s in _flat_scales(scales, 2) or ()]
        output_size = [_scaled(g, n, s) for n, s in zip(before, factors, strict=True)]
    rows, columns = (
        cast(g, _filter_matrix(g, n, m, window), g.get_type(x))
        for n, m in zip(before, output_size, strict=True)
    )
    return g.op.MatMul(g.op.MatMul(rows, x), g.op.Transpose(columns, perm=[1, 0]))


for _n in (1, 2, 3):
    aten(f"aten.upsample_nearest{_n}d.default", f"aten.upsample_nearest{_n}d.vec")(_nearest(_n))
for _n, _name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    aten(f"aten.upsample_{_name}.default", f"aten.upsample_{_name}.vec")(_linear(_n, "linear", {}))
aten("aten.upsample_bicubic2d.default", "aten.upsample_bicubic2d.vec")(
    _linear(2, "cubic", {"cubic_coeff_a": -0.75})
)
# an antialiased filter is normalized over the image, and torch uses another cubic filter
_ANTIALIAS = {"antialias": 1, "exclude_outside": 1}
aten("aten._upsample_bilinear2d_aa.default", "aten._upsample_bilinear2d_aa.vec")(
    _antialiased(_linear(2, "linear", _ANTIALIAS), _triangle)
)
aten("aten._upsample_bicubic2d_aa.default", "aten._upsample_bicubic2d_aa.vec")(
    _antialiased(_linear(2, "cubic", _ANTIALIAS | {"cubic_coeff_a": -0.5}), _cubic)
)


def _onnx_pads(pad: Sequence[Size], rank: int) -> list[Size]:
    """Pads in the order of ONNX: torch lists (begin, end) from the last dimension."""
    begins: list[Size] = [0] * rank
    ends: list[Size] = [0] * rank
    for i in range(len(pad) // 2):
        begins[rank - 1 - i] = pad[2 * i]
        ends[rank - 1 - i] = pad[2 * i + 1]
    return [*begins, *ends]


def pad_tensor(g: GraphWriter, x: str, pad: Sequence[Size], mode: str, value: Operand = 0) -> str:
    """Pads; a negative number removes values."""
    itype = g.get_type(x)
    if not any(isinstance(p, str) for p in pad) and not any(pad):
        return x
    known = integers(pad)
    if mode != "constant" and known is not None and min(known) < 0:
        # the values removed count for the values at the ends
        padded = pad_tensor(g, x, [max(p, 0) for p in known], mode)
        return pad_tensor(g, padded, [min(p, 0) for p in known], "constant")
    pads = shape_tensor(g, _onnx_pads(pad, g.get_rank(x)))
    if itype == BOOL:
        padded = g.op.Pad(
            cast(g, x, TensorProto.INT32), pads, const(int(value), TensorProto.INT32), mode=mode
        )
        return g.op.Cast(padded, to=BOOL)
    filled = [const(value, itype)] if mode == "constant" else []
    return g.op.Pad(x, pads, *filled, mode=mode)


@aten("aten.constant_pad_nd.default")
def constant_pad_nd(g: GraphWriter, x: str, pad: Sequence[Size], value: Operand = 0) -> str:
    """Pad with a constant."""
    return pad_tensor(g, x, pad, "constant", value)


@aten("aten.pad.default")
def pad(
    g: GraphWriter,
    x: str,
    pad: Sequence[Size],
    mode: str = "constant",
    value: Operand | None = None,
) -> str:
    """Pads; torch's replicate is edge, its circular is wrap (opset 19)."""
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode == "circular" and (g.main_opset < 19 or min(integers(pad) or [0]) < 0):
        return _circular_pad(g, x, pad)
    return pad_tensor(g, x, pad, names[mode], 0 if value is None else value)


def _circular_pad(g: GraphWriter, x: str, pad: Sequence[Size]) -> str:
    """Copies the end before the beginning and the beginning after the end.

    A negative number removes values first.
    """
    known = integers(pad)
    if known is None:
        raise ValueError("a circular padding with these numbers needs opset 19")
    rank = g.get_rank(x)
    for i in range(len(known) // 2):
        axis, (before, after) = rank - 1 - i, known[2 * i : 2 * i + 2]
        axes = int_vector([axis])
        if before < 0 or after < 0:
            last = after if after < 0 else MAX_INT
            x = g.op.Slice(x, int_vector([max(-before, 0)]), int_vector([last]), axes)
        pieces = [x]
        if before > 0:
            limits = int_vector([-before]), int_vector([MAX_INT])
            pieces.insert(0, g.op.Slice(x, *limits, axes))
        if after > 0:
            pieces.append(g.op.Slice(x, int_vector([0]), int_vector([after]), axes))
        if len(pieces) > 1:
            x = g.op.Concat(*pieces, axis=axis)
    return x


@curried
def _padding(mode: str, g: GraphWriter, x: str, padding: Sequence[Size]) -> str:
    return pad_tensor(g, x, padding, mode)


for _n in (1, 2, 3):
    aten(f"aten.reflection_pad{_n}d.default")(_padding("reflect"))
    aten(f"aten.replication_pad{_n}d.default")(_padding("edge"))


@aten("aten.grid_sampler.default", "aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sampler(
    g: GraphWriter,
    x: str,
    grid: str,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> str:
    """GridSample; the names of the modes changed with opset 20."""
    recent = g.main_opset >= 20
    modes = ("linear", "nearest", "cubic") if recent else ("bilinear", "nearest", "bicubic")
    return g.op.GridSample(
        x,
        grid,
        mode=modes[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
        align_corners=int(align_corners),
    )
