"""Quantised tensors."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from ut_torch_interpreter.export_checks import Fct1, check_export, op_types

from torch_interpreter import ConversionError, to_onnx

QD = torch.ops.quantized_decomposed
X, OTHER = torch.randn(5, 4), torch.randn(7, 4) * 20
SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0, 1, -2, 3])


@pytest.mark.parametrize(
    "dtype,low,high",
    [
        (torch.int8, -128, 127),
        (torch.int8, -127, 127),
        (torch.uint8, 0, 255),
        (torch.uint8, 0, 127),
    ],
)
def test_one_scale(dtype, low, high):
    def model(x):
        how = 0.1, 3, low, high, dtype
        q = QD.quantize_per_tensor(x, *how)
        return q, QD.dequantize_per_tensor(q, *how)

    onx = check_export(model, (X,), ({0: "n"},), [(OTHER,)])
    assert ("Clip" in op_types(onx)) == (high - low < 255)


def test_a_scale_that_is_a_tensor():
    def model(x, scale, zero):
        how = scale, zero, -128, 127, torch.int8
        return QD.dequantize_per_tensor.tensor(QD.quantize_per_tensor.tensor(x, *how), *how)

    scale, zero = torch.tensor(0.2), torch.tensor(4)
    check_export(model, (X, scale, zero), ({0: "n"}, None, None), [(OTHER, scale, zero)])


@pytest.mark.parametrize("axis", [0, 1])
def test_one_scale_for_each_channel(axis):
    def model(x):
        how = SCALES, ZEROS, axis, -128, 127, torch.int8
        return QD.dequantize_per_channel(QD.quantize_per_channel(x, *how), *how)

    check_export(model, (X[:4] if axis == 0 else X,), None, [(X[1:],)] if axis == 0 else ())


def test_integers_of_16_bits():
    def model(x):
        how = 0.01, 0, -32768, 32767, torch.int16
        return QD.dequantize_per_tensor(QD.quantize_per_tensor(x, *how), *how)

    check_export(model, (X,), ({0: "n"},), [(OTHER,)], target_opset=21)
    with pytest.raises(ConversionError, match="INT16 is no type .* target_opset=21 has it"):
        to_onnx(Fct1(model), (X,), target_opset=18)


def test_a_bias_of_32_bits():
    def model(x):
        return QD.dequantize_per_tensor(x, 0.01, 0, -(2**31), 2**31 - 1, torch.int32)

    check_export(model, (torch.arange(5, dtype=torch.int32),))


def test_product_of_bytes():
    y = torch.arange(32).reshape(4, 8).to(torch.int8)
    x, other = (torch.arange(4 * n).reshape(n, 4).to(torch.int8) for n in (18, 20))
    onx = check_export(lambda x: torch._int_mm(x, y), (x,), ({0: "n"},), [(other,)])
    assert "MatMulInteger" in op_types(onx)
