import math

import onnx
import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import to_onnx
from torch_interpreter.common.errors import ConversionError

F = torch.nn.functional
X = torch.tensor([[0.5, -1.0, float("nan"), 2.0], [3.0, 0.0, -2.5, 0.0], [1.0, 1.0, 7.0, -8.0]])
SAFE = torch.nan_to_num(X)
INTS = torch.tensor([[3, -1, 2], [0, 5, -7]])
INFINITIES = torch.tensor([[math.inf, -math.inf, 0.0], [math.nan, 1.0, -math.inf]])
DISTINCT = torch.tensor([[0.5, -1.0, 3.0, 2.0], [1.0, 4.0, -8.0, 0.0]])
PLACES = torch.tensor([[2, 0]])
IMAGE = torch.randn(1, 2, 4, 5)


class Call(torch.nn.Module):
    def __init__(self, fct):
        super().__init__()
        self.fct = fct

    def forward(self, x):
        return self.fct(x)


CASES = [
    ("softmax-last", lambda x: x.softmax(-1), SAFE, 9),
    ("softmax-first", lambda x: x.softmax(0), SAFE, 9),
    ("softmax-middle", lambda x: x.log_softmax(1), IMAGE, 9),
    ("softmax-scalar", lambda x: x.softmax(0), torch.tensor(2.0), 9),
    ("hardswish", F.hardswish, X, 9),
    ("triu", lambda x: x.triu(1), SAFE, 9),
    ("tril", lambda x: x.tril(-1), torch.rand(2, 3, 4), 9),
    ("tril-ints", torch.tril, INTS, 9),
    ("chunk", lambda x: torch.cat(x.chunk(2, 1)[::-1], 1), SAFE, 9),
    ("nearest", lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), IMAGE, 9),
    ("nearest-fraction", lambda x: F.interpolate(x, scale_factor=(1.5, 1.25)), IMAGE, 9),
    ("nearest-smaller", lambda x: F.interpolate(x, scale_factor=0.5), IMAGE, 11),
    ("nearest-size", lambda x: F.interpolate(x, size=(8, 10)), IMAGE, 11),
    ("shift-left", lambda x: x << 2, INTS, 9),
    ("shift-right", lambda x: x >> 1, INTS, 9),
    ("shift-int32", lambda x: (x << 3) >> 1, INTS.int(), 9),
    ("shift-to-the-sign", lambda x: (x >> 31, x >> 40, x << 31), INTS.int(), 9),
    ("shift-of-a-number", lambda x: 3 << x.abs(), INTS, 9),
    ("shift-by-a-tensor", lambda x: x >> (x.abs() * 7), INTS.int(), 9),
    ("bilinear", lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"), IMAGE, 11),
    ("greater-or-equal", lambda x: x >= 0, X, 9),
    ("equal", lambda x: (x == 1) | (x == x), X, 9),
    ("equal-infinities", lambda x: (x == -x) | (x == math.inf), INFINITIES, 9),
    ("topk", lambda x: x.topk(2, dim=1), DISTINCT, 9),
    ("topk-smallest", lambda x: x.topk(3, dim=-1, largest=False), DISTINCT, 9),
    ("topk-places", lambda x: x.sort(1)[1], DISTINCT, 9),
    ("topk-ints", lambda x: x.topk(2, dim=1)[0], INTS, 11),
    ("scatter", lambda x: x.scatter(1, PLACES, 5.0), torch.zeros(1, 4), 9),
    ("pixel-shuffle", lambda x: F.pixel_shuffle(x, 2), torch.randn(2, 8, 3, 2), 9),
    ("less-or-equal", lambda x: x <= 1, INTS, 9),
    ("clamp", lambda x: x.clamp(0, 1), SAFE, 9),
    ("clamp-min", lambda x: x.clamp(min=0), SAFE, 9),
    ("clamp-crossed", lambda x: x.clamp(2, 1), SAFE, 9),
    ("clamp-ints", lambda x: x.clamp(-1, 2), INTS, 9),
    ("maximum-ints", lambda x: torch.maximum(x, -x) + torch.minimum(x, x * 2), INTS, 9),
    ("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), X, 9),
    ("slice", lambda x: x[1:, 1:-1], X, 9),
    ("arange", lambda x: x + torch.arange(x.shape[0])[:, None], SAFE, 9),
    ("arange-steps", lambda x: torch.arange(5, -x.shape[0], -3), SAFE, 9),
    ("arange-int32", lambda x: torch.arange(1, 2 * x.shape[0], 2, dtype=torch.int32), SAFE, 9),
    ("remainder", lambda x: x % 3 + x % -4 + 7 % (x * 2 + 1), INTS, 9),
    ("remainder-floats", lambda x: x % 3, SAFE, 10),
    ("max-pool", lambda x: F.max_pool2d(x, 2), IMAGE, 9),
    ("avg-pool", lambda x: F.avg_pool2d(x, 2), IMAGE, 9),
    ("max-pool-dilated", lambda x: F.max_pool2d(x, 2, dilation=2), IMAGE, 10),
    ("steps", lambda x: x[::2, 1::2], X, 10),
]


@pytest.mark.parametrize("opset", range(9, 15))
@pytest.mark.parametrize(
    ("fct", "x", "first"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_operators(fct, x, first, opset):
    model = Call(fct)
    shapes = ({0: "n"},) if x.ndim and x.shape[0] > 1 else None
    if opset < first:
        with pytest.raises(ConversionError, match=rf"opset: {opset} was asked, to_onnx\(.*=18\)"):
            to_onnx(model, (x,), target_opset=opset, dynamic_shapes=shapes)
        return
    onx = to_onnx(model, (x,), target_opset=opset, dynamic_shapes=shapes)
    assert {o.domain: o.version for o in onx.opset_import}[""] == opset
    onnx.checker.check_model(onx, full_check=True)
    assert_same(model(x), run_ort(onx, [x]), 1e-6)
    if shapes:
        larger = torch.cat([x, x])
        assert_same(model(larger), run_ort(onx, [larger]), 1e-6)


def test_widths_that_are_not_known():
    model = Call(lambda x: F.pad(x, (x.shape[0], 0)))
    with pytest.raises(ConversionError, match="widths of Pad must be constant in opset 10"):
        to_onnx(model, (X,), target_opset=10, dynamic_shapes=({0: "n"},))
    onx = to_onnx(model, (X,), target_opset=11, dynamic_shapes=({0: "n"},))
    assert_same(model(X[:2]), run_ort(onx, [X[:2]]), 0)


def test_operators_in_a_loop():
    def fct(x):
        return torch.special.hermite_polynomial_h(x, x.abs().long())

    x = torch.tensor([0.5, 2.0, 3.0])
    with pytest.raises(ConversionError, match=r"A loop of this operator needs opset 15, not 14"):
        to_onnx(Call(fct), (x,), target_opset=14)
    assert_same(fct(x), run_ort(to_onnx(Call(fct), (x,), target_opset=15), [x]), 1e-5)


@pytest.mark.parametrize("opset", [11, 12, 13, 14])
def test_a_layer_of_a_transformer(opset):
    model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    onx = to_onnx(
        model,
        (x,),
        target_opset=opset,
        dynamic_shapes=({0: "batch", 1: "seq"},),
        validate_onnx=True,
    )
    onnx.checker.check_model(onx, full_check=True)
    assert_same(model(x[:, :3]), run_ort(onx, [x[:, :3]]), 1e-5)
