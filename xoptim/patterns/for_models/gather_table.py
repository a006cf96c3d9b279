"""Tabulates a function of integers that indexes a table: the rows of a new table replace it."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import NodeProto

from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.axes import axis_of
from ...analysis.values.integer_functions import OPERATORS, Values, functions_to, values_of
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: fewest nodes of the function, which a Clip replaces
_LEAST = 3
#: most bytes of the new table
_BYTES = 2**20


@rewrite(
    "default",
    "model",
    root="Gather",
    reads=OPERATORS,
    min_opset=12,
    priority="late",
    precision="rounding",
)
def gather_table(g: RewriteContext, node: NodeProto) -> NewNode:
    """Gather(table, f(n)) -> Gather(new table, Clip(n, low, high)).

    1. table is a constant, its rows are read along the first axis;
    2. f is made of elementwise operators, three or more, whose other operands are constant numbers;
       nothing else reads the results between n and the rows;
    3. n holds integers, f is proven constant below low and above high, which are less than
       4096 from 0; the new table has 1 MB at most;
    4. logarithms of onnxruntime, of numpy and the nearest float give the same rows.

    These are the buckets of relative positions, a logarithm of far ones (T5, MPNet, WavLM), which
    are computed once. Negative integers index the table from its end.
    """
    table, indices = g.inputs(node)
    shape = g.known(g.get_constant_shape(table), "the table is not constant")
    g.require(shape and axis_of(g, node, len(shape), 0) == 0, "the rows are not read")
    new_rows = None
    for function in functions_to(g, indices):
        if len(function.nodes) < _LEAST:
            continue
        new_rows = values_of(g, function, shape[0])
        if new_rows is not None:
            break
    values = g.known(new_rows, "the rows are not at a function of integers, constant far from 0")
    kind = g.type_of(function.source)
    g.require(has_kernel("Clip", kind, g.main_opset), "runtimes do not bound these integers")
    g.look_at(*function.nodes)
    rows = _rows(values)
    g.require(rows.size * prod(shape[1:]) * 8 <= _BYTES, "the new table is too big")
    low, high = values.low, values.low + values.values.size - 1
    bounded = g.op.Clip(
        function.source, g.scalar(low, function.source), g.scalar(high, function.source)
    )
    return g.like(node, np.ascontiguousarray(g.constant_of(table)[rows]), bounded)


def _rows(values: Values) -> np.ndarray:
    """The rows of the new table: those of 0, 1, 2, ..., then those of negative integers."""
    return np.roll(values.values, values.low)
