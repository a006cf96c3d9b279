"""Symbolic scalars: sizes and numbers that only exist when the model runs.

torch writes ``sym_size``, ``item`` and python arithmetic on their results in the graph. Such a
scalar is carried as a :class:`SymScalar`: the name of a tensor of shape ``(1,)``, which is what
a Concat building a shape needs. :func:`scalar0d` gives the rank-0 form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

INT64 = TensorProto.INT64


class SymScalar(str):
    """Name of a one-element tensor holding a python number, ``kind`` is int, float or bool.

    The tensor has shape ``(1,)`` and the type int64, float64 or bool. In promotions it behaves
    as a python scalar.
    """

    kind: type

    def __new__(cls, name: str, kind: type = int) -> SymScalar:
        """Wraps the name of a one-element tensor."""
        self = super().__new__(cls, name)
        self.kind = kind
        return self

    @property
    def sample(self) -> bool | int | float:
        """A python number of the same kind, for type promotion."""
        return self.kind(1)


KIND_TYPES = {int: TensorProto.INT64, float: TensorProto.DOUBLE, bool: TensorProto.BOOL}


def int_vector(values: Sequence[int]) -> np.ndarray:
    """A one-dimension int64 array."""
    return np.array(values, dtype=np.int64)


def scalar0d(g: Any, x: str | int | float | bool, itype: int) -> str | np.ndarray:
    """Returns a rank-0 tensor of type *itype* from a number or a symbolic scalar."""
    from .types import to_numpy_type

    if not isinstance(x, str):
        return np.array(x, dtype=to_numpy_type(itype))
    name: str = x
    if isinstance(x, SymScalar) or g.get_rank(x) != 0:
        name = g.op.Squeeze(name, int_vector([0])) if g.get_rank(x) == 1 else g.op.Squeeze(name)
    return name if g.get_type(name) == itype else g.op.Cast(name, to=itype)


def vector1d(g: Any, x: str | int, itype: int = INT64) -> str | np.ndarray:
    """Returns a tensor of shape ``(1,)`` from a number, a symbolic scalar or a rank-0 tensor."""
    from .types import to_numpy_type

    if not isinstance(x, str):
        return np.array([x], dtype=to_numpy_type(itype))
    name: str = x
    if not isinstance(x, SymScalar) and g.get_rank(x) == 0:
        name = g.op.Reshape(name, int_vector([1]))
    return name if g.get_type(name) == itype else g.op.Cast(name, to=itype)


def shape_tensor(g: Any, dims: Sequence[int | str]) -> str | np.ndarray:
    """Builds a one-dimension int64 tensor from ints and symbolic ints.

    It is a constant when every value is known, a Concat otherwise; neighbouring integers share
    one constant.
    """
    if all(not isinstance(d, str) for d in dims):
        return int_vector(dims)
    parts: list[str | np.ndarray] = []
    run: list[int] = []
    for d in dims:
        if not isinstance(d, str):
            run.append(d)
            continue
        if run:
            parts.append(int_vector(run))
            run = []
        parts.append(vector1d(g, d))
    if run:
        parts.append(int_vector(run))
    return parts[0] if len(parts) == 1 else g.op.Concat(*parts, axis=0)


def dim_of(g: Any, x: str, axis: int) -> int | SymScalar:
    """Returns the dimension *axis* of *x*: an int when it is known, else a symbolic int."""
    rank = g.get_rank(x)
    axis = axis + rank if axis < 0 else axis
    if g.has_shape(x) and isinstance(dim := g.get_shape(x)[axis], int):
        return dim
    return SymScalar(g.op.Shape(x, start=axis, end=axis + 1), int)


def dims_of(g: Any, x: str) -> list[int | SymScalar]:
    """All dimensions of *x*, see :func:`dim_of`."""
    return [dim_of(g, x, i) for i in range(g.get_rank(x))]
