"""Counting nodes and bytes."""

from __future__ import annotations

import numpy as np
import onnx.numpy_helper as onh
import onnx.parser
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.reports.model_summary import (
    compare_ops,
    count_ops,
    is_folding_limited,
    pattern_totals,
    weight_bytes,
)

WITH_IF = """
<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
g (float[N] x, bool c) => (float[N] y) {
    a = Neg(x)
    b = f.twice(a)
    y = If(c) <
        then_branch = t () => (float[N] t1) { t1 = Neg(b) },
        else_branch = e () => (float[N] e1) { e1 = Abs(b) }
    >
}
<domain: "f", opset_import: ["" : 18]>
twice (x) => (y) { y = Add(x, x) }
"""
SIMPLE = '<ir_version: 8, opset_import: ["" : 18]> g (float[N] x) => (float[N] y) { y = Neg(x) }'


def test_subgraphs_and_functions_are_counted():
    counts = count_ops(onnx.parser.parse_model(WITH_IF))
    assert counts == {"Neg": 2, "Abs": 1, "If": 1, "f.twice": 1, "Add": 1}


def test_compare_ops():
    rows = compare_ops(onnx.parser.parse_model(WITH_IF), onnx.parser.parse_model(SIMPLE))
    assert {"op_type": "Neg", "before": 2, "after": 1, "delta": -1} in rows
    assert {r["op_type"] for r in rows} == {"Neg", "Abs", "If", "f.twice", "Add"}
    assert compare_ops(onnx.parser.parse_model(SIMPLE), onnx.parser.parse_model(SIMPLE)) == [
        {"op_type": "Neg", "before": 1, "after": 1, "delta": 0}
    ]


def test_weight_bytes():
    model = onnx.parser.parse_model(SIMPLE)
    assert weight_bytes(model) == 0
    model.graph.initializer.append(onh.from_array(np.zeros((4, 5), np.float32), "w"))
    assert weight_bytes(model) == 80
    external = model.graph.initializer.add(name="e", data_type=1, data_location=1, dims=[100])
    external.external_data.add(key="length", value="400")
    assert weight_bytes(model) == 480
    constant = "<value: tensor = float[3] {1., 2., 3.}>"
    text = WITH_IF.replace("t1 = Neg(b)", f"c = Constant{constant}() t1 = Mul(b, c)")
    assert weight_bytes(onnx.parser.parse_model(text)) == 12


def test_pattern_totals():
    rows = [
        {"pattern": "remove_unused", "time_in": 0.5, "removed": 1, "added": 0, "changed": 1},
        {"pattern": "match_A_B", "time_in": 1.0, "instances": 2, "iteration": 0},
        {"pattern": "apply_A_B", "time_in": 2.0, "instances": 1, "removed": 3, "added": 1},
        {"pattern": "apply_A_B", "time_in": 2.0, "instances": 1, "removed": 3, "added": 1},
        {"pattern": "match_C", "time_in": 1.0, "instances": 0},
    ]
    assert pattern_totals(rows) == [
        {"pattern": "A_B", "instances": 2, "removed": 6, "added": 2, "time_in": 5.0},
        {"pattern": "remove_unused", "instances": 1, "removed": 1, "added": 0, "time_in": 0.5},
        {"pattern": "C", "instances": 0, "removed": 0, "added": 0, "time_in": 1.0},
    ]


def body(result: str, size: int) -> str:
    """An If whose first branch holds a constant of some size."""
    tensor = f"int64[1] {{{size}}}"
    return f"""
    {result} = If(c) <
        then_branch = t () => (float[M] {result}1) {{
            {result}s = Constant<value = {tensor}>()
            {result}2 = ConstantOfShape<value = float[1] {{1}}>({result}s)
            {result}3 = CumSum({result}2, axis)
            {result}1 = Mul({result}3, x) }},
        else_branch = e () => (float[N] {result}4) {{ {result}4 = Abs(x) }}
    >"""


@pytest.mark.parametrize("sizes", [(3, 3), (3, 100_000), (100_000, 3)])
def test_a_limit_in_one_of_two_bodies(sizes):
    """The bodies have different paths, whichever comes last."""
    text = f"""
    <ir_version: 8, opset_import: ["" : 18]> g (float[N] x, bool c) => (float[N] y, float[N] z)
    <int64 axis = {{0}}> {{ {body("y", sizes[0])} {body("z", sizes[1])} }}
    """
    options = OptimizationOptions(patterns="default", constant_size=1024)
    rows = GraphBuilder(onnx.parser.parse_model(text), optimization_options=options).optimize()
    assert is_folding_limited(rows) == (max(sizes) > 3)
