"""Tensors go to onnxruntime and come back without copy."""

from __future__ import annotations

import onnx
import pytest
import torch

from torch_interpreter.backend.compiled_graph import CompiledFxGraph, ort_value
from torch_interpreter.backend.graph_outputs import Computed, Constant, InputBack

MODEL = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[a, b] x, int64 n) => (float[a, b] y, int64 m) { y = Add(x, x) m = Add(n, n) }
""")


def test_arguments_and_outputs():
    outputs = [Constant(None), Computed(1, int), InputBack(2), Computed(0, order=(1, 0))]
    graph = CompiledFxGraph(MODEL, ["unread", "n", "x"], outputs)
    x = torch.arange(6.0).reshape(2, 3)
    args = [None, 4, x]
    none, number, same, twice = graph(args)
    assert args == [], "the tensors are freed as soon as nobody needs them"
    assert none is None and number == 8 and type(number) is int and same is x
    assert torch.equal(twice, x * 2) and twice.stride() == (1, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.int64])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3)])
def test_memory_is_shared(dtype, shape):
    x = torch.ones(shape).to(dtype)
    value = ort_value(x)
    assert value.data_ptr() == x.data_ptr()
    back = torch.from_dlpack(value)
    assert back.dtype == dtype and torch.equal(back, x)


def test_a_view_and_a_weight():
    x = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    assert torch.equal(torch.from_dlpack(ort_value(x.t())), x.t())


def test_without_model():
    assert CompiledFxGraph(None, ["x"], [InputBack(0), Constant(2)])([5]) == (5, 2)
