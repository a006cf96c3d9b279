"""Quantization by the operators of onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import (
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
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


MODELS = {
    "MissingQuantizeLinear": {
        "one scale": (Q, by_runtime(Q)),
        "back": (D, by_runtime(D)),
        "an axis, no zero point": (
            AXIS,
            by_runtime(AXIS)
            .replace("(x, s)", "(x, s, z)")
            .replace("output_dtype = 3", "axis = 1")
            .replace("0.4}", "0.4}, int8[4] z = {0, 0, 0, 0}"),
            {"opset": 28},
        ),
        "another axis": (
            AXIS.replace("[a, 4]", "[4, a]").replace("<output", "<axis = -2, output"),
            by_runtime(AXIS)
            .replace("[a, 4]", "[4, a]")
            .replace("(x, s)", "(x, s, z)")
            .replace("output_dtype = 3", "axis = -2")
            .replace("0.4}", "0.4}, int8[4] z = {0, 0, 0, 0}"),
            {"opset": 28},
        ),
        "uint8 by default": (
            Q.replace("(x, s, z)", "(x, s)"),
            by_runtime(Q).replace("{3}", "{0}"),
        ),
        "int32": (
            D.replace("uint8", "int32").replace(", int32 z = {3}", "").replace("(x, s, z)", "(x, s)"),
            by_runtime(D)
            .replace("uint8", "int32")
            .replace(", int32 z = {3}", "")
            .replace("(x, s, z)", "(x, s)"),
        ),
    }
}  # fmt: skip
REFUSED = {
    "MissingQuantizeLinear": {
        "a kernel": (Q, "onnxruntime loads", {"opset": 25}),
        "CUDA": (Q, "another processor", {"processor": "CUDA"}),
        "blocks": (
            AXIS.replace("float[4] s = {0.1, 0.2, 0.3, 0.4}", "float[1, 2] s = {0.1, 0.2}").replace(
                "<output", "<block_size = 2, output"
            ),
            "for a block",
        ),
        "scales of a block": (
            AXIS.replace("[4] s = {0.1, 0.2, 0.3, 0.4}", "[1, 2] s = {0.1, 0.2}"),
            "neither one nor those of an axis",
        ),
        "float16": (
            "g (float16[a] x, float16 s) => (uint8[a] y) { y = QuantizeLinear(x, s) }",
            "not in float",
        ),
        "to float16": ("g (int8[a] x, float16 s) => (float16[a] y) { y = DequantizeLinear(x, s) }", "not in float"),
        "another result": (
            "g (int8[a] x, float s) => (float16[a] y) { y = DequantizeLinear<output_dtype = 10>(x, s) }",
            "another type",
        ),
        "another precision": (Q.replace("Linear(", "Linear<precision = 10>("), "another type"),
        "float8": (
            "g (float[a] x, float s, float8e4m3fn z) => (float8e4m3fn[a] y) { y = QuantizeLinear(x, s, z) }",
            "no kernel for these integers",
        ),
        "scales that are not counted": (
            "g (float[a, b] x, float[b] s) => (uint8[a, b] y) { y = QuantizeLinear(x, s) }",
            "number of scales is not known",
        ),
    }
}  # fmt: skip
# the models before do not load
test_rewrites = rewrite_tests(MODELS, opset=28, runtime=False)
test_refuses = refusal_tests(REFUSED, opset=28)


OLDER = [Q.replace("uint8", kind) for kind in ("int8", "uint8", "int16", "uint16")]
OLDER += [text for text, *_ in MODELS["MissingQuantizeLinear"].values()]


@pytest.mark.parametrize("text", OLDER)
def test_as_the_older_operator(text: str) -> None:
    """Half integers, values out of range, infinities: the same to the last bit."""
    found, _, _ = optimize_with(model_from_text(text, 28), "MissingQuantizeLinear")
    x = np.array([[0.05, 0.15, 0.25, -0.05], [1e9, -1e9, np.inf, -np.inf]], np.float32)
    if "= Dequantize" in text:
        kind = text[3 : text.index("[")]
        x = np.array([[0, 1, 2, 127], [3, 4, 5, 100]], kind)
    feeds = {"x": np.ascontiguousarray(x.T) if "[4, a]" in text else x}
    (expected,) = run_onnxruntime(model_from_text(text, 25), feeds)
    np.testing.assert_array_equal(run_onnxruntime(found, feeds)[0], expected)
