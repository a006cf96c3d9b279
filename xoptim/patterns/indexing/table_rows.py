"""Reads the rows of constant tables: scaled before they are read, chosen by a Gather instead of a
product."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.operators.op_traits import ARITHMETIC, FLOATS, INDICES

from ...analysis.arguments import other_input
from ...analysis.axes import axis_of
from ...analysis.kernels import require_loaded
from ...authoring import DerivedConstant, NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule

_COMPUTED = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract}
#: most rows of a table that a product reads, every one of them
_ROWS = 2**12


@rewrite("default", root="Gather", read_by=ARITHMETIC, min_opset=7)
def gather_affine(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Gather(table, i) * c + d -> Gather(table * c + d, i), the table, c and d are constants.

    1. Sums, differences, products, quotients, as many as follow each other; the constant is
       broadcast along the dimensions of a row, and adds none.
    2. Nothing else reads the table, otherwise the model would hold it twice.
    3. The types are floats: the same numbers are computed, only once.

    These are the scales of embeddings (Marian, Gemma, sqrt of the width), and a normalization
    behind an embedding (deepcut).
    """
    table, indices = g.inputs(node)
    sizes = g.known(g.get_constant_shape(table), "the table is not constant")
    g.require(g.type_of(table) in FLOATS, "the type is not a float type")
    g.require(sizes and axis_of(g, node, len(sizes), 0) == 0, "the rows are not read")
    g.require(not g.is_used_more_than_once(table), "the table is used elsewhere")
    result: str = node.output[0]
    value: np.ndarray | None = None
    while after := g.after_or_none(result, *ARITHMETIC):
        constant = _row(g, other_input(after, result), sizes[1:], g.rank_or_none(result))
        if constant is None:
            break
        value = g.constant_of(table) if value is None else value
        operands = (value, constant) if after.input[0] == result else (constant, value)
        with np.errstate(all="ignore"):
            value = _COMPUTED[after.op_type](*operands).astype(value.dtype)
        result = after.output[0]
    value = g.known(value, "no sum, no product by a constant")
    g.require(np.isfinite(value).all(), "a number is not finite")
    return {result: g.like(node, DerivedConstant(value, table), indices)}


def _row(g: RewriteContext, name: str, row: tuple[int, ...], rank: int | None) -> np.ndarray | None:
    """A constant that is broadcast along the dimensions of a row, without its first dimensions 1;
    None if it is not.

    :param name: the constant
    :param row: dimensions of a row
    :param rank: rank of the other operand
    """
    value = g.constant_or_none(name)
    if value is None:
        return None
    first = max(value.ndim - len(row), 0)
    if first and (rank is None or value.ndim > rank or set(value.shape[:first]) != {1}):
        return None
    sizes: tuple[int, ...] = value.shape[first:]
    ends = row[len(row) - len(sizes) :]
    fits = all(size in (1, d) for size, d in zip(sizes, ends, strict=True))
    return value.reshape(sizes) if fits else None


@rule(
    "default",
    """u = Unsqueeze(i, *_, **_) | Reshape(i, *_, **_)
    y = MatMul(Cast(Equal(u, numbers), to=kind), table); y""",
    min_opset=12,
)
def one_hot_product(
    g: RewriteContext, i: str, u: str, numbers: str, kind: int, table: str, y: str
) -> dict[str, NewNode]:
    """Cast(Unsqueeze(i, -1) == (0, 1, ..., n - 1)) @ table -> Gather(table and a row of zeros, i).

    1. i holds int32 or int64, which may be out of the table: their row is made of zeros, i is
       bounded by -1, the last row, and n.
    2. The table is a constant matrix of n rows, 4096 at most, of finite numbers. -0.0 becomes 0.0
       in it, as in the product.

    jax writes `one_hot(i, n) @ table` so (magika).
    """
    rows = g.known(g.get_constant_shape(table), "the table is not constant")
    g.require(len(rows) == 2 and 0 < rows[0] <= _ROWS, "the table is not a matrix, or is too big")
    count, width = rows
    places = g.constant_of(numbers, "what is compared is not constant")
    g.require(g.type_of(i) in INDICES, "the indices are not int32 nor int64")
    g.require(np.array_equal(places.ravel(), np.arange(count)), "they are not those of the rows")
    shape, rank = g.shape_of(i), g.rank_of(u)
    last = g.shape_of(u) == (*shape, 1) and places.shape[-1:] == (count,) and places.ndim <= rank
    g.require(last, "the new dimension is not the last one")
    g.require(kind in FLOATS and kind == g.type_of(table), "the types differ")
    value = g.constant_of(table)
    g.require(np.isfinite(value).all(), "a number of the table is not finite")
    require_loaded(g, "Clip", i)
    full = np.concatenate([value + value.dtype.type(0), np.zeros((1, width), value.dtype)])
    bounded = g.op.Clip(i, g.scalar(-1, i), g.scalar(count, i))
    return {y: g.op.Gather(DerivedConstant(full, table), bounded, axis=0)}
