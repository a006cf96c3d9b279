"""
What rounding looks like
========================

A fusion may add numbers in another order, which changes the rounding of float32. This script compares the rounding
errors with the tolerance of ``verify``.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import torch

import xoptim
from torch_interpreter import to_onnx

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
x = torch.randn(8, 16, 64)
onx = to_onnx(layer, (x,), optimize=False)
optimized = xoptim.optimize(onx, patterns="default+onnxruntime").model


def run(model):
    """The output, computed without the optimizations of onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]


before, after = run(onx), run(optimized)
exact = layer.double()(x.double()).detach().numpy()
errors = {"before": np.abs(before - exact), "after": np.abs(after - exact)}

# %%
# Both models are equally far from the result computed with doubles.

fig, ax = plt.subplots(figsize=(6, 3.5))
for name, error in errors.items():
    ax.hist(np.log10(error.ravel() + 1e-12), bins=60, alpha=0.5, label=name)
ax.axvline(-4, color="red", linestyle="--", label="tolerance of verify")
ax.set(xlabel="log10 of the difference with doubles", ylabel="values", xlim=(-12, -3))
ax.legend()
fig.tight_layout()
