"""
Where each new node comes from
==============================

``Provenance`` remembers the rewrites that wrote each node, and the nodes of the original model that it replaces.
"""

import onnx
import pandas

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.toolkit.features import Provenance

model = onnx.parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 18]>
    agraph (float[n, 4] x, float[4, 3] w, float[3] b) => (float[n, 3] y) {
        product = MatMul (x, w)
        sum = Add (product, b)
        one = Constant <value_float = 1.0> ()
        same = Mul (sum, one)
        y = Relu (same)
    }
""")
provenance = Provenance()
options = OptimizationOptions(patterns="default", features=[provenance])
optimized = GraphBuilder(model, optimization_options=options).to_onnx()
table = pandas.DataFrame(provenance.rows(optimized))
print(table[["operator", "rewrites", "sources"]].to_string())

# %%

drawn = {"before": model, "after": optimized}
