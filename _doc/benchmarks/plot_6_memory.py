"""
Memory and large weights
========================

The command leaves the weights on the disk, so the size of the weights hardly changes its peak of memory.
:doc:`/command/large_models` compares the time for models of 2.2 GB with the time of a copy of their files.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas

table = pandas.read_csv(Path("data") / "memory.csv")
print(table.to_string(index=False))

fig, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(table["weights_mb"], table["peak_mb"], marker="o", label="xoptim model.onnx optimized.onnx")
ax.plot(
    table["weights_mb"], table["weights_mb"], "--", color="gray", label="the weights themselves"
)
ax.set(xscale="log", yscale="log", xlabel="MB of weights", ylabel="MB, peak of memory", ylim=10)
ax.legend()
fig.tight_layout()
