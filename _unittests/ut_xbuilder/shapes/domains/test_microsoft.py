"""Operators of com.microsoft, run by onnxruntime when it has a kernel for the CPU."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh

from xbuilder.facts.facts import ResultFacts

MS: dict[str, Any] = {"domain": "com.microsoft", "opset": 1}
SIZES = [{"a": 2, "b": 3, "m": 4, "n": 5}, {"a": 3, "b": 2, "m": 2, "n": 6}]


def runs(op_type: str, inputs: list, expected: Any, sizes: Any = None, **attributes: Any) -> list:
    """Runs an operator of com.microsoft."""
    count = 1 if expected is None else len(expected)
    given = {"attributes": attributes, "n_outputs": count, **MS}
    return check_runs(op_type, inputs, sizes or SIZES, expected, **given)


def known(op_type: str, inputs: list, n_outputs: int = 1, **attributes: Any) -> list:
    """Facts of an operator of com.microsoft."""
    return infer(op_type, inputs, n_outputs, attributes=attributes, **MS)


@pytest.mark.parametrize(
    ("op_type", "bias"),
    [
        ("BiasGelu", True),
        ("FastGelu", True),
        ("FastGelu", False),
        ("Gelu", False),
        ("QuickGelu", False),
    ],
)
def test_activations(op_type: str, bias: bool) -> None:
    """The shape of the data."""
    inputs = [In(("a", "b", 8)), In((8,))]
    runs(op_type, inputs if bias else inputs[:1], [("a", "b", 8)])


FLAGS = list(itertools.product((0, 1), repeat=2))


@pytest.mark.parametrize(("trans_a", "trans_b"), FLAGS)
@pytest.mark.parametrize("rank", [2, 3])
def test_fused_matmul(trans_a: int, trans_b: int, rank: int) -> None:
    """Transposed operands."""
    batch = ("a",) * (rank - 2)
    left = (*batch, "n", "m") if trans_a else (*batch, "m", "n")
    right = (*batch, 4, "n") if trans_b else (*batch, "n", 4)
    runs("FusedMatMul", [In(left), In(right)], [(*batch, "m", 4)], transA=trans_a, transB=trans_b)


@pytest.mark.parametrize(("batch_a", "batch_b"), FLAGS)
@pytest.mark.parametrize(("trans_a", "trans_b"), FLAGS)
def test_fused_matmul_batch(batch_a: int, batch_b: int, trans_a: int, trans_b: int) -> None:
    """The first axis moves after the batch axes."""
    left = ("n", "m") if trans_a else ("m", "n")
    right = (4, "n") if trans_b else ("n", 4)
    shape_a = (left[0], "a", "b", left[1]) if batch_a else ("a", "b", *left)
    shape_b = (right[0], "a", "b", right[1]) if batch_b else ("a", "b", *right)
    flags = {
        "transBatchA": batch_a,
        "transBatchB": batch_b,
        "transA": trans_a,
        "transB": trans_b,
    }
    runs("FusedMatMul", [In(shape_a), In(shape_b)], [("a", "b", "m", 4)], **flags)


def test_fused_matmul_unknown() -> None:
    """Ranks."""
    found = known("FusedMatMul", [ResultFacts(1, None, 3), ResultFacts(1, ("a", "b"))])[0]
    assert found == ResultFacts(1, None, 3)
    wrong = [ResultFacts(1, (2, 3)), ResultFacts(1, (4, 5))]
    assert known("FusedMatMul", wrong)[0] == ResultFacts()


def test_fused_conv_gemm() -> None:
    """Shapes of Conv and Gemm."""
    inputs = [In(("a", 3, "m", "n")), In((4, 3, 2, 2)), In((4,))]
    runs("FusedConv", inputs, [("a", 4, "m-1", "n-1")], activation="Relu")
    inputs = [In(("m", 5)), In((4, 5)), In((4,))]
    runs("FusedGemm", inputs, [("m", 4)], activation="Relu", transB=1)


def test_nhwc() -> None:
    """Channels last."""
    inputs = [In(("a", 6, 7, 3), np.uint8)]
    runs("NhwcMaxPool", inputs, [("a", 3, 3, 3)], kernel_shape=[2, 2], strides=[2, 2])
    x, w = ResultFacts(1, ("a", "m", "n", 3)), ResultFacts(1, (8, 3, 3, 3))
    found = known("NhwcConv", [x, w], kernel_shape=[3, 3], pads=[1, 1, 1, 1])[0]
    assert found.shape == ("a", "m", "n", 8)
    found = known("NhwcConv", [x, w])[0].shape
    assert found[0] == "a" and found[3] == 8 and is_fresh(found[1])
    mask = ResultFacts(6, ("a", 1, "m", "n"))
    x1 = ResultFacts(1, ("a", 1, "m", "n"))
    found = known("MaxpoolWithMask", [x1, mask], kernel_shape=[2, 2], strides=[2, 2])[0]
    assert found.shape == ("a", 1, "max(1,m//2)", "max(1,n//2)")
    # one window of 2 on an image of 1
    inputs, expected = [In((1, "m", "n", 3), np.uint8)], [(1, "max(1,m//2)", "n-1", 3)]
    sizes = [{"m": m, "n": 4} for m in (1, 2, 5)]
    runs("NhwcMaxPool", inputs, expected, sizes, kernel_shape=[2, 2], strides=[2, 1])
    assert known("NhwcConv", [x, ResultFacts(1)])[0] == ResultFacts(1, None, 4)


@pytest.mark.parametrize("rank", [2, 3])
def test_skip_layer_normalization(rank: int) -> None:
    """Four outputs."""
    shape = ("a", "b", 8)[-rank:]
    inputs = [In(shape), In(shape), In((8,)), In((8,))]
    facts = known("SkipLayerNormalization", [i.facts() for i in inputs], 4)
    assert [f.shape for f in facts] == [shape, (*shape[:-1], 1), (*shape[:-1], 1), shape]
    names = "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"
    runs(names[0], inputs, [shape])
    runs(names[1], inputs[:3], [shape])


def test_simplified_layer_normalization() -> None:
    """onnxruntime's operator lives in the main domain."""
    inputs = [In(("a", "b", 8)), In((8,))]
    check_runs("SimplifiedLayerNormalization", inputs, SIZES, [("a", "b", 8)], opset=17)
    found = infer("SimplifiedLayerNormalization", [ResultFacts(10, ("a", 8)), ResultFacts(10)], 2)
    assert found == [ResultFacts(10, ("a", 8)), ResultFacts(1, ("a", 1))]


