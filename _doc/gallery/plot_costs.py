"""
Operations and memory as formulas
=================================

``xoptim.summary`` counts the operations of a model and the memory of its results, for any size of its
dynamic dimensions.
"""

import matplotlib.pyplot as plt
import torch

import xoptim
from torch_interpreter import to_onnx

layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
onx = to_onnx(layer, (torch.randn(2, 6, 64),), dynamic_shapes=({0: "batch", 1: "seq"},))
print("operations:", xoptim.summary(onx).costs.total)

# %%
# With sizes, the formulas become numbers. They grow faster than the length, because of attention.

lengths = [16, 32, 64, 128, 256, 512]
costs = [xoptim.summary(onx, {"batch": 1, "seq": n}).costs for n in lengths]

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].plot(lengths, [c.at(c.total) / 1e6 for c in costs], marker="o")
axes[0].set(xlabel="sequence", ylabel="million operations", xscale="log", yscale="log")
axes[1].plot(lengths, [c.at(c.peak) / 1e6 for c in costs], marker="o", color="C1")
axes[1].set(xlabel="sequence", ylabel="peak of the results, MB", xscale="log", yscale="log")
for ax in axes:
    ax.set_xticks(lengths, lengths)
    ax.minorticks_off()
fig.tight_layout()
