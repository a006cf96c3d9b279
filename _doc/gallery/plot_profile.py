"""
Where the time goes
===================

An optimization records the time of each search and of each application of a pattern. This script plots the steps that
take the most time. :doc:`/rewrites/profiles` shows how to measure more.
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
# Each row of the statistics is a search, the application of a pattern, or a pass.

times = rows.groupby("pattern")["time_in"].sum().sort_values().tail(15) * 1000
ax = times.plot.barh(figsize=(7, 4.5))
ax.set(xlabel="milliseconds", ylabel="")
plt.tight_layout()
