"""Quantized models: what onnxruntime fuses at load stays, the rest is optimized."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
)

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import make_feeds, model_from_text, run_onnxruntime

RNG = np.random.RandomState(0)
#: operators that compute with integers
INTEGERS = (
    "QLinear",
    "QGemm",
    "QAttention",
    "DynamicQuantize",
    "MatMulInteger",
    "ConvInteger",
    "MatMulNBits",
)


def _weight(name: str, *dims: int) -> str:
    values = ", ".join(f"{v:.4f}" for v in RNG.randn(int(np.prod(dims))) / 4)
    return f"float[{', '.join(map(str, dims))}] {name} = {{{values}}}"


_CONV = ", ".join(
    [
        *(
            _weight(n, *dims)
            for n, dims in (("w1", (8, 4, 3, 3)), ("b1", (8,)), ("w2", (8, 1, 3, 3)))
        ),
        *(_weight(n, *dims) for n, dims in (("w3", (4, 8, 1, 1)), ("w4", (4, 6)), ("b4", (6,)))),
    ]
)
_LINEAR = [(f"{n}{n}", (16, 16)) for n in "qkvo"] + [("f1", (16, 32)), ("f2", (32, 16))]
_BLOCK = ", ".join(
    [_weight(n, *dims) for n, dims in (*_LINEAR, ("g", (16,)), ("b", (16,)), ("c", (32,)))]
)
#: float models: a residual block of convolutions, a block of a transformer
MODELS = {
    "convolutions": f"""agraph (float[n, 4, 8, 8] x) => (float[n, 6] y) <
        {_CONV}, float zero = {{0}}, float six = {{6}}, int64[2] flat = {{0, -1}}> {{
            c1 = Conv<pads = [1, 1, 1, 1]>(x, w1, b1) r1 = Relu(c1)
            c2 = Conv<pads = [1, 1, 1, 1], group = 8>(r1, w2) r2 = Clip(c2, zero, six)
            c3 = Conv(r2, w3) s = Add(c3, x) r3 = Relu(s) p = GlobalAveragePool(r3)
            f = Reshape(p, flat) y = Gemm(f, w4, b4) }}""",
    "transformer": f"""agraph (float[n, s, 16] x) => (float[n, s, 16] y) <
        {_BLOCK}, int64[4] heads = {{0, 0, 4, 4}}, int64[3] flat = {{0, 0, 16}}, float half = {{0.5}},
        float root = {{1.4142135}}, float one = {{1}}> {{
            q = MatMul(x, qq) k = MatMul(x, kk) v = MatMul(x, vv)
            q4 = Reshape(q, heads) k4 = Reshape(k, heads) v4 = Reshape(v, heads)
            qt = Transpose<perm = [0, 2, 1, 3]>(q4) kt = Transpose<perm = [0, 2, 3, 1]>(k4)
            vt = Transpose<perm = [0, 2, 1, 3]>(v4)
            m = MatMul(qt, kt) d = Mul(m, half) p = Softmax<axis = -1>(d) a = MatMul(p, vt)
            at = Transpose<perm = [0, 2, 1, 3]>(a) af = Reshape(at, flat) o = MatMul(af, oo)
            r = Add(x, o) l = LayerNormalization<axis = -1>(r, g, b)
            f = MatMul(l, f1) fb = Add(f, c) e1 = Div(fb, root) e2 = Erf(e1) e3 = Add(e2, one)
            e4 = Mul(fb, e3) e5 = Mul(e4, half) h = MatMul(e5, f2) y = Add(l, h) }}""",
}
FEEDS = {
    "convolutions": RNG.randn(2, 4, 8, 8).astype(np.float32),
    "transformer": RNG.randn(2, 5, 16).astype(np.float32),
}


class _Reader(CalibrationDataReader):
    """Random inputs."""

    def __init__(self, feed: np.ndarray):
        self.rows: Iterator[dict[str, np.ndarray]] = iter([{"x": feed * i} for i in (0.5, 1, 2)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.rows, None)


def _static(folder: Path, name: str, **options: Any) -> ModelProto:
    source, target = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(model_from_text(MODELS[name], 17), source)
    quantize_static(source, target, _Reader(FEEDS[name]), **options)
    return onnx.load(target)


def _dynamic(folder: Path, name: str, **options: Any) -> ModelProto:
    source, target = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(model_from_text(MODELS[name], 17), source)
    quantize_dynamic(source, target, **options)
    return onnx.load(target)


def _four_bits(folder: Path, name: str, quant_format: QuantFormat) -> ModelProto:
    config = DefaultWeightOnlyQuantConfig(block_size=16, quant_format=quant_format, bits=4)
    quantizer = MatMulNBitsQuantizer(model_from_text(MODELS[name], 21), algo_config=config)
    quantizer.process()
    return quantizer.model.model


SIGNED = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8}
UNSIGNED = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
#: how models are quantized -> (function, options)
WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "QDQ": (_static, {"quant_format": QuantFormat.QDQ, **UNSIGNED}),
    "QDQ, channels": (_static, {"quant_format": QuantFormat.QDQ, **SIGNED, "per_channel": True}),
    "QLinear": (_static, {"quant_format": QuantFormat.QOperator, **UNSIGNED}),
    "dynamic": (_dynamic, {}),
    "MatMulNBits": (_four_bits, {"quant_format": QuantFormat.QOperator}),
    "blocks of 4 bits": (_four_bits, {"quant_format": QuantFormat.QDQ}),
}
CASES = [
    (name, way) for name in MODELS for way in WAYS if name == "transformer" or "its" not in way
]


#: what `_loaded` calls a DequantizeLinear of a weight
UNPACKED = "unpacked weight"


def _loaded(model: ModelProto, feed: np.ndarray, path: Path) -> tuple[np.ndarray, Counter[str]]:
    """The result, and the operators onnxruntime runs once it has optimized the model."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (result,) = session.run(None, {"x": feed})
    graph = onnx.load(path).graph
    weights = {weight.name for weight in graph.initializer}
    return result, Counter(
        UNPACKED
        if node.op_type == "DequantizeLinear" and node.input[0] in weights
        else node.op_type
        for node in graph.node
    )


