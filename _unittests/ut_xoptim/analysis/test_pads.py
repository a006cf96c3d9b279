"""The elements that a Pad adds."""

from __future__ import annotations

import pytest

from xoptim.analysis.pads import adds_zeros, pads_of
from xoptim.authoring.context import context_of
from xoptim.testing import optimizer_of

#: inputs and attributes of the node -> padding before and after each axis, whether it is zeros
CASES = {
    "Pad(x, four)": ([[1, 0], [0, 2]], True),
    "Pad(x, four, zero)": ([[1, 0], [0, 2]], True),
    "Pad(x, four, one)": ([[1, 0], [0, 2]], False),
    'Pad<mode = "edge">(x, four)': ([[1, 0], [0, 2]], False),
    "Pad(x, two, , last)": ([[0, 3], [0, 4]], True),
}


@pytest.mark.parametrize("node", CASES)
def test_pads(node: str) -> None:
    queries = optimizer_of(
        f"""agraph (float[a, b] x) => (float[c, d] y) <
        int64[4] four = {{1, 0, 0, 2}}, int64[2] two = {{3, 4}}, int64[1] last = {{-1}},
        float zero = {{0}}, float one = {{1}}> {{ y = {node} }}"""
    )
    g, pad = context_of(queries), queries.node_before("y")
    pads, zeros = CASES[node]
    assert pads_of(g, pad, 2).tolist() == pads
    assert adds_zeros(g, pad) is zeros
