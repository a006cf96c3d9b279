"""
Rewrites inside branches and loops
==================================

Rewrites apply inside branches and loops too. In the loop below, two transpositions cancel each other and a product
by 1 disappears. The optimization also moves nodes that do not depend on the iteration out of a loop.
"""

import onnx

import xoptim

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[n, n] x, int64 steps) => (float[n, n] y)
    <bool go = {1}, float one = {1}> {
        y = Loop (steps, go, x) <body = b (int64 i, bool c, float[n, n] before)
            => (bool d, float[n, n] after) {
            d = Identity (c)
            turned = Transpose <perm = [1, 0]> (before)
            back = Transpose <perm = [1, 0]> (turned)
            same = Mul (back, one)
            after = Add (same, x)
        }>
    }
""")
done = xoptim.optimize(model, verify=True)
for name, onx in (("before", model), ("after", done.model)):
    (loop,) = [node for node in onx.graph.node if node.op_type == "Loop"]
    print(name, [node.op_type for node in loop.attribute[0].g.node])

# %%

drawn = {"before": model, "after": done.model}
