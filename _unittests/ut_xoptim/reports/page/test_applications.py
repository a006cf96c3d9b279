"""The first application of each rewrite: its nodes, shapes and constants."""

from __future__ import annotations

import onnx.parser

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.reports.page.applications import RewriteExamples

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x, float[n, 4] z) => (float[n, 4] y, float[n, 4] w)
<float[4, 4] k = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, float[4] b = {1,2,3,4}> {
    a = Transpose<perm = [1, 0]>(x) c = Transpose<perm = [1, 0]>(a) m = MatMul(c, k) y = Add(m, b)
    d = Transpose<perm = [1, 0]>(z) w = Transpose<perm = [1, 0]>(d) }"""


def examples():
    found = RewriteExamples()
    options = OptimizationOptions(patterns="default", features=[found])
    GraphBuilder(onnx.parser.parse_model(MODEL), optimization_options=options).optimize()
    return found.found


def test_examples():
    found = examples()
    assert set(found) >= {"TransposeTranspose", "MatMulAdd"}
    example = found["MatMulAdd"]
    assert [n.op_type for n in example.before] == ["MatMul", "Add"]
    assert [n.op_type for n in example.after] == ["Gemm"]
    assert example.doc == "Add(MatMul(A, B), C) -> Gemm(A, B, C)."
    assert example.shapes["m"] == "float[n, 4]", "a result that is gone"
    assert example.constants["k"].startswith("float[4, 4]") and "x" not in example.constants
    assert example.outputs() == ["y"]


def test_drawings():
    before, after = examples()["MatMulAdd"].drawings("e")
    assert [v.title for v in before.vertices] == ["x", "MatMul", "Add", "y"]
    assert [v.title for v in after.vertices] == ["x", "Gemm", "y"]
    assert (before.identifier, after.identifier) == ("eb", "ea")
    before, after = examples()["TransposeTranspose"].drawings("e")
    assert [v.title for v in before.vertices].count("Transpose") == 2
    assert before.vertices[-1].title == after.vertices[-1].title
