"""Order of the nodes."""

from __future__ import annotations

import pytest
from ut_xbuilder.graph_checks import op_types, optimized, parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.passes import run_pass

MODEL = parse(
    """
    agraph (float[N,2] x) => (float[N,2] y, int64[2] s)
    { a = Neg(x) b = Exp(a) c = Abs(b) s = Shape(a) y = Add(c, b) }
    """
)


@pytest.mark.parametrize(
    "order,expected",
    [
        ("NONE", ["Neg", "Exp", "Abs", "Shape", "Add"]),
        ("SHAPE", ["Neg", "Shape", "Exp", "Abs", "Add"]),
    ],
)
def test_orders(order, expected):
    assert op_types(optimized(MODEL, order=order)) == expected


def test_random_is_a_topological_order_and_always_the_same():
    found = [op_types(optimized(MODEL, order="RANDOM")) for _ in range(2)]
    assert found[0] == found[1]


def test_the_number_of_moves_is_reported():
    builder = GraphBuilder(MODEL, optimization_options=OptimizationOptions(patterns=None))
    assert run_pass(builder.graph, "order")[0].rows[0]["changed"] == 3
    assert run_pass(builder.graph, "order")[0].rows[0]["changed"] == 0
    builder.store.check()


def test_topological_sort():
    builder = GraphBuilder(MODEL)
    assert builder.topological_sort() == 0
