"""Helpers shared by all converters: operands of the right type, axes, reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..common.types import COMPLEXES, default_float, is_float, promote, to_numpy_type
from ..writing.graph_writer import Array, GraphWriter, Shape, Tensor, constant
from ..writing.symbols import Operand, Size, SymScalar, dim_of, int_vector, product, shape_tensor

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL


def cast(g: GraphWriter, x: str, itype: int) -> str:
    """Casts *x*, does nothing when the type is already the right one."""
    if g.has_type(x) and g.get_type(x) == itype:
        return x
    return g.op.Cast(x, to=itype)


def const(value: Any, itype: int) -> Array:
    """A constant of the given ONNX type."""
    return np.array(value, dtype=to_numpy_type(itype))


def f64(value: float | Sequence[float]) -> Array:
    """A constant of one double, or of several."""
    return const(value, TensorProto.DOUBLE)


def operand(g: GraphWriter, x: Operand, itype: int) -> Tensor:
    """*x* as a tensor of type *itype*; symbolic scalars keep their shape ``(1,)``.

    Use :func:`scalar_like` when the other operand may have no dimension.
    """
    return cast(g, x, itype) if isinstance(x, str) else const(x, itype)


def scalar_like(g: GraphWriter, x: Operand, itype: int, rank: int) -> Tensor:
    """Same as :func:`operand`, a symbolic scalar loses its dimension if *rank* is 0."""
    if isinstance(x, SymScalar) and rank == 0:
        return cast(g, g.op.Squeeze(x, int_vector([0])), itype)
    return operand(g, x, itype)


def sample(g: GraphWriter, x: Operand) -> Any:
    """A pair or a number that stands for an operand in :func:`.types.promote`."""
    if isinstance(x, SymScalar):
        return x.sample
    return (g.get_type(x), g.get_rank(x)) if isinstance(x, str) else x


def common_type(g: GraphWriter, *operands: Operand) -> int:
    """The type torch promotes the operands to."""
    return promote(*(sample(g, x) for x in operands))


def rank_of(g: GraphWriter, *operands: Operand) -> int:
    """The highest rank among tensors, symbolic scalars count as rank 0."""
    return max(
        (g.get_rank(x) for x in operands if isinstance(x, str) and not isinstance(x, SymScalar)),
        default=0,
    )


def same_type(g: GraphWriter, *operands: Operand, itype: int = 0) -> list[Tensor]:
    """Casts all operands to their common type, or to *itype* when it is given."""
    itype = itype or common_type(g, *operands)
    rank = rank_of(g, *operands)
    return [scalar_like(g, x, itype, rank) for x in operands]


def named(g: GraphWriter, *operands: Operand, itype: int) -> list[str]:
    """Operands of a type as results of the graph, numbers become constants."""
    values = same_type(g, *operands, itype=itype)
    return [v if isinstance(v, str) else constant(g, v) for v in values]


def float_type(g: GraphWriter, *operands: Operand) -> int:
    """The common type, or the default float type if it is an integer or a boolean."""
    itype = common_type(g, *operands)
    return itype if is_float(itype) or itype in COMPLEXES else default_float()


def as_float(g: GraphWriter, x: str) -> str:
    """Casts integers and booleans to the default float type."""
    return cast(g, x, float_type(g, x))


def axis_of(axis: int, rank: int) -> int:
    """A non negative axis; a scalar accepts 0 and -1 as torch does."""
    return axis + max(rank, 1) if axis < 0 else axis


def axes_of(axes: int | Sequence[int] | None, rank: int) -> list[int]:
    """A sorted list of non negative axes; None and an empty list mean all of them."""
    if axes is None or (not isinstance(axes, int) and len(axes) == 0):
        return list(range(rank))
    listed = [axes] if isinstance(axes, int) else axes
    return sorted({axis_of(a, rank) for a in listed}) if rank else []


def reshape(
    g: GraphWriter,
    x: str,
    dims: Sequence[int | str],
    result_shape: Shape | None = None,
) -> str:
    """Reshapes *x*; *dims* mixes ints and symbolic ints, *result_shape* is the result's shape.
    The known result helps to write a constant shape: a symbolic dimension which stays at its
    place is 0 (copied), a single other one is -1. When this could be ambiguous for an empty
    tensor, the shape is computed by the graph.
    """
    shape = constant_shape(g, x, dims, result_shape)
    if shape is None:
        zero = {"allowzero": 1} if _may_become_zero(g, x, dims, result_shape) else {}
        return g.op.Reshape(x, shape_tensor(g, dims), **zero)
    values, allow_zero = shape
    if allow_zero:
        return g.op.Reshape(x, int_vector(values), allowzero=1)
    return g.op.Reshape(x, int_vector(values))


def _may_become_zero(
    g: GraphWriter, x: str, dims: Sequence[int | str], result_shape: Shape | None
) -> bool:
    """Whether a computed dimension may be zero while the one of the input is not.

    ONNX copies the dimension of the input in that case unless allowzero is set, and allowzero
    forbids -1.
    """
    if -1 in dims:
        return False
    before = g.get_shape(x) if g.has_shape(x) else ()
    after = result_shape or ("",) * len(dims)
    return any(
        isinstance(d, str) and (i >= len(before) or before[i] != a)
        for i, (d, a) in enumerate(zip(dims, after, strict=False))
    )


def constant_shape(
    g: GraphWriter, x: str, dims: Sequence[int | str], result_shape: Shape | None
) -> tuple[list[int], bool] | None:
    """``(shape, allowzero)`` of a constant Reshape, None if no constant is right."""
    known = result_shape if result_shape is not None else tuple(dims)
    sizes = integers(known)
    if sizes is not None and all(d >= 0 for d in sizes):
        return sizes, 0 in sizes
    if 0 in known:
        return None
    if result_shape is None:
        wanted = [-1 if isinstance(d, str) else d for d in dims]
        return None if wanted.count(-1) > 1 else (wanted, False)
    before = g.get_shape(x) if g.has_shape(x) else ()
    values: list[int] = []
    for i, d in enumerate(result_shape):
        copied = i < len(before) and before[i] == d and isinstance(d, str)
        values.append(0 if copied else d if isinstance(d, int) else -1)
    unknown = values.count(-1)
    if unknown > 1 or (unknown == 1 and 0 in values):
        symbolic = [i for i, d in enumerate(result_shape) if isinstance(d, str)]
        if len(symbolic) != 1:
            return None
        values[symbolic[0]] = -1
    return values, False


def shape_tensor_of(g: GraphWriter, x: str) -> Tensor:
    """The shape of *x* as a tensor, a constant if it is known."""
    sizes = integers(g.get_shape(x)) if g.has_shape(x) else None
    return g.op.Shape(x) if sizes is None else int_vector(sizes)


def integers(dims: Sequence[int | str]) -> list[int] | None:
    """The dimensions as integers, None if one of them is symbolic."""
    known = [d for d in dims if isinstance(d, int)]
    return known if len(known) == len(dims) else None


def size_product(g: GraphWriter, x: str, axes: Sequence[int]) -> Size:
    """The number of elements along some axes."""
    return product(g, [dim_of(g, x, axis) for axis in axes])


def choose(g: GraphWriter, mask: str, x: Tensor, y: Tensor, itype: int) -> str:
    """Where(mask, x, y), written with And and Or for booleans, which have no kernel."""
    if itype != BOOL:
        return g.op.Where(mask, x, y)
    return g.op.Or(g.op.And(mask, x), g.op.And(g.op.Not(mask), y))


def vector(g: GraphWriter, x: str) -> str:
    """A scalar as a vector of one value, any other tensor as it is."""
    return g.op.Reshape(x, int_vector([1])) if g.get_rank(x) == 0 else x


def identity(g: GraphWriter, x: str) -> str:
    """*x* itself: several fx nodes may share one result."""
    return x
