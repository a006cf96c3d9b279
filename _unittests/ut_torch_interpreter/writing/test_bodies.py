"""Bodies of Loop and Scan written as functions."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from torch_interpreter.writing.bodies import loop, scan
from xbuilder import GraphBuilder
from xoptim.testing import run_onnxruntime


def _model(write, *names, itype=TensorProto.FLOAT):
    """A model whose inputs are vectors, and what a function makes of them."""
    g = GraphBuilder(18, ir_version=9)
    inputs = [g.make_tensor_input(name, itype, ("a",)) for name in names]
    for i, name in enumerate(write(g, *inputs)):
        g.make_tensor_output(g.op.Identity(name, outputs=[f"y{i}"]), itype, None)
    return g.to_onnx()


@pytest.mark.parametrize("itype", [TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE])
def test_numbers_have_the_type_of_the_other_operand(itype):
    """Names of the graph around the body do not hide those of the body."""

    def write(g, k, state_1):
        def step(i, total):
            above = total > 3.0
            added = total + i.op.Cast(i + 1, to=g.get_type(k)) * k
            return [i.op.Where(above, 0.5, added), -total]

        return loop(g, step, np.array(3), state_1)

    onx, dtype = _model(write, "k", "state_1", itype=itype), tensor_dtype_to_np_dtype(itype).type
    k, total = np.array([1, 2], dtype), np.array([0, 4], dtype)
    last, rows = run_onnxruntime(onx, {"k": k, "state_1": total})
    states = [total]
    for i in range(3):
        states.append(np.where(states[-1] > 3, dtype(0.5), states[-1] + dtype(i + 1) * k))
    np.testing.assert_array_equal(last, states[-1])
    np.testing.assert_array_equal(rows, -np.stack(states[:-1]))
    assert last.dtype == dtype


def test_a_step_decides_when_the_loop_ends():
    def write(g, x):
        def step(i, y):
            return [i.op.Cast(i.op.ReduceMax(y, keepdims=0) < 100.0, to=TensorProto.BOOL), y + y, y]

        return loop(g, step, None, x, conditional=True)

    last, rows = run_onnxruntime(_model(write, "x"), {"x": np.array([1, 30], np.float32)})
    np.testing.assert_array_equal(last, [8, 240])
    np.testing.assert_array_equal(rows, [[1, 30], [2, 60], [4, 120]])


def test_a_scan_reads_rows_and_returns_a_state_twice():
    def write(g, x):
        def step(high, row):
            found = row.op.Max(high, row)
            return [found, found]

        start = g.op.ReduceMin(x, keepdims=0)
        return scan(g, step, [start], [x])

    last, rows = run_onnxruntime(_model(write, "x"), {"x": np.array([2, 1, 5, 4], np.float32)})
    assert last == 5
    np.testing.assert_array_equal(rows, [2, 2, 5, 5])


def test_what_is_given_is_returned():
    def write(g, x, y):
        return loop(g, lambda i, a, b: [b, a, ~(a > b) & (a < b)], np.array(2), x, y)[:2]

    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    a, b = run_onnxruntime(_model(write, "x", "y"), {"x": x, "y": y})
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b, y)
