"""
A pattern made from selected nodes
==================================

Name some results of a model. ``pattern_from_nodes`` turns the nodes that compute them into a pattern to find, and you
give the replacement.
"""

import onnx

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.toolkit.selected_nodes import pattern_from_nodes

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[n, m] x) => (float[n, m] y) <float half = {0.5}> {
        h = Mul (x, half)
        s = Softmax <axis = 1> (h)
        y = Neg (s)
    }
""")
pattern = pattern_from_nodes(
    "ScaledSoftmax",
    GraphBuilder(model),
    ["h", "s"],
    lambda g, x: g.op.ScaledSoftmax(x, domain="mine"),
)
options = OptimizationOptions(patterns=[pattern])
fused = GraphBuilder(model, optimization_options=options).to_onnx()
drawn = {"before": model, "after": fused}
