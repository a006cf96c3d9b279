"""Quantization by the operators of onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.helper import tensor_dtype_to_np_dtype

from xoptim.testing import (
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
    run_reference,
)

#: name -> (before, after)
Q = "g (float[a, 4] x) => (uint8[a, 4] y) <float s = {0.1}, uint8 z = {3}> { y = QuantizeLinear(x, s, z) }"
D = "g (uint8[a, 4] x) => (float[a, 4] y) <float s = {0.1}, uint8 z = {3}> { y = DequantizeLinear(x, s, z) }"
SCALES = "float[4] s = {0.1, 0.2, 0.3, 0.4}"
AXIS = f"g (float[a, 4] x) => (int8[a, 4] y) <{SCALES}> {{ y = QuantizeLinear<output_dtype = 3>(x, s) }}"


def by_runtime(text: str) -> str:
    """The same with the operators of onnxruntime."""
    return text.replace("= Quant", "= com.microsoft.Quant").replace(
        "= Dequ", "= com.microsoft.Dequ"
    )


BLOCKS = "g (float[a, 4] x, float[a, 2] s) => (int8[a, 4] y) { y = QuantizeLinear<block_size = 2, output_dtype = 3>(x, s) }"
#: each scale for two indices of the second axis
REPEATED = """d = Shape<start = 1, end = 2>(x) n = Squeeze(d) r = Range(zero, n, one) i = Div(r, two)
    t = Gather<axis = 1>(s, i)"""
INT64S = "int64 zero = {0}, int64 one = {1}, int64 two = {2}"
QUANTIZE = {
    "one scale": (Q, by_runtime(Q)),
    "an axis, no zero point": (
        AXIS,
        by_runtime(AXIS)
        .replace("(x, s)", "(x, s, z)")
        .replace("output_dtype = 3", "axis = 1")
        .replace("0.4}", "0.4}, int8[4] z = {0, 0, 0, 0}"),
    ),
    "another axis": (
        AXIS.replace("[a, 4]", "[4, a]").replace("<output", "<axis = -2, output"),
        by_runtime(AXIS)
        .replace("[a, 4]", "[4, a]")
        .replace("(x, s)", "(x, s, z)")
        .replace("output_dtype = 3", "axis = -2")
        .replace("0.4}", "0.4}, int8[4] z = {0, 0, 0, 0}"),
    ),
    "uint8 by default": (
        Q.replace("(x, s, z)", "(x, s)"),
        by_runtime(Q).replace("{3}", "{0}"),
    ),
    "blocks": (
        BLOCKS,
        f"""g (float[a, 4] x, float[a, 2] s) => (int8[a, 4] y)
        <{INT64S}, float low = {{-128}}, float high = {{127}}> {{
        {REPEATED} q = Div(x, t) w = Round(q) c = Clip(w, low, high) y = Cast<to = 3>(c) }}""",
    ),
    "float16": (
        "g (float16[a, 4] x, float16[4] s, int8[4] z) => (int8[a, 4] y) { y = QuantizeLinear(x, s, z) }",
        """g (float16[a, 4] x, float16[4] s, int8[4] z) => (int8[a, 4] y)
        <int64[1] axes = {0}, float low = {-128}, float high = {127}> {
        f = Cast<to = 1>(x) t = Cast<to = 1>(s) u = Unsqueeze(t, axes) q = Div(f, u)
        n = Cast<to = 10>(q) w = Cast<to = 1>(n) r = Round(w)
        k = Cast<to = 1>(z) l = Unsqueeze(k, axes) m = Add(r, l)
        c = Clip(m, low, high) y = Cast<to = 3>(c) }""",
    ),
    "float16 with a scale in float": (
        "g (float16[a] x, float s) => (uint8[a] y) { y = QuantizeLinear(x, s) }",
        """g (float16[a] x, float s) => (uint8[a] y) <float low = {0}, float high = {255}> {
        f = Cast<to = 1>(x) q = Div(f, s) r = Round(q)
        c = Clip(r, low, high) y = Cast<to = 2>(c) }""",
    ),
    "two bits": (
        "g (float[a] x, float s) => (int2[a] y) { y = QuantizeLinear<output_dtype = 26>(x, s) }",
        """g (float[a] x, float s) => (int2[a] y) <float low = {-2}, float high = {1}> {
        q = Div(x, s) r = Round(q) c = Clip(r, low, high) y = Cast<to = 26>(c) }""",
    ),
    "float8": (
        "g (float[a] x, float s, float8e4m3fn z) => (float8e4m3fn[a] y) { y = QuantizeLinear<saturate = 0>(x, s, z) }",
        """g (float[a] x, float s, float8e4m3fn z) => (float8e4m3fn[a] y) {
        q = Div(x, s) y = Cast<to = 17, saturate = 0>(q) }""",
    ),
}  # fmt: skip
DEQUANTIZE = {
    "one scale": (D, by_runtime(D)),
    "int32": (
        D.replace("uint8", "int32").replace(", int32 z = {3}", "").replace("(x, s, z)", "(x, s)"),
        by_runtime(D)
        .replace("uint8", "int32")
        .replace(", int32 z = {3}", "")
        .replace("(x, s, z)", "(x, s)"),
    ),
    "bfloat16": (
        "g (int8[a] x, bfloat16 s, int8 z) => (bfloat16[a] y) { y = DequantizeLinear(x, s, z) }",
        """g (int8[a] x, bfloat16 s, int8 z) => (bfloat16[a] y) {
        f = Cast<to = 1>(x) k = Cast<to = 1>(z) d = Sub(f, k) t = Cast<to = 1>(s)
        p = Mul(d, t) y = Cast<to = 16>(p) }""",
    ),
    "another result": (
        "g (int8[a] x, float s) => (float16[a] y) { y = DequantizeLinear<output_dtype = 10>(x, s) }",
        """g (int8[a] x, float s) => (float16[a] y) {
        f = Cast<to = 1>(x) p = Mul(f, s) y = Cast<to = 10>(p) }""",
    ),
    "blocks of float8": (
        "g (float8e5m2[a, 4] x, float[a, 2] s) => (float[a, 4] y) { y = DequantizeLinear<block_size = 2>(x, s) }",
        f"""g (float8e5m2[a, 4] x, float[a, 2] s) => (float[a, 4] y) <{INT64S}> {{
        f = Cast<to = 1>(x) {REPEATED} y = Mul(f, t) }}""",
    ),
}  # fmt: skip
MODELS = {
    pattern: {case: (*texts, {"opset": 28}) for case, texts in table.items()}
    for pattern, table in {
        "MissingQuantizeLinear": QUANTIZE,
        "MissingDequantizeLinear": DEQUANTIZE,
    }.items()
}
REFUSED = {
    "MissingQuantizeLinear": {
        "a kernel": (Q, "onnxruntime loads", {"opset": 25}),
        "CUDA": (Q, "another processor", {"processor": "CUDA"}),
        "scales of a block": (
            AXIS.replace("[4] s = {0.1, 0.2, 0.3, 0.4}", "[1, 2] s = {0.1, 0.2}"),
            "neither one nor those of an axis",
        ),
        "blocks of another rank": (
            BLOCKS.replace("float[a, 2] s", "float[2] s"),
            "do not have the rank",
        ),
        "integers": (
            "g (int32[a] x, float s) => (uint8[a] y) { y = QuantizeLinear(x, s) }",
            "not in float",
        ),
        "another precision": (Q.replace("Linear(", "Linear<precision = 10>("), "the type that divides"),
        "float4": (
            "g (float[a] x, float s) => (float4e2m1[a] y) { y = QuantizeLinear<output_dtype = 23>(x, s) }",
            "does not cast to it",
        ),
        "scales that are not counted": (
            "g (float[a, b] x, float[b] s) => (uint8[a, b] y) { y = QuantizeLinear(x, s) }",
            "number of scales is not known",
        ),
    },
    "MissingDequantizeLinear": {
        "a kernel": (D, "onnxruntime loads", {"opset": 25}),
        "a scale that is a power": (
            "g (int8[a] x, float8e8m0 s) => (float[a] y) { y = DequantizeLinear<output_dtype = 1>(x, s) }",
            "not in float",
        ),
        "float4": (
            "g (float4e2m1[a] x, float s) => (float[a] y) { y = DequantizeLinear(x, s) }",
            "does not cast it",
        ),
    },
}  # fmt: skip
# the models before do not load
test_rewrites = rewrite_tests(MODELS, runtime=False)
test_refuses = refusal_tests(REFUSED, opset=28)


OLDER = [Q.replace("uint8", kind) for kind in ("int8", "uint8", "int16", "uint16")]
OLDER += [QUANTIZE[k][0] for k in ("an axis, no zero point", "another axis", "uint8 by default")]
OLDER += [text for text, _ in (DEQUANTIZE["one scale"], DEQUANTIZE["int32"])]
OLDER += [
    "g (float[2, 4] x) => (int8[2, 4] y) <float[2, 2] s = {1, 2, 0.1, 0.5}>"
    "{ y = QuantizeLinear<block_size = 2, output_dtype = 3>(x, s) }",
    "g (float[2, 4] x) => (float8e4m3fn[2, 4] y) <float s = {0.1}> { y = QuantizeLinear<output_dtype = 17>(x, s) }",
    "g (float[2, 4] x) => (int4[2, 4] y) <float s = {0.1}> { y = QuantizeLinear<output_dtype = 22>(x, s) }",
]  # fmt: skip


@pytest.mark.parametrize("text", OLDER)
def test_as_the_older_operator(text: str) -> None:
    """Half integers, values out of range, infinities: the same to the last bit."""
    found, _, _ = optimize_with(model_from_text(text, 28), "fix")
    x = np.array([[0.05, 0.15, 0.25, -0.05], [1e9, -1e9, np.inf, -np.inf]], np.float32)
    if "= Dequantize" in text:
        kind = text[3 : text.index("[")]
        x = np.array([[0, 1, 2, 127], [3, 4, 5, 100]], kind)
    feeds = {"x": np.ascontiguousarray(x.T) if "[4, a]" in text else x}
    (expected,) = run_onnxruntime(model_from_text(text, 25), feeds)
    np.testing.assert_array_equal(run_onnxruntime(found, feeds)[0], expected)


FREE = [
    ("float16[a, b] x, float16[c] s", "uint8[a, b] y", "QuantizeLinear<precision = 1>(x, s)"),
    ("uint8[a, b] x, float16[c] s, uint8[d] z", "float16[a, b] y", "DequantizeLinear<axis = -1>(x, s, z)"),
    ("uint8[a, b] x, float[c, d] s", "float[a, b] y", "DequantizeLinear<block_size = 1>(x, s)"),
    ("uint8[a] x, float16 s, uint8[d] z", "float16[a] y", "DequantizeLinear(x, s, z)"),
]  # fmt: skip


@pytest.mark.parametrize("inputs, output, call", FREE)
def test_sizes_that_are_not_known(inputs: str, output: str, call: str) -> None:
    """The result has the shape of the tensor, whatever the names of the scales' sizes."""
    model = model_from_text(f"g ({inputs}) => ({output}) {{ y = {call} }}", 28)
    found, _, _ = optimize_with(model, "fix")
    x, s = np.array([[0, 3, 5], [7, 1, 2]]), np.array([1, 2, 0.5])
    if "block" in call:
        s = np.array([[1, 2, 0.5], [0.25, 1, 4]])
    elif "x, float16 s" in inputs:
        x, s = x[0], np.array(2)
    z = np.array([1, 2, 3][: s.size])
    names = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    values = {"x": x, "s": s, "z": z}
    feeds = {n: values[n].astype(tensor_dtype_to_np_dtype(t)) for n, t in names.items()}
    (expected,) = run_reference(model, feeds)
    np.testing.assert_array_equal(run_onnxruntime(found, feeds)[0], expected)
