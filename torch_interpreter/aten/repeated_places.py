"""Reductions of values that may reach the same place.

ScatterND has fewer nodes, but onnxruntime computes it in several threads when the tensor is large:
values that meet are lost. It computes ScatterElements in one thread.
"""

from __future__ import annotations

from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.symbols import int_vector
from .operands import shape_tensor_of


def reduce_slices(
    g: GraphWriter, x: Tensor, axis: int, index: Tensor, slices: str, reduction: str
) -> str:
    """Reduces slices into those of x at the positions of a vector."""
    others = [i for i in range(g.get_rank(slices)) if i != axis]
    if others:
        column = g.op.UnsqueezeAnyOpset(index, int_vector(others))
        index = g.op.Expand(column, shape_tensor_of(g, slices))
    return g.op.ScatterElements(x, index, slices, axis=axis, reduction=reduction)
