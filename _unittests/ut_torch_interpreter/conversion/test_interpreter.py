"""Nodes that are converted and nodes that are not."""

from __future__ import annotations

import torch
from ut_torch_interpreter.export_checks import assert_same, check_export, op_types, run_ort

from torch_interpreter import to_onnx
from torch_interpreter.writing.fx_nodes import live_nodes, source_line
from xbuilder import OptimizationOptions

X = torch.randn(4, 3)
OPTIONS = OptimizationOptions(patterns=None)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.linear = torch.nn.Linear(3, 2)
        self.unused = torch.nn.Linear(3, 2)

    def forward(self, x):
        self.count.add_(1)
        return self.linear(x)


def test_modified_buffers_are_not_computed():
    model = Model()
    onx = to_onnx(model, (X,), options=OPTIONS, optimize=False)
    assert op_types(onx) == ["Transpose", "MatMul", "Add"]
    assert {i.name for i in onx.graph.initializer} == {"linear.weight", "linear.bias"}
    assert_same(model(X), run_ort(onx, [X]), 1e-5)


def test_dead_nodes_are_not_converted():
    def fct(x):
        torch.special.i0(x)
        return x + 1

    assert op_types(check_export(fct, (X,), optimize=False)) == ["Add"]


def test_live_nodes_and_source_line():
    program = torch.export.export(Model(), (X,))
    node = next(n for n in program.graph.nodes if str(n.target) == "aten.linear.default")
    live = live_nodes(program.graph, [node])
    assert {n.name for n in live} == {"linear", "x", "p_linear_weight", "p_linear_bias"}
    assert "linear.py" in source_line(node)
    placeholder = next(n for n in program.graph.nodes if n.op == "placeholder")
    assert "did not record" in source_line(placeholder)


def test_batch_norm_in_training_mode():
    model = torch.nn.BatchNorm1d(3).train()
    onx = to_onnx(model, (X,), options=OPTIONS)
    assert_same(
        torch.nn.functional.batch_norm(X, None, None, training=True), run_ort(onx, [X]), 1e-4
    )


def test_shared_weights():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(7, 3)
            self.head = torch.nn.Linear(3, 7, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x):
            return self.head(self.embedding(x))

    onx = check_export(Tied(), (torch.tensor([[1, 2], [3, 4]]),), optimize=False)
    assert len(onx.graph.initializer) == 1


def test_types_and_shapes_come_from_torch():
    _, builder = to_onnx(
        Model(), (X,), options=OPTIONS, return_builder=True, dynamic_shapes=({0: "batch"},)
    )
    assert builder.get_shape("output_0") == ("batch", 2)


def test_graph_module_of_an_exported_program():
    module = torch.export.export(Model().eval(), (X,)).module()
    onx = to_onnx(module, (X,), options=OPTIONS)
    assert_same(module(X), run_ort(onx, [X]), 1e-5)
