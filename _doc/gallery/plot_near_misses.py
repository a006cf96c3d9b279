"""
The fusions a model nearly has
==============================

``near_misses`` tries every pattern on a model. It ranks the patterns that declined by the number of nodes they visited
first, so the fusions that nearly applied are at the top.
"""

import matplotlib.pyplot as plt
import onnx

import xoptim

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 8] x, float one) => (float[batch, 8] y)
    <float half = {0.5}, float root = {1.4142135}> {
        scaled = Div (x, root)
        erf = Erf (scaled)
        shifted = Add (erf, one)
        product = Mul (x, shifted)
        y = Mul (product, half)
    }
""")

# %%
# This model is nearly a Gelu, but the number that it adds is an input, not a constant.

misses = xoptim.near_misses(model, op_type="Mul")[:12]
for miss in misses[:3]:
    print(miss.pattern, "at", miss.result, "-", miss.reason)

fig, ax = plt.subplots(figsize=(7, 3.5))
ax.barh([f"{m.pattern} ({m.result})" for m in misses], [m.visited for m in misses])
ax.invert_yaxis()
ax.set(xlabel="nodes visited before it declined")
fig.tight_layout()
