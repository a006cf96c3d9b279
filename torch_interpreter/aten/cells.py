"""One step of a recurrent layer, of any type: the operators of ONNX compute with 32 bits."""

from __future__ import annotations

from collections.abc import Sequence

from ..writing.graph_writer import GraphWriter, op_named, several
from ..writing.registry import aten, aten_table, curried
from ..writing.symbols import int_vector
from .matmul import linear


def _pieces(g: GraphWriter, x: str, n: int) -> tuple[str, ...]:
    """*n* equal parts of the last dimension."""
    size = int(g.get_shape(x)[-1]) // n
    return several(g, "Split", n, x, int_vector([size] * n), axis=-1)


@aten("aten.lstm_cell.default")
def lstm_cell(
    g: GraphWriter,
    x: str,
    hx: Sequence[str],
    w_ih: str,
    w_hh: str,
    b_ih: str | None = None,
    b_hh: str | None = None,
) -> list[str]:
    """The next h and c."""
    gates = g.op.Add(linear(g, x, w_ih, b_ih), linear(g, hx[0], w_hh, b_hh))
    i, f, n, o = _pieces(g, gates, 4)
    kept = g.op.Mul(g.op.Sigmoid(f), hx[1])
    cell = g.op.Add(kept, g.op.Mul(g.op.Sigmoid(i), g.op.Tanh(n)))
    return [g.op.Mul(g.op.Sigmoid(o), g.op.Tanh(cell)), cell]


@aten("aten.gru_cell.default")
def gru_cell(
    g: GraphWriter,
    x: str,
    hx: str,
    w_ih: str,
    w_hh: str,
    b_ih: str | None = None,
    b_hh: str | None = None,
) -> str:
    """The next h: the reset gate multiplies the product of h."""
    read, written, new = _pieces(g, linear(g, x, w_ih, b_ih), 3)
    read_h, written_h, new_h = _pieces(g, linear(g, hx, w_hh, b_hh), 3)
    reset = g.op.Sigmoid(g.op.Add(read, read_h))
    update = g.op.Sigmoid(g.op.Add(written, written_h))
    found = g.op.Tanh(g.op.Add(new, g.op.Mul(reset, new_h)))
    return g.op.Add(g.op.Mul(g.op.Sub(hx, found), update), found)


@curried
def _rnn_cell(
    op_type: str,
    g: GraphWriter,
    x: str,
    hx: str,
    w_ih: str,
    w_hh: str,
    b_ih: str | None = None,
    b_hh: str | None = None,
) -> str:
    total = g.op.Add(linear(g, x, w_ih, b_ih), linear(g, hx, w_hh, b_hh))
    return op_named(g, op_type)(total)


aten_table(_rnn_cell, {"tanh": "Tanh", "relu": "Relu"}, "aten.rnn_{}_cell.default")
