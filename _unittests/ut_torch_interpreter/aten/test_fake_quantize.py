"""Fake quantisation: QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter import to_onnx
from xbuilder.errors import XoptimError

ops = torch.ops.aten
# no value is half way between two steps
X, OTHER = (
    torch.linspace(-9.03, 8.94, 20).reshape(5, 4),
    torch.linspace(-1.01, 30.03, 28).view(7, 4),
)
DYNAMIC = ({0: "n"},)
SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0, 1, -2, 3], dtype=torch.int32)


@pytest.mark.parametrize(
    "low,high,expected",
    [
        (-128, 127, ["QuantizeLinear", "DequantizeLinear"]),
        (0, 255, ["QuantizeLinear", "DequantizeLinear"]),
        (-8, 7, ["QuantizeLinear", "Clip", "DequantizeLinear"]),
        (-1000, 1000, ["Div", "Round", "Add", "Clip", "Sub", "Mul"]),
    ],
)
def test_one_scale(low, high, expected):
    def model(x):
        return torch.fake_quantize_per_tensor_affine(x, 0.1, 3, low, high)

    onx = check_export(model, (X,), DYNAMIC, [(OTHER,), (X[:0],), (X[:1],)], target_opset=18)
    assert op_types(onx) == expected


def test_sixteen_bits_of_opset_21():
    def model(x):
        return torch.fake_quantize_per_tensor_affine(x, 0.01, 0, -32768, 32767)

    onx = check_export(model, (X,), DYNAMIC, [(OTHER,)], target_opset=21)
    assert op_types(onx) == ["QuantizeLinear", "DequantizeLinear"]


def test_a_scale_that_is_a_tensor_and_float16():
    def model(x, scale, zero):
        return torch.fake_quantize_per_tensor_affine(x, scale, zero, -128, 127)

    how = torch.tensor([0.2]), torch.tensor([4], dtype=torch.int32)
    check_export(model, (X, *how), ({0: "n"}, None, None), [(OTHER, *how)])
    half = lambda x: torch.fake_quantize_per_tensor_affine(x.half(), 0.25, 0, -8, 7).float()  # noqa: E731
    check_export(half, (X,), DYNAMIC, [(OTHER,)])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("low", [-128, -1000])
def test_one_scale_for_each_channel(axis, low):
    def model(x):
        return torch.fake_quantize_per_channel_affine(x, SCALES, ZEROS, axis % 2, low, 127)

    x, other = (X[:4], X[1:]) if axis == 0 else (X, OTHER)
    check_export(model, (x,), None if axis == 0 else DYNAMIC, [(other,)])


def test_a_zero_point_that_is_a_float():
    def model(x):
        zeros = ZEROS.to(torch.float32) + 0.5
        return torch.fake_quantize_per_channel_affine(x, SCALES, zeros, 1, 0, 15)

    assert "QuantizeLinear" not in op_types(check_export(model, (X,), DYNAMIC, [(OTHER,)]))


def test_masks():
    def model(x):
        on = torch.tensor([1])
        one, zero = torch.tensor([0.1]), torch.tensor([3], dtype=torch.int32)
        found = ops._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        return (
            *ops.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 3, -8, 7),
            *ops.fake_quantize_per_channel_affine_cachemask(x, SCALES, ZEROS, 1, -8, 7),
            *found(x, one, zero, on, -8, 7),
            *found(x, one, zero, on - 1, -8, 7),
        )

    check_export(model, (X,), DYNAMIC, [(OTHER,)])


def _trained():
    """A model prepared for quantisation, which has seen values.

    Its products fit 16 bits: without it, those of onnxruntime saturate on some processors.
    """
    torch.manual_seed(0)
    quantization = torch.ao.quantization
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    model = torch.nn.Sequential(quantization.QuantStub(), *model, quantization.DeQuantStub())
    model.qconfig = quantization.get_default_qat_qconfig("x86")
    prepared = quantization.prepare_qat(model.train())
    prepared(X)
    return prepared.eval()


@pytest.mark.filterwarnings("ignore:.*deprecated.*")
def test_a_model_trained_for_integers():
    import torch.ao.quantization

    model = _trained()
    with pytest.raises(XoptimError, match="disable_observer"):
        to_onnx(model, (X,))
    model.apply(torch.ao.quantization.disable_observer)
    onx = check_export(model, (X,), DYNAMIC, [(OTHER,)], atol=0.3)
    assert op_types(onx).count("DequantizeLinear") == 3
    model.apply(torch.ao.quantization.disable_fake_quant)
    assert "DequantizeLinear" not in op_types(check_export(model, (X,), DYNAMIC, [(OTHER,)]))


def test_rows_of_a_bounded_norm():
    model = torch.nn.Embedding(10, 4, max_norm=1.0)
    weight = model.weight.detach().clone()

    class Model(torch.nn.Module):
        def forward(self, i):
            return torch.nn.functional.embedding(i, weight.clone(), max_norm=1.0, norm_type=1.0)

    indices = torch.tensor([[1, 2], [1, 9]])
    check_export(Model(), (indices,), ({0: "n"},), [(indices[:1],)])
    onx = check_export(model, (indices,), ({0: "n"},))
    assert "ScatterND" in op_types(onx)
