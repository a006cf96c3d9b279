"""Export without data, weights given afterwards."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import ExportOptions, add_weights, to_onnx
from torch_interpreter.patches.fake_tensors import has_no_data, without_data
from xbuilder.errors import InvalidModelError, OptionError

X = torch.randn(3, 4)
OTHER = torch.randn(5, 4)


class Model(torch.nn.Module):
    """Weights, tied ones, a buffer out of the state_dict, a constant, an in-place operator."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.arange(4.0), persistent=False)

    def forward(self, x):
        y = self.first(x) * self.scale + torch.arange(4, device=x.device)
        y += self.second(x)
        return y @ torch.ones(4, 2, dtype=x.dtype, device=x.device)


def weights_of(model):
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def run_file(path, x):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x.numpy()})


def on_meta():
    with torch.device("meta"):
        return Model()


def meta():
    return on_meta(), X.to("meta")


def meta_weights_only():
    return on_meta(), X


def fake():
    with FakeTensorMode():
        return Model(), torch.empty(3, 4)


@pytest.mark.parametrize("place", [meta, meta_weights_only, fake])
@pytest.mark.parametrize("strategy", ["nostrict", "strict", "dec", "tracing"])
def test_weights_without_data(place, strategy, tmp_path):
    reference = Model()
    weights = weights_of(reference)
    model, x = place()
    options = ExportOptions(strategy=strategy, fake=True)
    onx = to_onnx(model, (x,), dynamic_shapes=({0: "batch"},), export_options=options)
    assert onx.graph.input[0].name == "x"
    assert {i.name for i in onx.graph.input} == {"x", *weights}
    before = onx.SerializeToString()
    add_weights(onx, weights).save(tmp_path / "model.onnx")
    assert onx.SerializeToString() == before
    for value in (X, OTHER):
        assert_same(reference(value), run_file(tmp_path / "model.onnx", value), 1e-5)


def test_the_model_keeps_its_weights():
    model = on_meta()
    before = weights_of(model)
    to_onnx(model, (X.to("meta"),), export_options="fake")
    after = weights_of(model)
    assert list(after) == list(before) and all(after[k] is before[k] for k in before)
    assert model.second.weight is model.first.weight


def test_weights_with_data_stay_in_the_model():
    model = Model()
    onx = to_onnx(model, (X.to("meta"),), dynamic_shapes=({0: "b"},), export_options="fake")
    assert [i.name for i in onx.graph.input] == ["x"]
    assert_same(model(OTHER), run_ort(onx, [OTHER]), 1e-5)
    with pytest.raises(OptionError, match="has all its weights"):
        add_weights(onx, {})


def test_weights_without_data_are_inputs_of_functions():
    reference = Model()
    options = ExportOptions(fake=True)
    onx = to_onnx(
        on_meta(),
        (X.to("meta"),),
        export_options=options,
        export_modules_as_functions=True,
    )
    assert onx.functions
    full = add_weights(onx, weights_of(reference)).to_model_proto()
    assert_same(reference(X), run_ort(full, [X]), 1e-5)


def test_weights_are_read_one_by_one(tmp_path):
    weights = weights_of(Model())
    read = []

    class Reader(dict):
        def __getitem__(self, name):
            read.append(name)
            return weights[name].detach().numpy()

    onx = to_onnx(on_meta(), (X.to("meta"),), export_options="fake")
    container = add_weights(onx, Reader(weights))
    assert read == []
    container.save(tmp_path / "model.onnx", size_threshold=0)
    assert sorted(read) == sorted(weights)


def test_a_missing_weight():
    onx = to_onnx(on_meta(), (X.to("meta"),), export_options="fake")
    state = Model().state_dict()
    with pytest.raises(OptionError, match=r"1 weights of the model are missing: \['scale'\]"):
        add_weights(onx, state)


@pytest.mark.parametrize("value", [np.zeros(3, np.float32), np.zeros(4)])
def test_a_weight_of_another_type_or_shape(value, tmp_path):
    onx = to_onnx(on_meta(), (X.to("meta"),), export_options="fake")
    container = add_weights(onx, {**weights_of(Model()), "scale": value})
    with pytest.raises(InvalidModelError, match="Weight 'scale' is expected to have type FLOAT"):
        container.save(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_weight_with_the_name_of_an_input():
    reference = torch.nn.Linear(4, 4)
    model = torch.nn.Linear(4, 4, device="meta")
    onx = to_onnx(model, (X,), input_names=["bias"], export_options="fake")
    assert onx.graph.input[0].name == "bias"
    full = add_weights(onx, reference.state_dict()).to_model_proto()
    assert_same(reference(X), run_ort(full, [X]), 1e-5)


def test_without_fake_the_weights_are_asked_for():
    with pytest.raises(OptionError, match=r"has no data.*ExportOptions\(fake=True\)"):
        to_onnx(on_meta(), (X.to("meta"),))


@pytest.mark.parametrize("name", ["validate_onnx", "validate_ep"])
def test_nothing_is_validated_without_data(name):
    with pytest.raises(OptionError, match=f"{name} needs data"):
        if name == "validate_ep":
            ExportOptions(fake=True, validate_ep=True)
        to_onnx(Model(), (X,), export_options="fake", validate_onnx=True)


def test_without_data_makes_one_tensor_for_one_tensor():
    model = on_meta()
    with without_data(model, [X, X, None, 3]) as (a, b, none, number):
        assert a is b and has_no_data(a) and a.device.type == "cpu"
        assert none is None and number == 3
        assert model.second.weight is model.first.weight
        assert model.first.weight.device.type == "cpu" and has_no_data(model.first.weight)
    assert model.first.weight.is_meta
    assert not has_no_data(X) and not has_no_data(3)
