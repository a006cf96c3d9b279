"""Normalizations and dropout."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export, op_types, run_ort

from torch_interpreter import ConversionError, to_onnx
from xbuilder import OptimizationOptions

torch.manual_seed(0)
X = torch.randn(4, 6, 5)
IMAGE = torch.randn(3, 6, 5, 4)
DYNAMIC = ({0: "a"},)


def randomized(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.is_floating_point():
            torch.nn.init.uniform_(tensor, 0.5, 1.5)
    return model.eval()


@pytest.mark.parametrize("shape", [(5,), (6, 5)], ids=str)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("opset", [16, 18])
def test_layer_norm(shape, affine, opset):
    model = randomized(torch.nn.LayerNorm(shape, elementwise_affine=affine))
    onx = check_export(model, (X,), DYNAMIC, [(X[:1],)], target_opset=opset)
    assert ("LayerNormalization" in op_types(onx)) == (opset >= 17 and affine)


def test_layer_norm_without_bias_and_decomposed():
    check_export(randomized(torch.nn.LayerNorm(5, bias=False)), (X,))
    check_export(randomized(torch.nn.LayerNorm(5)), (X,), export_options="nostrict-dec")
    check_export(randomized(torch.nn.LayerNorm(5)).half(), (X.half(),), atol=1e-2)


class Statistics(torch.nn.Module):
    """The normalization, the mean and the inverse of the deviation, as the forward of training
    keeps them."""

    def __init__(self, bias: bool):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(5))
        self.bias = torch.nn.Parameter(torch.rand(5)) if bias else None

    def forward(self, x):
        return torch.ops.aten.native_layer_norm(x, [5], self.weight, self.bias, 1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("opset", [16, 18])
def test_statistics_of_layer_norm(bias, opset):
    """One node from opset 17, in float."""
    model, options = Statistics(bias), {"target_opset": opset}
    onx = check_export(model, (X,), DYNAMIC, [(X[:1],)], **options)
    assert (op_types(onx) == ["LayerNormalization"]) == (opset >= 17)
    onx = check_export(model.half(), (X.half(),), atol=1e-2, **options)
    assert op_types(onx) != ["LayerNormalization"]
    check_export(model.double(), (X.double(),), **options)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("opset", [18, 23])
def test_rms_norm(affine, opset):
    model = randomized(torch.nn.RMSNorm(5, eps=1e-4, elementwise_affine=affine))
    check_export(model, (X,), DYNAMIC, [(X[:1],)], target_opset=opset)


def test_rms_norm_default_eps():
    check_export(randomized(torch.nn.RMSNorm(5)), (X,))


BATCH_NORMS = {
    "1d": (torch.nn.BatchNorm1d, X[..., 0]),
    "1d sequence": (torch.nn.BatchNorm1d, X),
    "2d": (torch.nn.BatchNorm2d, IMAGE),
    "3d": (torch.nn.BatchNorm3d, IMAGE[..., None]),
}


@pytest.mark.parametrize("name", sorted(BATCH_NORMS))
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(name, affine):
    cls, x = BATCH_NORMS[name]
    model = randomized(cls(6, affine=affine))
    onx = check_export(model, (x,), DYNAMIC, [(x[:1],)])
    assert "BatchNormalization" in op_types(onx)
    check_export(model, (x,), export_options="nostrict-dec")


@pytest.mark.parametrize("name", sorted(BATCH_NORMS))
def test_batch_norm_with_statistics_of_the_batch(name):
    cls, x = BATCH_NORMS[name]
    check_export(randomized(cls(6, track_running_stats=False)), (x,), atol=1e-4)


@pytest.mark.parametrize("affine", [True, False])
def test_instance_norm(affine):
    model = randomized(torch.nn.InstanceNorm2d(6, affine=affine))
    check_export(model, (IMAGE,), DYNAMIC, [(IMAGE[:1],)], atol=1e-4)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups, affine):
    model = randomized(torch.nn.GroupNorm(groups, 6, affine=affine))
    check_export(model, (IMAGE,), DYNAMIC, [(IMAGE[:1],)], atol=1e-4)
    check_export(model, (X,), DYNAMIC, [(X[:1],)], atol=1e-4)
    check_export(model, (IMAGE,), export_options="nostrict-dec", atol=1e-4)


def test_dropout_does_nothing_at_inference():
    for cls in (torch.nn.Dropout, torch.nn.Dropout1d, torch.nn.AlphaDropout):
        onx = check_export(torch.nn.Sequential(cls(0.5), torch.nn.ReLU()).eval(), (X,))
        assert op_types(onx) == ["Relu"]
    check_export(lambda x: F.dropout(x, 0.5, training=False) + 1, (X,))


def test_dropout_in_training_mode():
    model = torch.nn.Dropout(0.5).train()
    onx = to_onnx(model, (X,), options=OptimizationOptions(patterns=None))
    assert op_types(onx) == ["Dropout"]


@pytest.mark.parametrize("shape", [(0, 2), (0, 4, 3), (2, 4, 0)])
def test_group_norm_of_an_empty_tensor(shape):
    weight, bias = torch.rand(shape[1]), torch.rand(shape[1])
    x = torch.zeros(shape)
    try:
        F.group_norm(x, 2, weight, bias)
    except RuntimeError as e:
        pytest.skip(f"this version of torch refuses it: {e}")
    check_export(lambda x: F.group_norm(x, 2, weight, bias), (x,))


@pytest.mark.parametrize("cls", [torch.nn.Dropout2d, torch.nn.Dropout3d])
def test_whole_channels_are_dropped(cls):
    x = torch.ones(3, 5, 4, 4) if cls is torch.nn.Dropout2d else torch.ones(3, 5, 2, 2, 2)
    onx = to_onnx(cls(0.5).train(), (x,), options=OptimizationOptions(patterns=None))
    (got,) = run_ort(onx, [x])
    channels = got.reshape(15, -1)
    assert (channels == channels[:, :1]).all()
    assert set(channels[:, 0]) <= {0.0, 2.0}
    check_export(cls(1.0).train(), (x,))
    check_export(torch.nn.Dropout(1.0).train(), (X,))


def test_alpha_dropout_in_training_mode():
    with pytest.raises(ConversionError, match="has no equivalent in ONNX"):
        to_onnx(torch.nn.AlphaDropout(0.5).train(), (X,))


@pytest.mark.parametrize("dim", [0, 1, None])
def test_norm_of_a_weight(dim):
    model = torch.nn.utils.weight_norm(torch.nn.Linear(4, 3), dim=dim)
    check_export(model, (torch.randn(2, 4),), ({0: "n"},), [(torch.randn(5, 4),)])
