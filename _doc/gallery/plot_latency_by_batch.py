"""
Where is it faster?
===================

The gain of a rewrite depends on the size. A convolution, a batch normalization and an activation are
measured for several batches.
"""

import matplotlib.pyplot as plt
import torch

import xoptim
from torch_interpreter import to_onnx

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1),
    torch.nn.BatchNorm2d(16),
    torch.nn.Hardswish(),
    torch.nn.Conv2d(16, 16, 3, padding=1, groups=16),
    torch.nn.BatchNorm2d(16),
    torch.nn.SiLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
).eval()
onx = to_onnx(model, (torch.randn(2, 3, 32, 32),), dynamic_shapes=({0: "batch"},), optimize=False)
optimized = xoptim.optimize(onx, patterns="default+onnxruntime").model

# %%

batches, rows = [1, 2, 4, 8, 16], []
for batch in batches:
    measured = xoptim.measure(onx, optimized, sizes={"batch": batch}, blocks=5, seconds=0.03)
    rows.append(measured[1])

fig, ax = plt.subplots(figsize=(6, 3.5))
ax.axhline(1, color="gray", linestyle="--", label="before")
ax.plot(batches, [row.ratio for row in rows], marker="o", label="after")
ax.fill_between(batches, [row.low for row in rows], [row.high for row in rows], alpha=0.3)
ax.set(xscale="log", xlabel="batch", ylabel="time / time before", ylim=(0, 1.3))
ax.set_xticks(batches, batches)
ax.legend()
fig.tight_layout()
