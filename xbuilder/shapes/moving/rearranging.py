"""Operators that move or repeat elements: Transpose, Squeeze, Expand, Tile..."""

from __future__ import annotations

from ...dims import Dim, Shape, exact_div, floordiv, mul, normalize_axes, prod
from ...facts.facts import MAX_TRACKED, ResultFacts, Value
from .. import values as V
from ..common import (
    argument,
    broadcast_shape,
    content,
    length,
    merge_dim,
    new_shape,
    refuses_negative,
)
from ..context import ShapeContext
from ..shipped import shipped_function


@shipped_function("Transpose")
def transpose(ctx: ShapeContext) -> ResultFacts | None:
    """Transpose: dimensions follow `perm`, reversed by default."""
    facts = ctx.facts(0)
    shape = facts.shape
    perm = ctx.attr("perm")
    if shape is None:
        rank = facts.rank
        return ResultFacts(facts.type, None, len(perm) if rank is None and perm else rank)
    if perm is None:
        return ResultFacts(facts.type, shape[::-1], None, facts.value)
    if sorted(perm) != list(range(len(shape))):
        return None
    return ResultFacts(facts.type, tuple([shape[p] for p in perm]), None, facts.value)


@shipped_function("Squeeze")
def squeeze(ctx: ShapeContext) -> ResultFacts | None:
    """Squeeze: axes are an attribute before opset 13, an input after."""
    facts = ctx.facts(0)
    given, axes = argument(ctx, 1, "axes")
    shape = facts.shape
    if shape is None or (given and axes is None):
        rank, count = ctx.rank(0), len(axes) if axes is not None else length(ctx, 1)
        if not given or rank is None or count is None or count > rank:
            return ResultFacts(facts.type)
        return ResultFacts(facts.type, None, rank - count)
    if not given:
        if any(not isinstance(d, int) for d in shape):
            return ResultFacts(facts.type)
        new: Shape = tuple(d for d in shape if d != 1)
    else:
        positions = normalize_axes(axes or (), len(shape))
        if positions is None or any(merge_dim(ctx, 1, shape[i]) is None for i in positions):
            return None
        new = tuple(d for i, d in enumerate(shape) if i not in positions)
    return ResultFacts(facts.type, new, None, V.shaped(facts.value, new))


@shipped_function("Unsqueeze")
def unsqueeze(ctx: ShapeContext) -> ResultFacts | None:
    """Unsqueeze: axes count in the output."""
    facts = ctx.facts(0)
    _, axes = argument(ctx, 1, "axes")
    shape = facts.shape
    if shape is None or axes is None:
        rank, count = ctx.rank(0), len(axes) if axes is not None else length(ctx, 1)
        known = None if rank is None or count is None else rank + count
        return ResultFacts(facts.type, None, known)
    rank = len(shape) + len(axes)
    positions = normalize_axes(axes, rank)
    if positions is None:
        return None
    dims = iter(shape)
    new = tuple(1 if i in positions else next(dims) for i in range(rank))
    return ResultFacts(facts.type, new, None, V.shaped(facts.value, new))


def exact_quotient(numerator: list[Dim], denominator: list[Dim]) -> Dim | None:
    """Quotient of two products a valid model makes exact, with common factors cancelled.

    Cancelling is right even for factors that may be null, because the model is then not valid.

    >>> exact_quotient(["a", 6], [2, "a"])
    3
    """
    up, down = list(numerator), []
    for factor in denominator:
        if factor in up:
            up.remove(factor)
        else:
            down.append(factor)
    top, bottom = prod(up), prod(down)
    if bottom == 1:
        return top
    if bottom == 0:
        return None
    quotient = exact_div(top, bottom)
    return floordiv(top, bottom) if quotient is None else quotient


def block_count(dim: Dim, size: int) -> Dim:
    """Number of blocks of *size* elements (not null) in a dimension they divide.

    >>> block_count("a", 2)
    'a//2'
    """
    quotient = exact_div(dim, size)
    return floordiv(dim, size) if quotient is None else quotient


