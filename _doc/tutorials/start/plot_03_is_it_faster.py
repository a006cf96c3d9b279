"""
Is it faster?
=============

A model with fewer nodes is not always faster, so measure it. ``measure`` runs two models in turns on the same
inputs. If other programs slow the machine down, they slow down both models.
"""

import numpy as np
import onnx

import xoptim

rng = np.random.default_rng(0)
model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[batch, 256] x) => (float[batch, 256] y) {
        product = MatMul (x, w)
        scaled = Mul (product, gamma)
        shifted = Add (scaled, beta)
        y = Relu (shifted)
    }
""")
for name, shape in [("w", (256, 256)), ("gamma", 256), ("beta", 256)]:
    weights = rng.normal(size=shape).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))

# %%
# ``ratio`` is the time of the second model divided by the time of the first one. Below 1, the second model
# is faster. Half of the measures are between ``low`` and ``high``. The time is CPU time, and onnxruntime makes
# its own optimizations on both models.

optimized = xoptim.optimize(model, patterns="default+onnxruntime").model
before, after = xoptim.measure(model, optimized, sizes={"batch": 16}, blocks=5)
print(f"{before.milliseconds:.3f} ms -> {after.milliseconds:.3f} ms")
print(f"ratio {after.ratio:.2f}, between {after.low:.2f} and {after.high:.2f}")

# %%
# The gain depends on the size of the batch. A plot shows it.

import matplotlib.pyplot as plt

sizes = [1, 4, 16, 64, 256]
ratios = []
for batch in sizes:
    _, after = xoptim.measure(model, optimized, sizes={"batch": batch}, blocks=5, seconds=0.02)
    ratios.append(after.ratio)

fig, ax = plt.subplots(figsize=(6, 3))
ax.axhline(1, color="gray", linestyle="--")
ax.plot(sizes, ratios, marker="o")
ax.set(xscale="log", xlabel="batch", ylabel="time after / time before", ylim=(0, 1.2))
fig.tight_layout()

# %%
# Which set for which runtime?
# ++++++++++++++++++++++++++++
#
# ============================  ==================================================================
# ``default``                   any runtime: standard operators only
# ``default+onnxruntime``       onnxruntime: its fused operators too
# ``--processor CUDA``          what has a kernel on a GPU
# ``--target tensorrt``         the sets and the operators that suit this runtime
# ============================  ==================================================================
#
# On CPU, the set ``onnxruntime`` also replaces :doc:`kernels that are slow </auto_benchmarks/plot_7_patterns>`.
#
# ``xoptim measure a.onnx b.onnx`` does the same on files, and ``xoptim tune model.onnx`` measures what
# each pattern saves.
