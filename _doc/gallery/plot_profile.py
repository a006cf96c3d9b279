"""
Where the time goes
===================

``profile=True`` keeps the time of each pass and of each pattern.
"""

import matplotlib.pyplot as plt
import torch

import xoptim
from torch_interpreter import to_onnx

layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 2).eval()
onx = to_onnx(model, (torch.randn(2, 6, 32),), optimize=False)
done = xoptim.optimize(onx, patterns="default+onnxruntime")
rows = done.statistics

# %%
# The rows of the engine are enough for a plot: what was searched, what was applied.

times = rows.groupby("pattern")["time_in"].sum().sort_values().tail(15) * 1000
ax = times.plot.barh(figsize=(7, 4.5))
ax.set(xlabel="milliseconds", ylabel="")
plt.tight_layout()
