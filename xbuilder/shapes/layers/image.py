"""Images: grids, crops, columns, decoding."""

from __future__ import annotations

from ...dims import Shape, normalize_axes, prod
from ...facts.facts import ResultFacts
from ..common import UINT8, content, length, merge_dim, new_shape, refuses_negative
from ..context import ShapeContext
from ..moving.rearranging import exact_quotient
from ..shipped import shipped_function


@shipped_function("GridSample")
def grid_sample(ctx: ShapeContext) -> ResultFacts | None:
    """GridSample: channels of the image, positions of the grid."""
    shape, grid = ctx.shape(0), ctx.shape(1)
    elem_type = ctx.type(0)
    if shape is None or grid is None:
        rank = ctx.rank(0)
        return ResultFacts(elem_type, None, ctx.rank(1) if rank is None else rank)
    if len(shape) != len(grid) or len(shape) < 3:
        return None
    batch = merge_dim(ctx, shape[0], grid[0])
    return None if batch is None else ResultFacts(elem_type, (batch, shape[1], *grid[1:-1]))


@shipped_function("AffineGrid")
@refuses_negative
def affine_grid(ctx: ShapeContext) -> ResultFacts:
    """AffineGrid: `(N, H, W, 2)` or `(N, D, H, W, 3)`."""
    size = content(ctx, 1)
    if size is None or len(size) < 3:
        count = length(ctx, 1)
        if count is None or count < 3:
            return ResultFacts(ctx.type(0))
        return ResultFacts(ctx.type(0), (*new_shape(ctx, count - 1), count - 2))
    return ResultFacts(ctx.type(0), (size[0], *size[2:], len(size) - 2))


@shipped_function("CenterCropPad")
@refuses_negative
def center_crop_pad(ctx: ShapeContext) -> ResultFacts | None:
    """CenterCropPad: the second input gives the dimensions."""
    facts = ctx.facts(0)
    if facts.shape is None:
        return ResultFacts(facts.type, None, facts.rank)
    axes = normalize_axes(ctx.attr("axes") or range(len(facts.shape)), len(facts.shape))
    sizes = content(ctx, 1)
    if axes is None or (sizes is not None and len(sizes) != len(axes)):
        return None
    dims = list(facts.shape)
    for i, axis in enumerate(axes):
        dims[axis] = ctx.new_dim("crop") if sizes is None else sizes[i]
    return ResultFacts(facts.type, tuple(dims))


@shipped_function("Col2Im")
@refuses_negative
def col2im(ctx: ShapeContext) -> ResultFacts | None:
    """Col2Im: `(N, C, image dimensions)` out of `(N, C * product of the block, L)`."""
    facts = ctx.facts(0)
    image, block = content(ctx, 1), content(ctx, 2)
    count = len(image) if image is not None else length(ctx, 1)
    if count is None:
        return ResultFacts(facts.type)
    spatial: Shape = new_shape(ctx, count) if image is None else image
    if facts.shape is None:
        return ResultFacts(facts.type, (ctx.new_dim("batch"), ctx.new_dim("channels"), *spatial))
    if len(facts.shape) != 3:
        return None
    channels = None if block is None else exact_quotient([facts.shape[1]], [prod(block)])
    if channels is None:
        channels = ctx.new_dim("channels")
    return ResultFacts(facts.type, (facts.shape[0], channels, *spatial))


@shipped_function("ImageDecoder")
def image_decoder(ctx: ShapeContext) -> ResultFacts:
    """ImageDecoder: `(H, W, channels)`."""
    return ResultFacts(UINT8, new_shape(ctx, 3, "image"))
