"""Triangular matrices, rotations, transposed casts merged into one CUDA kernel."""

from __future__ import annotations

import operator

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import CUDA_DOMAIN

from ..analysis.attention.rotated_halves import rotated_halves
from ..analysis.axes import axes_of
from ..analysis.constants import int_values, scalar_index, scalar_value
from ..analysis.permutations import perm_of
from ..analysis.shapes import at_least
from ..authoring import NewNode, Refusal, RewriteContext
from ..authoring.right_side import Operand
from ..catalogue import rewrite
from ..declarative import rule
from .cuda import require_cuda

_COMPARES = {
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
}
#: column minus row: far below the diagonal, just below, on it, just above, far above
_PLACES = (-(2**40), -1, 0, 1, 2**40)
#: wide type -> narrow type -> kernel
_TURNED: dict[tuple[int, int], str] = {
    (TensorProto.FLOAT, TensorProto.FLOAT16): "Transpose2DCastFP16",
    (TensorProto.FLOAT16, TensorProto.FLOAT): "Transpose2DCastFP32",
}


def _line(g: RewriteContext, name: str) -> tuple[NodeProto, int, bool]:
    """The Range of positions, the integer added to them, whether they are a column."""
    column, shift = False, 0
    for _ in range(3):
        node = g.before(name, "Range", "Add", "Unsqueeze", "Reshape")
        if node.op_type == "Range":
            return node, shift, column
        if node.op_type == "Add":
            values = [scalar_index(g, n) for n in node.input]
            index = 0 if values[0] is None else 1
            term = g.known(values[1 - index], "what is added is not a scalar constant")
            name, shift = node.input[index], shift + term
            continue
        once = not column and (_is_column(g, node))
        g.require(once, "the positions are not a column")
        name, column = node.input[0], True
    g.refuse("the positions are not those of a Range")


def _is_column(g: RewriteContext, node: NodeProto) -> bool:
    """Whether a vector becomes a column."""
    if node.op_type == "Unsqueeze":
        return axes_of(g, node) in ((1,), (-1,))
    return int_values(g, node.input[1]) == (-1, 1)


@rewrite("experimental", root="Where", after=tuple(_COMPARES), min_opset=11)
def tri_matrix(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Where(Range(n) < Unsqueeze(Range(n) + k, 1), a, b) -> TriMatrix((n, n), values), on CUDA.

    1. The comparison is any of `<`, `<=`, `>`, `>=`, the column may come first.
    2. a and b are scalar constants, *values* holds the numbers below the diagonal, on it, above it.
    3. n is a dimension or a constant; the type is float or float16.
    """
    compare = g.before_or_none(node, *_COMPARES)
    if compare is None:
        return g.no("the condition is not a comparison")
    require_cuda(g, node.output[0])
    (start, a, first), (end, b, second) = (_line(g, name) for name in compare.input)
    g.require(first != second, "there is not one row and one column")
    size = start.input[1]
    for line in (start, end):
        ends = [scalar_index(g, line.input[i]) for i in (0, 2)]
        same = ends == [0, 1] and line.input[1] == size
        g.require(same, "a Range does not go from 0 to the same limit, by 1")
    values = [scalar_value(g, name) for name in node.input[1:]]
    small = [v for v in values if v is not None and v.ndim <= 2]
    g.require(len(small) == 2, "the values are not scalar constants")
    then, other = (v.reshape(-1)[0] for v in small)
    found = [_holds(compare, a, b, first, d) for d in _PLACES]
    g.require(found[0] == found[1] and found[3] == found[4], "the limit is not the diagonal")
    csts = np.array([then if f else other for f in found[1:4]], small[0].dtype)
    return g.op.TriMatrix(_square(g, size), csts, domain=CUDA_DOMAIN)


def _holds(compare: NodeProto, a: int, b: int, column_first: bool, place: int) -> bool:
    """Whether a comparison holds where the column minus the row is *place*."""
    left, right = (a, place + b) if column_first else (place + a, b)
    return bool(_COMPARES[compare.op_type](left, right))


def _square(g: RewriteContext, size: str) -> Operand:
    """Shape of the matrix; refuses unless its size is a dimension or a constant."""
    known = scalar_index(g, size)
    if known is not None:
        return [max(known, 0)] * 2
    dim = g.value_as_shape(size)
    positive = isinstance(dim, str) and at_least(g, dim, 0)
    g.require(positive, "the limit is neither a constant nor a dimension")
    one = g.op.Unsqueeze(size, axes=[0])
    return g.op.Concat(one, one, axis=0)


@rewrite("experimental", root="Split", read_by="Neg", sole_use=True)
def simple_rotary(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """a, b = Split(x), Concat(-b, a) -> Rotary(x, side=right), on CUDA.

    1. Concat(b, -a) -> Rotary(x, side=left).
    2. Both halves have the same size, which is known, on the last axis.
    """
    require_cuda(g, node.input[0])
    found = rotated_halves(g, node)
    new = g.op.Rotary(node.input[0], found.sizes, side=found.side, domain=CUDA_DOMAIN)
    return {found.result: new}


@rule(
    "experimental",
    "t = Transpose(x, **_); y = Cast(t, **_); y",
    "t = Transpose(Cast(x, **_), **_); t",
    root="t",
    priority="later",
)
def transpose_cast(g: RewriteContext, x: str, t: str, y: str | None) -> dict[str, NewNode]:
    """Cast(Transpose(x)) -> Transpose2DCastFP16(x), or Transpose2DCastFP32(x), on CUDA.

    1. x is a matrix, float or float16, the Cast goes from one to the other.
    2. Transpose(Cast(x)) is the same.
    """
    require_cuda(g, x)
    g.require(perm_of(g, g.before(t)) == (1, 0), "it is not the transposition of a matrix")
    result = y or t
    key = g.type_of(x), g.type_of(result)
    op_type = g.known(_TURNED.get(key), "the types are not float and float16")
    return {result: getattr(g.op, op_type)(x, domain=CUDA_DOMAIN)}
