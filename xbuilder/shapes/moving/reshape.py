"""Reshape: a target whose elements may be 0, -1 or anything else at run time.

An element 0 copies the dimension of the input at the same position (unless `allowzero`): an
element ``e`` is not always the dimension ``e``. It is kept if one of these is proven:

1. it is never 0, or `allowzero` is set;
2. the input has no dimension at this position, a 0 makes the model invalid;
3. for all the ways some of the symbols may be null, either the copied dimension is null too, or the
   model is invalid: the number of elements would change, or the other dimensions of a target with a
   -1 would be null.

Convention: the inferred shape holds for an input that is not empty, the dimensions the user named
in its shape are taken as positive. A sum of products of them (``batch*seq``, ``2*d``) is then kept
without a proof: ``(batch*seq, 64)``. ``a//2``, ``a%2``, ``a-b``, a symbol the builder made (a
count, the result of a loop) or the dimension of another tensor may be 0 while the input is not
empty. Without a proof, it is a fresh dimension instead. A named dimension is kept if the shape of
the input is unknown.

The convention never gives a size to an empty dimension: ``(n, -1)`` from ``(3, n)`` is ``(n, 3)``,
but ``(3, 0)`` when ``n`` is 0. The -1 is not 0 in the first one, so ``n`` is doubtful.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...dims import (
    Dim,
    Shape,
    is_plain,
    is_static,
    prod,
    prove_ge,
    substitute,
    symbols,
    zero_cases,
)
from ...facts.facts import ResultFacts
from .. import values as V
from ..common import argument, length, merge_dim, new_shape
from ..context import ShapeContext
from ..shipped import shipped_function
from .rearranging import exact_quotient

#: dimensions of a target, None for the one deduced from the others
Target = list[Dim | None]


@shipped_function("Reshape")
def reshape(ctx: ShapeContext) -> ResultFacts | None:
    """Reshape: 0 copies a dimension unless `allowzero`, -1 is the exact quotient."""
    facts = ctx.facts(0)
    _, target = argument(ctx, 1, "shape")
    shape = facts.shape
    count = len(target) if target is not None else length(ctx, 1)
    if count is None:
        return ResultFacts(facts.type)
    new: Shape | None
    if count == 1 and shape is not None:
        # whatever the content, a vector holds all the elements
        total = prod(shape)
        wanted = target[0] if target is not None else -1
        merged = merge_dim(ctx, total, wanted) if isinstance(wanted, int) and wanted > 0 else total
        if merged is None:
            return None
        new = (merged,)
    elif target is None:
        new = new_shape(ctx, count)
    else:
        new = _reshaped(ctx, shape, target)
        if new is None:
            return None
    return ResultFacts(facts.type, new, None, V.shaped(facts.value, new))


def _reshaped(ctx: ShapeContext, shape: Shape | None, target: tuple[Dim, ...]) -> Shape | None:
    """Dimensions of a Reshape whose target is known, None if it is invalid."""
    dims = _read(ctx, shape, target)
    if dims is None:
        return None
    holes = [i for i, dim in enumerate(dims) if dim is None]
    if len(holes) > 1:
        return None
    if any(isinstance(dim, str) for dim in target):
        _forget_doubtful(ctx, shape, dims)
    for i in holes:
        others = [dim for dim in dims if dim is not None]
        quotient = None if shape is None else exact_quotient(list(shape), others)
        dims[i] = ctx.new_dim("reshape") if quotient is None else quotient
    result = tuple(dim for dim in dims if dim is not None)
    if shape is not None and is_static(shape) and is_static(result):
        return result if prod(shape) == prod(result) else None
    return result


def _read(ctx: ShapeContext, shape: Shape | None, target: tuple[Dim, ...]) -> Target | None:
    """Replaces the integers with a meaning: 0 by the dimension it copies, -1 by None."""
    allowzero = 0 in target and ctx.attr("allowzero", 0)
    dims: Target = []
    for i, dim in enumerate(target):
        if not isinstance(dim, int) or dim > 0 or (dim == 0 and allowzero):
            dims.append(dim)
        elif dim == -1:
            dims.append(None)
        elif dim < 0 or (shape is not None and i >= len(shape)):
            return None
        else:
            dims.append(ctx.new_dim(f"reshape_d{i}") if shape is None else shape[i])
    return dims


def _forget_doubtful(ctx: ShapeContext, shape: Shape | None, dims: Target) -> None:
    """Replaces by fresh symbols the elements that may not be the dimensions they become."""
    has_hole = None in dims
    maybe_hole = [i for i, dim in enumerate(dims) if _may_be_a_hole(ctx, shape, dims, i)]
    for i in maybe_hole:
        dims[i] = ctx.new_dim("reshape")
    if ctx.attr("allowzero", 0):
        return
    for i in _may_copy(ctx, shape, dims, has_hole, maybe_hole):
        dims[i] = ctx.new_dim("reshape")


def _may_be_a_hole(ctx: ShapeContext, shape: Shape | None, dims: Target, i: int) -> bool:
    """Whether an element may be -1. The other elements may prove that it is a dimension."""
    dim = dims[i]
    if not isinstance(dim, str) or prove_ge(dim, 0, ctx.constraints):
        return False
    if shape is None:
        return True
    if dim in shape:
        return False
    others = [d for j, d in enumerate(dims) if j != i and d is not None]
    return None in dims or exact_quotient(list(shape), others) != dim


def _may_copy(
    ctx: ShapeContext, shape: Shape | None, dims: Target, has_hole: bool, fresh: list[int]
) -> list[int]:
    """Positions of the symbolic elements not proven to be the dimension they become.

    :param has_hole: one element is -1
    :param fresh: elements already replaced by the dimension they become
    """
    rank = ctx.rank(0) if shape is None else len(shape)
    doubts = [
        i
        for i, dim in enumerate(dims)
        if isinstance(dim, str)
        and i not in fresh
        and (rank is None or i < rank)
        and (shape is None or dim != shape[i])
        and not prove_ge(dim, 1, ctx.constraints)
    ]
    if not doubts:
        return doubts
    canonical = ctx.constraints.canonical
    source = None if shape is None else [canonical(dim) for dim in shape]
    elements = {i: canonical(dim) for i, dim in enumerate(dims) if dim is not None}
    positive = _named(ctx, elements.values() if source is None else source)
    cases = None
    if source is not None:
        cases = zero_cases([*elements.values(), *source, *positive])
    if source is None or cases is None:
        return [i for i in doubts if not _is_conventional(elements[i], positive)]
    n, end = len(elements), len(elements) + len(source)
    emptied = _emptied(ctx, shape or (), dims, positive) if has_hole else []
    wrong: set[int] = set()
    for case in cases:
        empty = [name for name, null in zip(positive, case[end:], strict=True) if null]
        if not empty or (len(empty) == 1 and empty[0] in emptied):
            nulls = dict(zip(elements, case[:n], strict=True))
            wrong.update(_copies(nulls, case[n:end], has_hole, fresh))
    return [i for i in doubts if i in wrong]


def _emptied(ctx: ShapeContext, shape: Shape, dims: Target, names: Iterable[str]) -> list[str]:
    """Named dimensions that leave something to the -1 when they are null: at run time, it is 0."""
    quotient = exact_quotient(list(shape), [dim for dim in dims if dim is not None])
    names = [n for n in names if n not in ctx.constraints.minimums]
    if quotient is None:
        return names
    return [n for n in names if is_plain(quotient) and substitute(quotient, {n: 0}) != 0]


def _named(ctx: ShapeContext, dims: Iterable[Dim]) -> list[str]:
    """Symbols of some dimensions that the user named."""
    names = frozenset[str]().union(*map(symbols, dims))
    return sorted(name for name in names if not ctx.constraints.is_generated(name))


def _is_conventional(dim: Dim, positive: Collection[str]) -> bool:
    """Whether a dimension is a sum of products of symbols taken as positive."""
    return is_plain(dim) and symbols(dim) <= set(positive)


def _copies(
    nulls: dict[int, bool], copied: tuple[bool, ...], has_hole: bool, fresh: list[int]
) -> list[int]:
    """Positions of the elements that are null and copy a dimension that is not, in a valid model.

    :param nulls: whether the elements are null, the one which is -1 left out
    :param copied: whether the dimensions of the input are null
    """
    null_dims: list[bool] = []
    wrong: list[int] = []
    for i, null in nulls.items():
        if null and i not in fresh:
            if i >= len(copied):
                return []
            if not copied[i]:
                wrong.append(i)
                null = False
        null_dims.append(null)
    is_valid = not any(null_dims) if has_hole else any(null_dims) == any(copied)
    return wrong if is_valid else []
