"""Recurrent networks: RNN, GRU, LSTM."""

from __future__ import annotations

from ...dims import Dim, Shape
from ...facts.facts import ResultFacts
from ..common import first_type, merge_dim, refuses_negative, several
from ..context import ShapeContext
from ..shipped import shipped_function


def _hidden_size(ctx: ShapeContext) -> Dim:
    """Number of neurons, from the attribute or from the recurrence weights."""
    size: Dim | None = ctx.attr("hidden_size")
    if size is not None:
        return size
    recurrence = ctx.shape(2)
    return recurrence[-1] if recurrence else ctx.new_dim("hidden")


@shipped_function("RNN", "GRU", "LSTM")
@refuses_negative
def recurrent(ctx: ShapeContext) -> list[ResultFacts]:
    """All the hidden states, the last one, and the last cell for LSTM.

    `layout=1` puts the batch first. In opset 1 `output_sequence=0` drops the first output, which
    is then an empty name: its facts are harmless. The weights say how many values a step has.
    """
    elem_type = first_type(ctx, 0, 1, 2)
    shape = ctx.shape(0)
    directions = 2 if ctx.attr("direction", "forward") == "bidirectional" else 1
    if shape is None or len(shape) != 3:
        states = [ResultFacts(elem_type, None, 3) for _ in range(2)]
        return several(ctx, ResultFacts(elem_type, None, 4), *states)
    weight = ctx.shape(1)
    if weight is not None and len(weight) == 3:
        merge_dim(ctx, shape[2], weight[2])
    hidden = _hidden_size(ctx)
    every: Shape
    last: Shape
    if ctx.attr("layout", 0):
        batch, steps = shape[:2]
        every, last = (batch, steps, directions, hidden), (batch, directions, hidden)
    else:
        steps, batch = shape[:2]
        every, last = (steps, directions, batch, hidden), (directions, batch, hidden)
    states = [ResultFacts(elem_type, last) for _ in range(2)]
    return several(ctx, ResultFacts(elem_type, every), *states)
