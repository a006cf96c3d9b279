"""Quantized operators of com.microsoft, run by onnxruntime on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh

from xbuilder.facts.facts import ResultFacts

MS: dict[str, Any] = {"domain": "com.microsoft", "opset": 1}
SIZES = [{"a": 2, "b": 3, "m": 6, "n": 5}, {"a": 3, "b": 2, "m": 5, "n": 7}]
SCALE, ZERO = np.array(0.1, np.float32), np.array(3, np.uint8)


def runs(op_type: str, inputs: list, expected: Any, sizes: Any = None, **attributes: Any) -> list:
    """Runs an operator of com.microsoft."""
    given = {"attributes": attributes, "n_outputs": len(expected), **MS}
    return check_runs(op_type, inputs, sizes or SIZES, expected, **given)


def known(op_type: str, inputs: list, n_outputs: int = 1, **attributes: Any) -> list:
    """Facts of an operator of com.microsoft."""
    return infer(op_type, inputs, n_outputs, attributes=attributes, **MS)


def u8(*shape: Any) -> In:
    """Bytes."""
    return In(shape, np.uint8, 100)


@pytest.mark.parametrize("bits", [4, 8])
def test_matmul_nbits(bits: int) -> None:
    """Sizes are attributes."""
    packed = np.zeros((16, 2, 32 * bits // 8), np.uint8)
    scales = np.ones((16 * 2,), np.float32)
    inputs = [In(("a", "b", 64)), packed, scales]
    given = {"K": 64, "N": 16, "bits": bits, "block_size": 32}
    runs("MatMulNBits", inputs, [("a", "b", 16)], **given)
    wrong = [ResultFacts(1, ("a", 63)), packed, scales]
    assert known("MatMulNBits", wrong, **given)[0].shape is None
    assert known("MatMulNBits", [ResultFacts(1, None, 3)], **given)[0] == ResultFacts(1, None, 3)


def test_other_packed_weights() -> None:
    """Sizes are attributes or a content."""
    x = ResultFacts(1, ("a", "b", 64))
    assert known("MatMulBnb4", [x], K=64, N=16)[0].shape == ("a", "b", 16)
    shape = np.array([64, 16], np.int64)
    assert known("MatMulFpQ4", [x, ResultFacts(2), shape])[0].shape == ("a", "b", 16)
    found = known("MatMulNBitsQkv", [x], 4, K=64, Nq=32, Nkv=8)
    assert [f.shape for f in found] == [("a", "b", n) for n in (32, 8, 8, 64)]
    found = known("MatMulNBitsMlp", [x], 2, K=64, N=32)
    assert [f.shape for f in found] == [("a", "b", 32), ("a", "b", 64)]


def test_products() -> None:
    """Shapes of MatMul and Gemm."""
    weights, scale = np.ones((8, 4), np.int8), np.array([0.1], np.float32)
    inputs = [In(("a", "b", 8)), weights, scale]
    runs("DynamicQuantizeMatMul", inputs, [("a", "b", 4)])
    inputs = [u8("a", "b", 8), weights, scale, scale]
    runs("MatMulIntegerToFloat", inputs, [("a", "b", 4)])
    inputs = [u8("a", 8), SCALE, ZERO, np.ones((8, 4), np.uint8), SCALE, ZERO]
    facts = runs("QGemm", inputs, [("a", 4)])
    assert facts[0].type == 1
    facts = runs("QGemm", [*inputs, None, SCALE, ZERO], [("a", 4)])
    assert facts[0].type == 2
    found = known("MatMulInteger16", [ResultFacts(5, ("a", 8)), ResultFacts(5, (8, "b"))])[0]
    assert found == ResultFacts(6, ("a", "b"))


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_binary(op_type: str) -> None:
    """Broadcasting."""
    inputs = [u8("a", "b", 4), SCALE, ZERO, u8("b", 1), SCALE, ZERO, SCALE, ZERO]
    facts = runs(op_type, inputs, [("a", "b", 4)])
    assert facts[0].type == 2


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("QLinearLeakyRelu", {"alpha": 0.1}),
        ("QLinearSigmoid", {}),
        ("QLinearSoftmax", {"opset": 13, "axis": -1}),
    ],
)
def test_unary(op_type: str, attributes: dict) -> None:
    """Same shape."""
    inputs = [u8("a", "b"), SCALE, ZERO, SCALE, ZERO]
    runs(op_type, inputs, [("a", "b")], **attributes)


def test_where() -> None:
    """Three shapes."""
    quantized = [SCALE, ZERO]
    inputs = [In(("a", 1), np.bool_), u8("b"), *quantized, u8(1, 1), *quantized, *quantized]
    runs("QLinearWhere", inputs, [("a", "b")])


def test_pool() -> None:
    """Both layouts."""
    window = {"kernel_shape": [2, 2], "strides": [2, 1]}
    quantized = [SCALE, ZERO, SCALE, ZERO]
    inputs = [u8("a", 3, "m", "n"), *quantized]
    runs("QLinearAveragePool", inputs, [("a", 3, "max(1,m//2)", "n-1")], **window)
    inputs = [u8("a", "m", "n", 3), *quantized]
    expected = [("a", "max(1,m//2)", "n-1", 3)]
    runs("QLinearAveragePool", inputs, expected, channels_last=1, **window)
    inputs = [u8("a", 3, "m", "n"), *quantized]
    runs("QLinearGlobalAveragePool", inputs, [("a", 3, 1, 1)], channels_last=0)
    inputs = [u8("a", "m", "n", 3), *quantized]
    runs("QLinearGlobalAveragePool", inputs, [("a", 1, 1, 3)], channels_last=1)


def test_concat() -> None:
    """Triples of inputs."""
    piece = [SCALE, ZERO]
    inputs = [*piece, u8("a", "m"), *piece, u8("a", 3), *piece, u8("a", "n"), *piece]
    runs("QLinearConcat", inputs, [("a", "m+n+3")], axis=1)
    unknown = [*piece, ResultFacts(2), *piece]
    assert known("QLinearConcat", unknown, axis=0)[0] == ResultFacts(2)


def test_conv() -> None:
    """Both layouts; the kernel is an attribute or unknown when channels are last."""
    weights = np.ones((4, 3, 2, 2), np.uint8)
    quantized = [SCALE, ZERO]
    inputs = [u8("a", 3, "m", "n"), *quantized, weights, *quantized, *quantized]
    runs("QLinearConv", inputs, [("a", 4, "m-1", "n-1")])
    inputs = [u8("a", "m", "n", 3), *quantized, weights, *quantized, *quantized]
    given = {"channels_last": 1, "kernel_shape": [2, 2]}
    runs("QLinearConv", inputs, [("a", "m-1", "n-1", 4)], **given)
    facts = [i.facts() if isinstance(i, In) else i for i in inputs]
    found = known("QLinearConv", facts, channels_last=1)[0].shape
    assert found[0] == "a" and found[3] == 4 and is_fresh(found[1])


def test_reduce_mean() -> None:
    """Axes are an attribute."""
    inputs = [ResultFacts(2, ("a", "m", "n")), SCALE, ZERO, SCALE, ZERO]
    found = known("QLinearReduceMean", inputs, axes=[1], keepdims=1)[0]
    assert found == ResultFacts(2, ("a", 1, "n"))
    assert known("QLinearReduceMean", inputs, axes=[-1], keepdims=0)[0].shape == ("a", "m")


def test_quantize() -> None:
    """Same functions as the main domain."""
    runs("QuantizeLinear", [In(("a", "b")), SCALE, ZERO], [("a", "b")])
    runs("DequantizeLinear", [u8("a", "b"), SCALE, ZERO], [("a", "b")])
    assert known("QuantizeWithOrder", [ResultFacts(1, ("a",))])[0] == ResultFacts(3, ("a",))
    assert known("DequantizeWithOrder", [ResultFacts(3, ("a",))], to=10)[0].type == 10


def test_gather_block_quantized() -> None:
    """Bytes hold two elements of 4 bits."""
    indices = In(("a", "b"), np.int64, 2)
    scales = np.ones((5, 2), np.float32)
    inputs = [np.zeros((5, 16), np.uint8), indices, scales]
    given = {"bits": 4, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    runs("GatherBlockQuantized", inputs, [("a", "b", 32)], **given)
    data = ResultFacts(22, (5, 32))
    found = known("GatherBlockQuantized", [data, indices.facts(), scales], **given)[0]
    assert found == ResultFacts(1, ("a", "b", 32))


def test_dynamic_quantize_lstm() -> None:
    """Only the attribute gives the hidden size."""
    x = ResultFacts(1, ("s", "b", 3))
    found = known("DynamicQuantizeLSTM", [x, ResultFacts(2), ResultFacts(2)], 3, hidden_size=5)
    assert [f.shape for f in found] == [("s", 1, "b", 5), (1, "b", 5), (1, "b", 5)]
    found = known("DynamicQuantizeLSTM", [x, ResultFacts(2), ResultFacts(2)], 3)
    assert [f.rank for f in found] == [4, 3, 3]


def test_embed() -> None:
    """The type is the one of the scales."""
    ids, words = ResultFacts(6, ("a", "b")), ResultFacts(2, (100, 8))
    inputs = [ids, ids, words, words, words, ResultFacts(2), ResultFacts(2), None, ResultFacts(1)]
    found = known("QEmbedLayerNormalization", inputs, 2)
    assert (found[0].type, found[0].shape) == (1, ("a", "b", 8))
    assert found[1].shape == ("a",)