def test_embed_layer_normalization() -> None:
    """Words, positions, and the mask."""
    ids = In(("a", "b"), np.int32, 4)
    inputs = [ids, ids, In((5, 8)), In((7, 8)), In((4, 8)), In((8,)), In((8,)), ids]
    expected = [("a", "b", 8), ("a",), ("a", "b", 8)]
    runs("EmbedLayerNormalization", inputs, expected)
    assert known("EmbedLayerNormalization", [ResultFacts()] * 7, 3)[1].type == 6


def test_elementwise() -> None:
    """Other elementwise operators."""
    x = ResultFacts(1, ("a", "b", 8))
    assert known("BiasSplitGelu", [x, ResultFacts(1)])[0].shape == ("a", "b", 4)
    assert known("MulInteger", [ResultFacts(3, ("a",)), None, ResultFacts(3, ())])[0].type == 6
    assert known("BiasDropout", [x, ResultFacts(1)], 2)[1] == ResultFacts(9, x.shape)
    assert known("BitmaskDropout", [x], 2)[1].shape == ("(a*b+3)//4",)
    assert known("IsAllFinite", [x])[0] == ResultFacts(9, ())
    runs("MurmurHash3", [In(("a", 3), np.int32)], [("a", 3)])
    runs("MurmurHash3", [In(("a", 3), np.int32)], [("a", 3)], positive=0)


def test_movement() -> None:
    """Axes are added, moved, unfolded."""
    runs("ExpandDims", [In(("a", "b")), np.array([1], np.int32)[0:1].reshape(())], [("a", 1, "b")])
    assert known("ExpandDims", [ResultFacts(1, ("a",)), ResultFacts(6, ())])[0].rank == 2
    x = ResultFacts(1, ("a", 10, "b"))
    assert known("UnfoldTensor", [x], dim=1, size=4, step=3)[0].shape == ("a", 3, "b", 4)
    runs("GatherND", [In(("a", "b", 3)), In(("n", 2), np.int64, 2)], [("n", 3)])
    runs("Trilu", [In(("a", "b", 3))], [("a", "b", 3)])
    pads = np.array([0, 1, 2, 0], np.int64)
    runs("Pad", [In(("a", "b")), pads], [("a+2", "b+1")])


def test_ranges_and_tables() -> None:
    """Ranges, distances, embeddings, unique values."""
    bounds = [np.array(v, np.int64) for v in (0, 10, 3)]
    runs("Range", bounds, [(4,)], sizes=[{}])
    assert known("Range", bounds[:2])[0].shape == (10,)
    runs("CDist", [In(("m", 4)), In(("n", 4))], [("m", "n")], metric="euclidean")
    found = known("TorchEmbedding", [ResultFacts(1, ("v", 8)), ResultFacts(7, ("a", "b"))])[0]
    assert found.shape == ("a", "b", 8)
    check_runs("Unique", [In(("m",))], SIZES[:1], n_outputs=3, **MS)
    found = known("Unique", [ResultFacts(1, ("m",))], 3)
    assert found[1].shape == ("m",) and is_fresh(found[0].shape[0])


def test_images_and_signals() -> None:
    """Regions, Fourier transforms."""
    regions = [ResultFacts(1, ("r", 4)), ResultFacts(6, ("r",)), np.array([5, 6], np.int32)]
    found = known("CropAndResize", [ResultFacts(1, ("a", 3, "m", "n")), *regions])[0]
    assert found.shape == ("r", 3, 5, 6)
    x = ResultFacts(1, ("a", "m", 8))
    assert known("Rfft", [x], onesided=1, signal_ndim=1)[0].shape == ("a", "m", 5, 2)
    y = ResultFacts(1, ("a", "m", 5, 2))
    assert known("Irfft", [y], onesided=1, signal_ndim=1)[0].shape == ("a", "m", 8)
    runs("Inverse", [In((2, 2))], [(2, 2)], sizes=[{}])


def test_generation() -> None:
    """Tokens."""
    ids, length, beams = (
        ResultFacts(6, ("a", "b")),
        np.array([20], np.int32),
        np.array([3], np.int32),
    )
    found = known("BeamSearch", [ids, length, length, beams, beams, ResultFacts(1)], 2)
    assert [f.shape for f in found] == [("a", 3, 20), ("a", 3)]
    assert known("GreedySearch", [ids, length])[0] == ResultFacts(6, ("a", 20))


def test_reduce_sum_integer() -> None:
    """Axes are attributes."""
    x = ResultFacts(3, ("a", "b"))
    assert known("ReduceSumInteger", [x], axes=[-1], keepdims=1)[0].shape == ("a", 1)
