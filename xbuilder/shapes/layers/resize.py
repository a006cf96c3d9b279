"""Resize and Upsample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dims import Dim, Shape, floordiv, is_static, mul, normalize_axes
from ...facts.facts import ResultFacts
from ..common import content, float_content, new_shape, refuses_negative
from ..context import ShapeContext
from ..shipped import shipped_function


def scaled_dim(dim: Dim, scale: float) -> Dim | None:
    """`floor(dim * scale)`, None when rounding makes it uncertain.

    :param dim: dimension of the input
    :param scale: a float32 scale
    :return: exact for symbols when the scale or its inverse is an integer power of two

    >>> scaled_dim("a", 2.0)
    '2*a'
    >>> scaled_dim("a", 0.5)
    'a//2'
    """
    if scale <= 0 or not np.isfinite(scale):
        return None
    if scale == int(scale):
        return mul(dim, int(scale))
    if isinstance(dim, int):
        single = int(np.floor(np.float32(scale) * np.float32(dim)))
        return single if single == int(np.floor(float(scale) * dim)) else None
    inverse = 1.0 / scale
    # only powers of two are exact in floating point
    if inverse == int(inverse) and int(inverse) & (int(inverse) - 1) == 0:
        return floordiv(dim, int(inverse))
    return None


def _scaled_shape(
    ctx: ShapeContext, shape: Shape, axes: Sequence[int], scales: np.ndarray
) -> Shape:
    dims = list(shape)
    for axis, scale in zip(axes, scales, strict=True):
        new = scaled_dim(dims[axis], float(scale))
        dims[axis] = ctx.new_dim("resize") if new is None else new
    return tuple(dims)


@shipped_function("Upsample")
@refuses_negative
def upsample(ctx: ShapeContext) -> ResultFacts | None:
    """Upsample: scales are attributes in opsets 1 and 7, an input in opset 9."""
    facts = ctx.facts(0)
    if facts.shape is None:
        return ResultFacts(facts.type, None, facts.rank)
    rank = len(facts.shape)
    scales: np.ndarray | None
    if ctx.attr("height_scale") is not None:
        scales = np.array([1, 1, ctx.attr("height_scale"), ctx.attr("width_scale", 1)])
    elif ctx.attr("scales") is not None:
        scales = np.array(ctx.attr("scales"), dtype=np.float32)
    else:
        scales = float_content(ctx, 1)
    if scales is None:
        return ResultFacts(facts.type, new_shape(ctx, rank))
    if len(scales) != rank:
        return None
    return ResultFacts(facts.type, _scaled_shape(ctx, facts.shape, list(range(rank)), scales))


@shipped_function("Resize")
def resize_10(ctx: ShapeContext) -> ResultFacts | None:
    """Resize in opset 10 has scales only."""
    return upsample(ctx)


def _is_empty(ctx: ShapeContext, i: int) -> bool:
    """Whether an optional input is missing or an empty tensor."""
    if not ctx.has_input(i):
        return True
    return ctx.shape(i) == (0,)


@shipped_function("Resize", since=11)
@refuses_negative
def resize(ctx: ShapeContext) -> ResultFacts | None:
    """Resize: either scales or sizes; opset 18 adds axes and the policy on the aspect ratio."""
    facts = ctx.facts(0)
    shape = facts.shape
    if shape is None:
        return ResultFacts(facts.type, None, facts.rank)
    given = ctx.attr("axes")
    axes = normalize_axes(given if given is not None else range(len(shape)), len(shape))
    if axes is None:
        return None
    if not _is_empty(ctx, 3):
        sizes = content(ctx, 3)
        policy = ctx.attr("keep_aspect_ratio_policy", "stretch")
        if sizes is not None and len(sizes) != len(axes):
            return None
        return ResultFacts(facts.type, _sized_shape(ctx, shape, axes, sizes, policy))
    scales = float_content(ctx, 2)
    cropped = ctx.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    if scales is None or cropped:
        unknown = tuple(ctx.new_dim("resize") if i in axes else d for i, d in enumerate(shape))
        return ResultFacts(facts.type, unknown)
    if len(scales) != len(axes):
        return None
    return ResultFacts(facts.type, _scaled_shape(ctx, shape, axes, scales))


def _sized_shape(
    ctx: ShapeContext, shape: Shape, axes: Sequence[int], sizes: Shape | None, policy: str
) -> Shape:
    """Shape once the axes have the requested sizes."""
    dims = list(shape)
    if sizes is not None and policy != "stretch":
        sizes = _keep_ratio(tuple(shape[axis] for axis in axes), sizes, policy)
    for i, axis in enumerate(axes):
        dims[axis] = ctx.new_dim("resize") if sizes is None else sizes[i]
    return tuple(dims)


def _keep_ratio(dims: Shape, sizes: Shape, policy: str) -> Shape | None:
    """Sizes that keep the aspect ratio, None when they depend on symbols or on rounding."""
    if not is_static(dims) or not is_static(sizes) or min((*dims, *sizes)) <= 0:
        return None
    ratios = [np.float32(size) / np.float32(dim) for size, dim in zip(sizes, dims, strict=True)]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    result = []
    for dim in dims:
        exact = float(ratio) * dim
        to_half = abs(exact - np.floor(exact) - 0.5)
        if 0 < to_half < 1e-3:
            return None
        result.append(int(np.floor(exact + 0.5)))
    return tuple(result)
