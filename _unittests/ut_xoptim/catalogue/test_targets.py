"""Targets: the sets they choose, the operators they refuse."""

from __future__ import annotations

import onnx.parser
import pytest

import xoptim
from xbuilder.errors import OptionError
from xoptim.catalogue.targets import TARGETS, check_target, get_target, target_options

FUSED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[b, n, 4] x, float[b, m, 4] z) => (float[b, n, m] y) {
    t = Transpose<perm = [0, 2, 1]>(z) y = MatMul(x, t) }"""
CONTRIB = """<ir_version: 8, opset_import: ["" : 16, "com.microsoft" : 1, "local" : 1]>
g (float[n, 4] x, bool c) => (float[n, 4] y, float[n, 4] z) {
    y = If(c) <
        then_branch = b1 () => (float[n, 4] o) { o = com.microsoft.Gelu(x) },
        else_branch = b2 () => (float[n, 4] p) { p = Relu(x) }
    >
    z = local.f(x)
}
<domain: "local", opset_import: ["" : 16]> f (a) => (b) { b = LayerNormalization(a, a) }"""


def test_options():
    assert target_options(None, "default", "CPU") == {
        "target": None, "patterns": "default", "processor": "CPU", "public_operators": False,
    }  # fmt: skip
    found = target_options("onnxruntime", "default", "CPU")
    assert found["patterns"] == "default+onnxruntime" and not found["public_operators"]
    found = target_options("tensorrt", "default", "CPU")
    assert found["processor"] == "CUDA" and found["public_operators"]
    found = target_options("onnxruntime-cuda", "Cast", "CPU,CUDA", public_operators=True)
    assert (found["patterns"], found["processor"]) == ("Cast", "CPU,CUDA")
    assert found["public_operators"]


def test_unknown_target():
    with pytest.raises(OptionError, match=r"'tensort'\. Did you mean 'tensorrt'"):
        get_target("tensort")
    with pytest.raises(OptionError, match="one of .'any', 'onnxruntime'"):
        get_target("?")


@pytest.mark.parametrize("name", TARGETS)
def test_targets(name):
    done = xoptim.optimize(onnx.parser.parse_model(FUSED), target=name)
    fused = "onnxruntime" in name
    assert [n.op_type for n in done.model.graph.node] == (
        ["FusedMatMul"] if fused else ["Transpose", "MatMul"]
    )
    assert not done.other_matches


def test_new_operators_are_refused():
    model = onnx.parser.parse_model(FUSED)
    with pytest.raises(OptionError, match=r"'any' .* wrote com\.microsoft\.FusedMatMul"):
        xoptim.optimize(model, target="any", patterns="default+onnxruntime")


def test_operators_of_the_model_are_left():
    """In a body, in a local function, and of a domain onnx does not know."""
    model, empty = onnx.parser.parse_model(CONTRIB), onnx.ModelProto()
    check_target("openvino", model, model)
    check_target("onnxruntime", empty, model)
    with pytest.raises(OptionError, match=r"wrote LayerNormalization, com\.microsoft\.Gelu:"):
        check_target("openvino", empty, model)
