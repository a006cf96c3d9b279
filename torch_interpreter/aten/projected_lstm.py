"""LSTM with a projection of its output, which ONNX has no operator for: a Scan over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..writing.bodies import Value, scan
from ..writing.graph_writer import GraphWriter
from ..writing.symbols import dim_of, first_integers, int_vector
from .operands import INT64, const


def projected_lstm(
    g: GraphWriter,
    x: str,
    alive: str,
    states: Sequence[str],
    params: Sequence[Sequence[str]],
) -> list[str]:
    """One layer: the results of every time, and the states after the last one.

    :param g: builder
    :param x: input, time first
    :param alive: see :func:`going_on`
    :param states: h and c, one matrix for each direction
    :param params: weights of each direction, the projection last
    """
    found = [_direction(g, x, alive, states, own, d) for d, own in enumerate(params)]
    if len(found) == 1:
        return found[0]
    y, *ends = (list(v) for v in zip(*found, strict=True))
    return [g.op.Concat(*y, axis=2), *(g.op.Concat(*v, axis=0) for v in ends)]


def going_on(g: GraphWriter, x: str, lengths: str | None) -> str:
    """Whether each sequence goes on at each time: (time, batch, 1)."""
    rows = g.op.UnsqueezeAnyOpset(first_integers(g, dim_of(g, x, 0)), int_vector([1, 2]))
    if lengths is None:
        return g.op.GreaterOrEqual(rows, const(0, INT64))
    return g.op.Less(rows, g.op.UnsqueezeAnyOpset(lengths, int_vector([0, 2])))


def _direction(
    g: GraphWriter, x: str, alive: str, states: Sequence[str], params: Sequence[str], number: int
) -> list[str]:
    """One direction, the second one goes back in time."""
    w, r, *biases, projection = params
    gates = g.op.MatMul(x, g.op.Transpose(w, perm=[1, 0]))
    if biases:
        gates = g.op.Add(gates, g.op.Add(*biases))
    recurrent, turned = (g.op.Transpose(v, perm=[1, 0]) for v in (r, projection))
    pieces = {"num_outputs": 4} if g.main_opset >= 18 else {}

    def step(h: Value, c: Value, x: Value, alive: Value) -> list[Value]:
        """h, c and y from the products of an input, alive whether each sequence still goes on;
        gates are in the order of torch: input, forget, cell, output."""
        op = h.op
        i, f, n, o = op.several("Split", 4, x + h @ recurrent, axis=-1, **pieces)
        cell = op.Sigmoid(f) * c + op.Sigmoid(i) * op.Tanh(n)
        projected = (op.Sigmoid(o) * op.Tanh(cell)) @ turned
        ends = [op.Where(alive, projected, h), op.Where(alive, cell, c)]
        return [*ends, op.Where(alive, projected, 0.0)]

    first = [g.op.Gather(s, np.array(number), axis=0) for s in states]
    back = {f"scan_{side}_directions": [number] * n for side, n in (("input", 2), ("output", 1))}
    h, c, y = scan(g, step, first, [gates, alive], **(back if number else {}))
    return [y, *(g.op.UnsqueezeAnyOpset(v, int_vector([0])) for v in (h, c))]
