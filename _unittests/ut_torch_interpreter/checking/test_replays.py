"""The nodes of one result, alone."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from torch_interpreter.checking.replays import extract, nodes_of, run_model, with_outputs

MODEL = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[3] x, bool c) => (float[3] y) <float[1] two = {2}> {
        a = Exp(x)
        b = Mul(a, two)
        d = If(c) <then_branch = t () => (float[3] u) { u = Neg(b) },
                   else_branch = e () => (float[3] v) { v = Abs(x) }>
        y = Add(d, a)
    }
""")


@pytest.mark.parametrize(
    "name,known,expected",
    [
        ("y", ["x", "c"], ["Exp", "Mul", "If", "Add"]),
        ("y", ["x", "c", "d"], ["Exp", "Add"]),
        ("d", ["x", "c", "a"], ["Mul", "If"]),
        ("d", ["x", "c", "b"], ["If"]),
        ("x", ["x"], []),
    ],
)
def test_nodes_of(name, known, expected):
    assert [n.op_type for n in nodes_of(MODEL, name, known)] == expected


def test_extract_with_the_weights_and_captures():
    x = np.array([1, 2, 3], dtype=np.float32)
    values = {"x": x, "c": np.array(True), "a": x * 10}
    alone, feeds = extract(MODEL, "d", values)
    assert sorted(feeds) == ["a", "c", "x"]
    assert [i.name for i in alone.graph.initializer] == ["two"]
    assert run_model(alone, feeds)["d"].tolist() == (-20 * x).tolist()


def test_with_outputs_changes_a_copy():
    more = with_outputs(MODEL, ["a", "y"])
    assert [o.name for o in more.graph.output] == ["y", "a"]
    assert [o.name for o in MODEL.graph.output] == ["y"]
