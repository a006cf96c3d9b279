"""Fourier transforms and windows."""

from __future__ import annotations

from ...dims import Dim, add, floordiv, mul, normalize_axis, sub
from ...facts.facts import ResultFacts
from ..common import FLOAT, content, refuses_negative
from ..context import ShapeContext
from ..shipped import shipped_function


def _scalar(ctx: ShapeContext, i: int) -> Dim | None:
    """Content of an integer scalar, None if it is unknown."""
    values = content(ctx, i) if ctx.has_input(i) else None
    return values[0] if values is not None and len(values) == 1 else None


@shipped_function("DFT")
@refuses_negative
def dft(ctx: ShapeContext) -> ResultFacts | None:
    """DFT: the axis is an attribute in opset 17, an input since opset 20."""
    facts = ctx.facts(0)
    shape = facts.shape
    if shape is None:
        return ResultFacts(facts.type, None, facts.rank)
    axis: Dim | None = ctx.attr("axis", 1) if ctx.opset < 20 else -2
    if ctx.opset >= 20 and ctx.has_input(2):
        axis = _scalar(ctx, 2)
    position = None if axis is None else normalize_axis(axis, len(shape))
    if position is None:
        return ResultFacts(facts.type, None, len(shape))
    onesided, inverse = bool(ctx.attr("onesided", 0)), bool(ctx.attr("inverse", 0))
    size: Dim | None = shape[position]
    if ctx.has_input(1):
        size = _scalar(ctx, 1)
    elif onesided and inverse:
        size = mul(2, sub(shape[position], 1))
    if size is None:
        size = ctx.new_dim("dft")
    elif onesided and not inverse:
        size = add(floordiv(size, 2), 1)
    dims = list(shape)
    dims[position] = size
    dims[-1] = 1 if onesided and inverse else 2
    return ResultFacts(facts.type, tuple(dims))


@shipped_function("STFT")
@refuses_negative
def stft(ctx: ShapeContext) -> ResultFacts | None:
    """STFT: `(batch, frames, bins, 2)`."""
    facts = ctx.facts(0)
    shape = facts.shape
    if shape is None:
        return ResultFacts(facts.type, None, 4)
    if len(shape) < 2:
        return None
    step, window = _scalar(ctx, 1), ctx.shape(2)
    frame: Dim | None
    if ctx.has_input(3):
        frame = _scalar(ctx, 3)
    elif ctx.has_input(2):
        frame = window[0] if window else None
    else:
        frame = shape[1]
    bins: Dim = ctx.new_dim("bins") if frame is None else frame
    if frame is not None and ctx.attr("onesided", 1):
        bins = add(floordiv(frame, 2), 1)
    if frame is None or step is None or step == 0:
        frames: Dim = ctx.new_dim("frames")
    else:
        frames = add(floordiv(sub(shape[1], frame), step), 1)
    return ResultFacts(facts.type, (shape[0], frames, bins, 2))


@shipped_function("BlackmanWindow", "HammingWindow", "HannWindow")
@refuses_negative
def window(ctx: ShapeContext) -> ResultFacts:
    """Windows whose size is the input."""
    size = _scalar(ctx, 0)
    elem_type = ctx.attr("output_datatype", FLOAT)
    return ResultFacts(elem_type, (ctx.new_dim("window") if size is None else size,))


@shipped_function("MelWeightMatrix")
@refuses_negative
def mel_weight_matrix(ctx: ShapeContext) -> ResultFacts:
    """MelWeightMatrix: `(dft_length // 2 + 1, num_mel_bins)`."""
    bins, size = _scalar(ctx, 0), _scalar(ctx, 1)
    rows: Dim = ctx.new_dim("mel") if size is None else add(floordiv(size, 2), 1)
    columns: Dim = ctx.new_dim("bins") if bins is None else bins
    return ResultFacts(ctx.attr("output_datatype", FLOAT), (rows, columns))
