"""The first module, then the first operator, that differ between torch and ONNX."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx import ModelProto, numpy_helper
from ut_torch_interpreter.export_checks import Mlp

from torch_interpreter import ExportOptions, ValidationError, compare_with_torch, to_onnx


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Mlp(), Mlp(), Mlp()])

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        first, second = x.split(2, dim=1)
        return first * 2, second


@pytest.fixture(scope="module")
def exported() -> tuple[Model, torch.Tensor, ModelProto]:
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(3, 4)
    return model, x, to_onnx(model, (x,), dynamic_shapes=({0: "batch"},))


def changed(onx: ModelProto, name: str, op_type: str) -> ModelProto:
    """A copy of a model where one node has another operator."""
    copy = ModelProto()
    copy.CopyFrom(onx)
    (node,) = [n for n in copy.graph.node if n.name == name]
    node.op_type = op_type
    return copy


def test_the_same(exported):
    model, x, onx = exported
    found = compare_with_torch(model, onx, (x,), dynamic_shapes=({0: "batch"},))
    assert found.ok and found.first is None and found.modules == {}
    assert str(found) == f"{len(found.compared)} results compared, no difference"
    assert {"linear_3", "relu_1", "add_2", "output_0", "output_1"} <= set(found.compared)


@pytest.mark.parametrize("patterns", ["default", "default+onnxruntime"])
def test_an_attention_is_the_same(patterns):
    """Its weights take the scale of the scores: the queries that are scaled have another name."""
    torch.manual_seed(0)
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    args = (torch.randn(2, 3, 8),) * 3
    onx = to_onnx(model, args, dynamic_shapes=({0: "batch"},) * 3, options=patterns)
    found = compare_with_torch(model, onx, args, dynamic_shapes=({0: "batch"},) * 3)
    assert found.ok and len(found.compared) > 5

    weight = next(i for i in onx.graph.initializer if i.name == "out_proj.weight")
    weight.CopyFrom(numpy_helper.from_array(2 * numpy_helper.to_array(weight), weight.name))
    first = compare_with_torch(model, onx, args, dynamic_shapes=({0: "batch"},) * 3).first
    (reader,) = [n.name for n in onx.graph.node if weight.name in n.input]
    assert first.alone and reader in first.nodes


def test_a_node_of_a_middle_layer_is_wrong(exported, tmp_path):
    model, x, onx = exported
    wrong = changed(onx, "layers.1.Relu", "Sigmoid")
    found = compare_with_torch(model, wrong, {"x": x}, folder=tmp_path / "replay")
    assert not found.ok
    assert found.first.source.module == "layers.1" and found.first.alone
    assert found.first.source.classes[-1] == "aten.relu.default"
    assert (found.first.result, found.first.nodes) == ("relu_1", ("layers.1.Relu",))
    assert "torch.relu(self.up(x))" in found.first.source.trace
    assert list(found.modules)[:2] == ["layers.1", "layers.1.down"]
    assert "layers.0" not in found.modules
    assert "module 'layers.1'" in str(found) and "replay.py" in str(found)
    replay = onnx.load(tmp_path / "replay" / "model.onnx")
    assert [n.op_type for n in replay.graph.node] == ["Sigmoid"]
    command = [sys.executable, str(found.replay)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "largest difference 0." in printed or "largest difference 1." in printed


def test_a_wrong_weight_is_found_where_it_is_used(exported, tmp_path):
    model, x, onx = exported
    wrong = ModelProto()
    wrong.CopyFrom(onx)
    (weight,) = [i for i in wrong.graph.initializer if i.name == "layers.2.up.weight"]
    value = numpy_helper.to_array(weight) + np.float32(1)
    weight.CopyFrom(numpy_helper.from_array(value, weight.name))
    onnx.save(wrong, tmp_path / "wrong.onnx")
    found = compare_with_torch(model, tmp_path / "wrong.onnx", (x,))
    assert found.first.source.module == "layers.2.up" and found.replay is None


class Cancels(torch.nn.Module):
    def forward(self, x):
        return x * 3 - x * 2.9


def test_what_only_follows_is_told_apart():
    """A factor wrong by less than the tolerance: the subtraction shows it, and is right."""
    x = torch.rand(5) + 1
    onx = to_onnx(Cancels(), (x,), optimize=False)
    (three,) = [i for i in onx.graph.initializer if numpy_helper.to_array(i).tolist() == 3]
    three.CopyFrom(numpy_helper.from_array(np.array(3.0001, np.float32), three.name))
    found = compare_with_torch(Cancels(), onx, (x,))
    assert [(d.source.classes[-1], d.alone) for d in found.differences] == [
        ("aten.sub.Tensor", False)
    ]
    assert found.first is found.differences[0]


def test_a_model_without_metadata(exported):
    model, x, _ = exported
    options = ExportOptions(node_sources=False)
    onx = to_onnx(model, (x,), export_options=options)
    assert compare_with_torch(model, onx, (x,)).ok
    (relu, *_) = [n for n in onx.graph.node if n.op_type == "Relu"]
    relu.op_type = "Exp"
    assert compare_with_torch(model, onx, (x,)).first.source.module == "layers.0"


def test_local_functions_are_one_operator(exported):
    model, x, _ = exported
    onx = to_onnx(model, (x,), export_modules_as_functions={Mlp})
    assert compare_with_torch(model, onx, (x,)).ok
    for node in onx.functions[0].node:
        if node.op_type == "Relu":
            node.op_type = "Exp"
    assert compare_with_torch(model, onx, (x,)).first.nodes == ("layers.0",)


def test_another_model_is_refused(exported):
    _, x, onx = exported
    with pytest.raises(ValidationError, match=r"1 outputs, the model has 2"):
        compare_with_torch(torch.nn.ReLU(), onx, (x,))
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Exp(x) }'
    other = onnx.parser.parse_model(text)
    wrong = compare_with_torch(torch.nn.ReLU(), other, (torch.ones(3),))
    assert [d.result for d in wrong.differences] == ["y"]


def test_a_model_that_does_not_run(exported):
    model, x, onx = exported
    wrong = changed(onx, "layers.1.Relu", "NoSuchOperator")
    with pytest.raises(ValidationError, match="onnxruntime does not run"):
        compare_with_torch(model, wrong, (x,))
