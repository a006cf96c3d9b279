"""Additions before a LayerNormalization."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest

from xoptim.testing import check_pattern, model_from_text, refusal_tests, rewrite_tests

LAYER = "Y = LayerNormalization(s, W, B)"
ADDED = f"s = Add(X, Z) {LAYER}"


def added(
    body: str = ADDED,
    x: str = "a, b, 384",
    z: str = "a, b, 384",
    elem_type: str = "float",
    outputs: str = "",
) -> str:
    """Two operands, a scale, a bias."""
    return f"""agraph ({elem_type}[{x}] X, {elem_type}[{z}] Z, {elem_type}[384] W, {elem_type}[384] B)
    => ({elem_type}[{x}] Y{outputs}) {{ {body} }}"""


ON_CPU = {"processor": "CPU", "reference": True}
MODELS = {
    "SumLayerNormalization": {
        "float": (added(), added(f"s = Sum(X, Z) {LAYER}"), ON_CPU),
        "double": (
            added(elem_type="double"),
            added(f"s = Sum(X, Z) {LAYER}", elem_type="double"),
            ON_CPU,
        ),
    },
}


test_rewrites = rewrite_tests(MODELS, opset=18, atol=1e-5)


test_refuses = refusal_tests(
    {
        "SumLayerNormalization": {
            "on CUDA": (added(), "was not measured slower", {"processor": "CUDA"}),
            "on both": (added(), "was not measured slower", {"processor": "CPU,CUDA"}),
            "rank 2": (added(x="a, 384", z="a, 384"), "does not fuse this addition"),
            "broadcast": (added(z="1, b, 384"), "does not fuse this addition"),
            "another length": (added(z="c, b, 384"), "does not fuse this addition"),
            "the sum is used": (added(outputs=", float[a, b, 384] s"), "used elsewhere"),
            "no Add": (added("Y = LayerNormalization(X, W, B)"), "no Add before"),
            "float16": (added(elem_type="float16"), "no Sum for this type"),
        }
    }
)


def test_before_opset_17() -> None:
    """onnxruntime writes and runs LayerNormalization in any opset."""
    before, after, options = MODELS["SumLayerNormalization"]["float"]
    check_pattern(before, after, "SumLayerNormalization", 15, **{**options, "reference": False})


@pytest.mark.parametrize("op_type", ["Add", "Sum"])
def test_what_onnxruntime_fuses(op_type: str, tmp_path: Path) -> None:
    """A Sum is not fused when the model is loaded."""
    text = f"""agraph (float[a, b, 4] X, float[a, b, 4] Z) => (float[a, b, 4] Y)
    <float[4] W = {{1, 2, 3, 4}}, float[4] B = {{0, 1, 0, 1}}> {{ s = {op_type}(X, Z) {LAYER} }}"""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    onnxruntime.InferenceSession(model_from_text(text, 18).SerializeToString(), options)
    found = [n.op_type for n in onnx.load(options.optimized_model_filepath).graph.node]
    fused = ["SkipLayerNormalization"]
    assert found == (fused if op_type == "Add" else ["Sum", "LayerNormalization"])
