"""
Where is it faster?
===================

The gain of an optimization depends on the size of the inputs. This script measures a layer of a transformer for
several lengths.
"""

import matplotlib.pyplot as plt
import torch

import xoptim
from torch_interpreter import to_onnx

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
onx = to_onnx(
    layer, (torch.randn(2, 6, 64),), dynamic_shapes=({0: "batch", 1: "seq"},), optimize=False
)
optimized = xoptim.optimize(onx, patterns="default+onnxruntime").model

# %%

lengths, rows = [4, 16, 64, 256], []
for length in lengths:
    sizes = {"batch": 1, "seq": length}
    measured = xoptim.measure(onx, optimized, sizes=sizes, blocks=5, seconds=0.03)
    rows.append(measured[1])

fig, ax = plt.subplots(figsize=(6, 3.5))
ax.axhline(1, color="gray", linestyle="--", label="before")
ax.plot(lengths, [row.ratio for row in rows], marker="o", label="after")
ax.fill_between(lengths, [row.low for row in rows], [row.high for row in rows], alpha=0.3)
ax.set(xscale="log", xlabel="sequence", ylabel="time / time before", ylim=(0, 1.3))
ax.set_xticks(lengths, lengths)
ax.legend()
fig.tight_layout()
