"""Recurrent layers: LSTM, GRU, RNN, one node for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import aten_table, curried
from ..writing.symbols import int_vector
from .operands import cast
from .projected_lstm import going_on, projected_lstm

#: function of torch -> operator, position in torch of each gate of ONNX, attributes
_LAYERS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "lstm": ("LSTM", (0, 3, 1, 2), {}),
    "gru": ("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    "rnn_tanh": ("RNN", (0,), {}),
    "rnn_relu": ("RNN", (0,), {"activations": ["Relu"]}),
}


def _gates(g: GraphWriter, x: str, order: Sequence[int]) -> str:
    """The gates of a weight or a bias in the order of ONNX."""
    if len(order) == 1:
        return x
    size = int(g.get_shape(x)[0]) // len(order)
    rows = np.concatenate([np.arange(i * size, (i + 1) * size) for i in order])
    return g.op.Gather(x, rows.astype(np.int64), axis=0)


def _stacked(g: GraphWriter, values: Sequence[str]) -> str:
    """Concatenates one tensor for each direction."""
    wide = [g.op.UnsqueezeAnyOpset(v, int_vector([0])) for v in values]
    return wide[0] if len(wide) == 1 else g.op.Concat(*wide, axis=0)


def _weights(
    g: GraphWriter, params: Sequence[Sequence[str]], order: Sequence[int]
) -> list[str | None]:
    """W, R and B of a layer, from the weights torch has for each direction."""
    made: list[str | None] = [
        _stacked(g, [_gates(g, p[i], order) for p in params]) for i in range(2)
    ]
    if len(params[0]) == 2:
        return [*made, None]
    biases = [g.op.Concat(*(_gates(g, b, order) for b in p[2:]), axis=0) for p in params]
    return [*made, _stacked(g, biases)]


@curried
def _recurrent(
    row: tuple[str, tuple[int, ...], dict[str, Any]],
    g: GraphWriter,
    x: str,
    hx: str | Sequence[str],
    params: Sequence[str],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[str]:
    of_lengths = _of_lengths(row)
    y = g.op.Transpose(x, perm=[1, 0, 2]) if batch_first else x
    options = has_biases, num_layers, dropout, train, bidirectional
    y, *last = of_lengths(g, y, None, hx, params, *options)
    return [g.op.Transpose(y, perm=[1, 0, 2]) if batch_first else y, *last]


@curried
def _of_lengths(
    row: tuple[str, tuple[int, ...], dict[str, Any]],
    g: GraphWriter,
    x: str,
    lengths: str | None,
    hx: str | Sequence[str],
    params: Sequence[str],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> list[str]:
    """A converter of a layer whose sequences have several lengths, time first."""
    op_type, order, attributes = row
    states = [hx] if isinstance(hx, str) else list(hx)
    directions, size = 1 + bidirectional, int(g.get_shape(states[-1])[2])
    n = len(params) // (num_layers * directions)
    projected = n > (4 if has_biases else 2)
    options = {
        **{k: v * directions for k, v in attributes.items() if isinstance(v, list)},
        **{k: v for k, v in attributes.items() if not isinstance(v, list)},
        "hidden_size": size,
        "direction": "bidirectional" if bidirectional else "forward",
    }
    steps = None if lengths is None else cast(g, lengths, TensorProto.INT32)
    alive = going_on(g, x, lengths) if projected else ""
    y = x
    last: list[list[str]] = [[] for _ in states]
    for layer in range(num_layers):
        first = layer * directions
        own = [list(params[(first + d) * n : (first + d + 1) * n]) for d in range(directions)]
        bounds = int_vector([first]), int_vector([first + directions]), int_vector([0])
        begin = [s if num_layers == 1 else g.op.Slice(s, *bounds) for s in states]
        if projected:
            y, *ends = projected_lstm(g, y, alive, begin, own)
        else:
            inputs = [y, *_weights(g, own, order), steps, *begin]
            y, *ends = several(g, op_type, 1 + len(states), *inputs, **options)
            y = _joined_directions(g, y, size * directions)
        for seen, end in zip(last, ends, strict=True):
            seen.append(end)
    return [y, *(v[0] if len(v) == 1 else g.op.Concat(*v, axis=0) for v in last)]


def _joined_directions(g: GraphWriter, y: str, size: int) -> str:
    """(time, direction, batch, size) -> (time, batch, all the directions)."""
    return g.op.Reshape(g.op.Transpose(y, perm=[0, 2, 1, 3]), int_vector([0, 0, size]))


aten_table(_recurrent, _LAYERS, "torch_interpreter.{}.default")
aten_table(_of_lengths, _LAYERS, "torch_interpreter.{}_of_lengths.default")
