"""Symbolic scalars: sizes and numbers that only exist when the model runs.

torch writes ``sym_size``, ``item`` and python arithmetic on their results in the graph. Such a
scalar is carried as a :class:`SymScalar`: the name of a tensor of shape ``(1,)``, the form that
a Concat building a shape needs. :func:`scalar0d` gives the rank-0 form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
import torch
from onnx import TensorProto

from ..common.types import to_numpy_type
from .graph_writer import Array, GraphWriter, Tensor

INT64 = TensorProto.INT64
Number = bool | int | float
# a tensor, a symbolic scalar or a python number
Operand = str | Number


class SymScalar(str):
    """Name of a one-element tensor holding a python number, ``kind`` is int, float or bool.

    The tensor has shape ``(1,)`` and the type int64, float64 or bool. In promotions it behaves
    as a python scalar. ``quotient`` is a size and a positive integer if this is their quotient.
    """

    kind: type
    quotient: tuple[SymScalar, int] | None

    def __new__(
        cls, name: str, kind: type = int, quotient: tuple[SymScalar, int] | None = None
    ) -> SymScalar:
        """Wraps the name of a one-element tensor."""
        self = super().__new__(cls, name)
        self.kind = kind
        self.quotient = quotient
        return self

    @property
    def sample(self) -> bool | int | float:
        """A python number of the same kind, for type promotion."""
        number: bool | int | float = self.kind(1)
        return number


# a dimension
Size = int | SymScalar
# expressions of torch for a number only known when the model runs
SYM_KINDS: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
KIND_TYPES = {int: TensorProto.INT64, float: TensorProto.DOUBLE, bool: TensorProto.BOOL}


def int_vector(values: Sequence[int]) -> Array:
    """A one-dimension int64 array."""
    return np.array(values, dtype=np.int64)


@overload
def scalar0d(g: GraphWriter, x: str, itype: int) -> str: ...
@overload
def scalar0d(g: GraphWriter, x: Number, itype: int) -> Array: ...
@overload
def scalar0d(g: GraphWriter, x: Operand, itype: int) -> Tensor: ...
def scalar0d(g: GraphWriter, x: Operand, itype: int) -> Tensor:
    """A rank-0 tensor of type *itype* from a number or a symbolic scalar."""
    if not isinstance(x, str):
        return np.array(x, dtype=to_numpy_type(itype))
    name: str = x
    if isinstance(x, SymScalar) or g.get_rank(x) != 0:
        name = g.op.Squeeze(name, int_vector([0])) if g.get_rank(x) == 1 else g.op.Squeeze(name)
    return name if g.get_type(name) == itype else g.op.Cast(name, to=itype)


@overload
def vector1d(g: GraphWriter, x: str, itype: int = INT64) -> str: ...
@overload
def vector1d(g: GraphWriter, x: Number, itype: int = INT64) -> Array: ...
@overload
def vector1d(g: GraphWriter, x: Operand, itype: int = INT64) -> Tensor: ...
def vector1d(g: GraphWriter, x: Operand, itype: int = INT64) -> Tensor:
    """A tensor of shape ``(1,)`` from a number, a symbolic scalar or a rank-0 tensor."""
    if not isinstance(x, str):
        return np.array([x], dtype=to_numpy_type(itype))
    name: str = x
    if not isinstance(x, SymScalar) and g.get_rank(x) == 0:
        name = g.op.Reshape(name, int_vector([1]))
    return name if g.get_type(name) == itype else g.op.Cast(name, to=itype)


def first_integers(g: GraphWriter, n: Operand | Array) -> str:
    """0, 1, ... up to n - 1."""
    count = n if isinstance(n, np.ndarray) else scalar0d(g, n, INT64)
    return g.op.Range(np.array(0, dtype=np.int64), count, np.array(1, dtype=np.int64))


def shape_tensor(g: GraphWriter, dims: Sequence[int | str]) -> Tensor:
    """Builds a one-dimension int64 tensor from ints and symbolic ints.

    It is a constant when every value is known, a Concat otherwise; neighbouring integers share
    one constant.
    """
    parts: list[Tensor] = []
    run: list[int] = []
    for d in dims:
        if not isinstance(d, str):
            run.append(d)
            continue
        if run:
            parts.append(int_vector(run))
            run = []
        parts.append(vector1d(g, d))
    if run or not parts:
        parts.append(int_vector(run))
    return parts[0] if len(parts) == 1 else g.op.Concat(*parts, axis=0)


def dim_of(g: GraphWriter, x: str, axis: int) -> Size:
    """The dimension *axis* of *x*, an int when it is known, else a symbolic int."""
    rank = g.get_rank(x)
    axis = axis + rank if axis < 0 else axis
    if g.has_shape(x) and isinstance(dim := g.get_shape(x)[axis], int):
        return dim
    return SymScalar(g.op.Shape(x, start=axis, end=axis + 1), int)


def dims_of(g: GraphWriter, x: str) -> list[Size]:
    """All dimensions of *x*, see :func:`dim_of`."""
    return [dim_of(g, x, i) for i in range(g.get_rank(x))]


def product(g: GraphWriter, dims: Sequence[Size]) -> Size:
    """The product of ints and symbolic ints."""
    known = int(np.prod([d for d in dims if not isinstance(d, str)], dtype=np.int64))
    symbolic = [d for d in dims if isinstance(d, str)]
    if not symbolic:
        return known
    total = symbolic[0]
    for d in symbolic[1:]:
        total = SymScalar(g.op.Mul(total, d))
    return total if known == 1 else SymScalar(g.op.Mul(total, int_vector([known])))