@shipped_function("Flatten")
def flatten(ctx: ShapeContext) -> ResultFacts | None:
    """Flatten: always two dimensions."""
    facts = ctx.facts(0)
    shape = facts.shape
    if shape is None:
        return ResultFacts(facts.type, None, 2)
    axis = ctx.attr("axis", 1)
    if axis < 0:
        axis += len(shape)
    if not 0 <= axis <= len(shape):
        return None
    return ResultFacts(facts.type, (prod(shape[:axis]), prod(shape[axis:])))


@shipped_function("Expand")
def expand(ctx: ShapeContext) -> ResultFacts | None:
    """Expand: numpy's broadcasting of the input with the content of the second one."""
    facts = ctx.facts(0)
    target = content(ctx, 1)
    shape = facts.shape
    if target is None or shape is None:
        return _expand_unknown(ctx, facts, target)
    if any(isinstance(d, int) and d < 0 for d in target):
        return None
    new = broadcast_shape(ctx, shape, target)
    if new is None:
        return None
    result = ResultFacts(facts.type, new)
    if facts.value is not None and len(new) <= 1:
        result.value = _expand_value(facts.value, new)
    return result


def _expand_value(value: Dim | tuple[Dim, ...], new: Shape) -> Value:
    if not new or not isinstance(new[0], int):
        return V.shaped(value, new)
    if new[0] > MAX_TRACKED:
        return None
    items = value if isinstance(value, tuple) else (value,)
    return items if len(items) == new[0] else tuple(items[0] for _ in range(new[0]))


def _expand_unknown(
    ctx: ShapeContext, facts: ResultFacts, target: tuple[Dim, ...] | None
) -> ResultFacts:
    """Expand when the content of the target, or the shape of the input, is not known."""
    count = len(target) if target is not None else length(ctx, 1)
    rank = facts.known_rank()
    if count is None or rank is None:
        return ResultFacts(facts.type)
    if facts.shape is None:
        if target is None or count < rank:
            return ResultFacts(facts.type, None, max(rank, count))
        # a dimension above 1 in the target is the dimension of the output
        sure = tuple(d if isinstance(d, int) and d > 1 else None for d in target)
        return ResultFacts(
            facts.type, tuple(ctx.new_dim("expand") if d is None else d for d in sure)
        )
    padded = (1,) * (count - rank) + facts.shape
    dims = [
        d if (isinstance(d, int) and d > 1) or i < rank - count else ctx.new_dim("expand")
        for i, d in enumerate(padded)
    ]
    return ResultFacts(facts.type, tuple(dims))


@shipped_function("Tile")
def legacy_tile(ctx: ShapeContext) -> ResultFacts:
    """Before opset 6, one axis is tiled and both are inputs."""
    return ResultFacts(ctx.type(0), None, ctx.rank(0))


@shipped_function("Tile", since=6)
@refuses_negative
def tile(ctx: ShapeContext) -> ResultFacts | None:
    """Tile: every dimension is multiplied."""
    facts = ctx.facts(0)
    repeats = content(ctx, 1)
    if repeats is None or facts.shape is None:
        rank = facts.known_rank()
        if rank is None:
            rank = len(repeats) if repeats is not None else length(ctx, 1)
        return ResultFacts(facts.type, None if rank is None else new_shape(ctx, rank))
    if len(repeats) != len(facts.shape):
        return None
    new = tuple(mul(d, r) for d, r in zip(facts.shape, repeats, strict=True))
    result = ResultFacts(facts.type, new)
    if isinstance(facts.value, tuple) and isinstance(repeats[0], int):
        if len(facts.value) * repeats[0] <= MAX_TRACKED:
            result.value = facts.value * repeats[0]
    elif facts.value is not None and not new:
        result.value = facts.value
    return result


@shipped_function("DepthToSpace", "SpaceToDepth")
def depth_space(ctx: ShapeContext) -> ResultFacts | None:
    """Blocks of the channels become blocks of the image, or the other way round."""
    facts = ctx.facts(0)
    block = ctx.attr("blocksize")
    if facts.shape is None or block is None:
        return ResultFacts(facts.type, None, 4)
    if len(facts.shape) != 4 or block < 1:
        return None
    n, c, h, w = facts.shape
    if ctx.op_type == "DepthToSpace":
        depth = block_count(c, block * block)
        return ResultFacts(facts.type, (n, depth, mul(h, block), mul(w, block)))
    height, width = block_count(h, block), block_count(w, block)
    return ResultFacts(facts.type, (n, mul(c, block * block), height, width))
