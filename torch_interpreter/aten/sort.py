"""Sorting, searching, scans."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from ..registry import aten
from ..symbols import SymScalar, dim_of, int_vector, vector1d
from .operands import BOOL, INT64, Outputs, axis_of, cast, const

Size = int | SymScalar


def _top(
    g: Any, outputs: Outputs, x: str, k: Size, axis: int, largest: bool, ordered: bool
) -> list[str]:
    """TopK, in another type for booleans."""
    itype = g.get_type(x)
    source = cast(g, x, TensorProto.INT32) if itype == BOOL else x
    values, index = g.op.TopK(
        source,
        vector1d(g, k),
        axis=axis,
        largest=int(largest),
        sorted=int(ordered),
        outputs=outputs if itype != BOOL and outputs else 2,
    )
    return [cast(g, values, itype), index]


@aten("aten.topk.default")
def topk(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    k: Size,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> list[str]:
    """TopK; torch allows a scalar."""
    rank = g.get_rank(x)
    if rank == 0:
        return [x, const_index(g)]
    return _top(g, outputs, x, k, axis_of(dim, rank), largest, sorted)


def const_index(g: Any) -> str:
    """The position of the only value of a scalar."""
    return g.op.Identity(const(0, INT64))


@aten("aten.sort.default")
def sort(
    g: Any, sts: Any, outputs: Outputs, x: str, dim: int = -1, descending: bool = False
) -> list[str]:
    """A TopK of everything."""
    if g.get_rank(x) == 0:
        return [x, const_index(g)]
    axis = axis_of(dim, g.get_rank(x))
    return _top(g, outputs, x, dim_of(g, x, axis), axis, descending, True)


@aten("aten.sort.stable")
def stable_sort(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    *,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
) -> list[str]:
    """TopK keeps the order of equal values."""
    return sort(g, sts, outputs, x, dim, descending)


@aten("aten.argsort.default")
def argsort(
    g: Any, sts: Any, outputs: Outputs, x: str, dim: int = -1, descending: bool = False
) -> str:
    """The second result of sort."""
    return sort(g, None, None, x, dim, descending)[1]


@aten("aten.bucketize.Tensor", "aten.searchsorted.Tensor")
def bucketize(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    boundaries: str,
    *,
    out_int32: bool = False,
    right: bool = False,
    **kwargs: Any,
) -> str:
    """How many boundaries come before each value."""
    if "searchsorted" in str(getattr(getattr(sts, "node", None), "target", "")):
        x, boundaries = boundaries, x
        right = right or kwargs.get("side") == "right"
    if g.get_rank(boundaries) != 1:
        raise ValueError("bucketize and searchsorted need boundaries with one dimension")
    wide = g.op.UnsqueezeAnyOpset(x, int_vector([g.get_rank(x)]))
    before = g.op.LessOrEqual(boundaries, wide) if right else g.op.Less(boundaries, wide)
    counts = g.op.Cast(before, to=INT64)
    total = g.op.ReduceSumAnyOpset(counts, int_vector([-1]), keepdims=0)
    return cast(g, total, TensorProto.INT32 if out_int32 else INT64, outputs)


@aten("aten.unique_consecutive.default")
def unique_consecutive(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> list[Any]:
    """Keeps the values different from the one before."""
    if return_inverse or return_counts or (dim is not None and g.get_rank(x) != 1):
        raise ValueError("unique_consecutive is only supported for the values of a flat tensor")
    flat = g.op.Reshape(x, int_vector([-1]))
    axes = int_vector([0])
    after = g.op.Slice(flat, int_vector([1]), int_vector([2**62]), axes)
    before = g.op.Slice(flat, int_vector([0]), int_vector([-1]), axes)
    changed = g.op.Not(g.op.Equal(after, before))
    first = g.op.Slice(g.op.Equal(flat, flat), int_vector([0]), int_vector([1]), axes)
    kept = g.op.Concat(first, changed, axis=0)
    names = outputs[:1] if outputs else None
    return [g.op.Compress(flat, kept, axis=0, outputs=names), None, None]
