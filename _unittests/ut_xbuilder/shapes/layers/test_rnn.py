"""Recurrent networks."""

from __future__ import annotations

import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer

from xbuilder import GraphBuilder
from xbuilder.facts.facts import ResultFacts
from xoptim.testing import model_from_text

SIZES = [{"s": 3, "b": 2}, {"s": 1, "b": 4}]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.parametrize("op_type", sorted(GATES))
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrent_runs(op_type: str, direction: str) -> None:
    """All the outputs, real runs."""
    count, gates = 2 if direction == "bidirectional" else 1, GATES[op_type]
    inputs = [In(("s", "b", 3)), In((count, gates * 5, 3)), In((count, gates * 5, 5))]
    last = (count, "b", 5)
    expected = [("s", count, "b", 5), last, last][: 3 if op_type == "LSTM" else 2]
    attributes = {"hidden_size": 5, "direction": direction}
    check_runs(op_type, inputs, SIZES, expected, attributes=attributes, n_outputs=len(expected))


@pytest.mark.parametrize("op_type", sorted(GATES))
def test_recurrent_layout(op_type: str) -> None:
    """The batch may be first."""
    recurrence = ResultFacts(1, (1, 8, 4))
    inputs = [ResultFacts(1, ("b", "s", 3)), ResultFacts(1), recurrence]
    found = infer(op_type, inputs, 2, attributes={"layout": 1})
    assert [f.shape for f in found] == [("b", "s", 1, 4), ("b", 1, 4)]


def test_recurrent_unknown() -> None:
    """Ranks."""
    found = infer("LSTM", [ResultFacts(1), ResultFacts(1), ResultFacts(1)], 3)
    assert [(f.type, f.rank) for f in found] == [(1, 4), (1, 3), (1, 3)]


@pytest.mark.parametrize("op_type", sorted(GATES))
def test_the_weights_tell_the_width(op_type: str) -> None:
    gates = GATES[op_type] * 4
    text = f"""agraph (float[s, 1, w] x) => (float[a, 1, 1, 4] y)
    <float[1, {gates}, 3] k = {{{", ".join(["1"] * gates * 3)}}},
     float[1, {gates}, 4] r = {{{", ".join(["1"] * gates * 4)}}}> {{
        y, _ = {op_type} <hidden_size = 4> (x, k, r)
    }}"""
    builder = GraphBuilder(model_from_text(text, 18), infer_shapes_options=True)
    assert builder.constraints.canonical("w") == 3