@pytest.mark.parametrize(("name", "way"), CASES)
def test_quantized(name: str, way: str, tmp_path: Path) -> None:
    """Onnxruntime computes with integers as many nodes as before, no weight is unpacked."""
    function, options = WAYS[way]
    model = function(tmp_path, name, **options)
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns="default+onnxruntime"),
    )
    optimized = builder.to_onnx()
    expected, before = _loaded(model, FEEDS[name], tmp_path / "before.onnx")
    got, after = _loaded(optimized, FEEDS[name], tmp_path / "after.onnx")
    integers = {op for op in before if op.startswith(INTEGERS)}
    assert integers, before
    assert {op: after[op] for op in integers} == {op: before[op] for op in integers}
    assert after[UNPACKED] <= before[UNPACKED]
    assert after.total() <= before.total()
    assert optimized.ByteSize() <= model.ByteSize() * 1.05
    # between float parts, attention and Gelu, only the order of the operations changes
    noise = 0 if way.startswith("Q") else 1e-5
    np.testing.assert_allclose(expected, got, rtol=noise, atol=noise)


#: operators of onnxruntime on integers, between two rows of nodes that change nothing
KEPT = {
    "QMoE": """g (float[n, 32] x, float[n, 2] r, uint8[2, 64, 32] w, float[2, 64] s, uint8[2, 32, 32] v,
        float[2, 32] t) => (float[n, 32] y) { a = Transpose(x) b = Transpose(a)
        c = com.microsoft.QMoE<k = 1, expert_weight_bits = 8, activation_type = "swiglu",
            swiglu_fusion = 1>(b, r, w, s, , v, t)
        d = Neg(c) y = Neg(d) }""",
    "QAttention": """g (uint8[n, 3, 8] x, uint8[8, 24] w, float[24] b, float p, float q, uint8 z)
        => (float[n, 3, 8] y) { a = Transpose<perm = [0, 2, 1]>(x) c = Transpose<perm = [0, 2, 1]>(a)
        d = com.microsoft.QAttention<num_heads = 2>(c, w, b, p, q, , z, z) y = Identity(d) }""",
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    """The operator reads and gives what it did, what is around it is optimized."""
    model = model_from_text(KEPT[name])
    options = OptimizationOptions(patterns="default+onnxruntime")
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    optimized = builder.to_onnx()
    (before,) = [n for n in model.graph.node if n.op_type == name]
    (after,) = [n for n in optimized.graph.node if n.op_type == name]
    assert list(after.input) == ["x", *before.input[1:]]
    assert list(after.attribute) == list(before.attribute)
    assert "Transpose" not in {n.op_type for n in optimized.graph.node}
    feeds = {
        n: np.asarray(f // 8) if f.dtype == np.uint8 else f
        for n, f in make_feeds(model, {"n": 3}).items()
    }
    (expected,), (got,) = run_onnxruntime(model, feeds), run_onnxruntime(optimized, feeds)
    np.testing.assert_array_equal(expected, got)
