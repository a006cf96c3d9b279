"""Where the nodes of a model run."""

from __future__ import annotations

import onnx.parser

from xbuilder import GraphBuilder
from xoptim.linting.where import Placement, placement

TEXT = """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
g (float16[n, 4] x, bool c) => (y, z) {
    y = If(c) <then_branch = a () => (o) { o = Erf(x) }, else_branch = b () => (p) { p = Neg(x) }>
    z = local.f(x)
}
<domain: "local", opset_import: ["" : 18]> f (a) => (b) { b = Neg(a) }"""


def test_bodies_and_calls():
    """The nodes of bodies are counted, the call of a local function is not."""
    graph = GraphBuilder(onnx.parser.parse_model(TEXT), infer_shapes_options=True).graph
    found = placement(graph, "CPU")
    total = found.kernels + found.definitions + found.casts + sum(found.missing.values())
    assert total == 3 and found.casts >= 1 and not found.missing


def test_text():
    found = Placement("CPU", "onnxruntime 1", 3, 2, 1, {"NonZero": 4})
    assert str(found) == (
        "CPU, onnxruntime 1: 3 by a kernel, 2 by their definition, 1 in float between casts, "
        "no kernel for 4 NonZero"
    )
    assert found.to_dict()["missing"] == {"NonZero": 4}
