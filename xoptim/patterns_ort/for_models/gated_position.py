"""Attention biases scaled by a gate of each query (WavLM): GatedRelativePositionBias, for CUDA."""

from __future__ import annotations

import numpy as np

from xbuilder.dims import Dim, Shape
from xbuilder.operators.domains import MICROSOFT

from ...analysis.attention.heads import heads_of
from ...analysis.axes import axes_of, axis_of
from ...analysis.constants import dtype_of
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...declarative import rule
from ..kernels import require_kernel

#: the kernel sums both halves of at most as many elements
_MAX_LENGTH = 32


@rule(
    "onnxruntime",
    "model",
    """wide = Reshape(q @ w + b, *_, **_); sums = ReduceSum(wide, *_, keepdims=0, **_)
    u, r = Split(Sigmoid(sums), *_, **_); gate = u * ((r | r * eco) - 1) + 2
    rows = Reshape(gate, *_, **_); y = gate * bias | rows * Reshape(bias, shape, **_); y""",
    root="u",
    priority="late",
    precision="rounding",
    sole_use=False,
)
def gated_relative_position_bias(
    g: RewriteContext,
    q: str,
    w: str,
    b: str,
    wide: str,
    sums: str,
    u: str,
    r: str,
    eco: str | None,
    gate: str,
    rows: str | None,
    bias: str,
    shape: str | None,
    y: str,
) -> dict[str, NewNode]:
    """(u * (r * a - 1) + 2) * bias -> com.microsoft.GatedRelativePositionBias, on CUDA.

    1. u, r = Split(Sigmoid(ReduceSum(Reshape(q @ w + b)))), the gates of WavLM: q has the shape
       (batch, heads, sequence, length), w and b have the same even number of columns, 32 at most,
       each half of them is added;
    2. a has one number for each head, or is missing;
    3. the bias has the shape (1, heads, sequence, sequence), it may be repeated for the batch, both
       factors reshaped to (batch * heads, sequence, ...).

    `WavLMAttention` of transformers is written this way. The operator never ran on a device: the
    tests use the formula of its documentation, in numpy.
    """
    g.require_sole_use("the gate is used elsewhere", gate)
    queries = heads_of(g, q)
    g.require(queries.is_moved, "the heads are not moved from a sequence")
    halves, (length, width) = g.shape_of(wide), g.static_shape(w, "the weight is not static")
    g.require(axes_of(g, g.before(sums)) in ((4,), (-1,)), "the halves are not added")
    two = len(halves) == 5 and halves[3] == 2 and axis_of(g, g.before(u), 4, 0) == 3
    two = two and all(g.shape_of(name)[3] == 1 for name in (u, r))
    g.require(two, "the gates are not two numbers")
    known = length == queries.length and g.shape_of(b) == (width,) and halves[4] == width // 2
    g.require(known, "the weight is not the one of two halves")
    g.require(width % 2 == 0 and width <= _MAX_LENGTH, "the kernel does not add so many elements")
    dims = batch, heads, steps, _ = g.shape_of(q)
    g.require(proven_equal(g, dims[:3], halves[:3]), "there is not one gate for each query")
    by_head = eco is None or g.shape_or_none(eco) == (1, queries.count, 1, 1)
    g.require(by_head, "a head does not have one number")
    if rows is not None:
        merged, column = g.shape_of(y), g.shape_of(rows)
        same = len(merged) == len(column) == 3 and proven_equal(
            g, (*merged, *column[1:]), (column[0], steps, steps, steps, 1)
        )
        g.require(same, "the heads of the batch are not reshaped")
    require_kernel(g, "GatedRelativePositionBias", q)
    dtype = dtype_of(g, q)
    ones: Operand = np.ones((1, queries.count, 1, 1), dtype=dtype)
    zeros = np.zeros(queries.count * queries.length, dtype=dtype)
    bias = _once(g, bias, batch, (heads, steps, steps))
    inputs = [queries.flat(g), zeros, bias, w, b, eco or ones]
    options = {"num_heads": queries.count}
    new = NewNode("GatedRelativePositionBias", inputs, options, MICROSOFT)
    return {y: g.op.Reshape(new, shape, allowzero=1) if shape else new}


def _once(g: RewriteContext, bias: str, batch: Dim, dims: Shape) -> str:
    """The bias, before it is repeated for the batch if it is."""
    other = "the bias is not the one of the heads"
    repeat = g.producer_or_none(bias, "Tile", "Expand")
    if repeat is not None:
        g.require(proven_equal(g, g.shape_of(bias), (batch, *dims)), other)
        g.look_at(repeat)
        bias = repeat.input[0]
    g.require(proven_equal(g, g.shape_of(bias), (1, *dims)), other)
    return bias
