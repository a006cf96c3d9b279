"""
Memory and large weights
========================

The command leaves the weights on the disk, so their size hardly changes its peak of memory. A model of 2.2 GB takes
one to two times as long as a copy of its files. :doc:`/command/large_models` explains how weights are written.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas

DATA = Path("data")
table = pandas.read_csv(DATA / "memory.csv")
print(table.to_string(index=False))

fig, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(table["weights_mb"], table["peak_mb"], marker="o", label="xoptim model.onnx optimized.onnx")
ax.plot(
    table["weights_mb"], table["weights_mb"], "--", color="gray", label="the weights themselves"
)
ax.set(xscale="log", yscale="log", xlabel="MB of weights", ylabel="MB, peak of memory", ylim=10)
ax.legend()
fig.tight_layout()

# %%
# Time for 2.2 GB
# +++++++++++++++
#
# A row is a model whose large weights are copied, transposed, or multiplied by a constant. Its files are in the memory
# of the system, or only on the disk (*cold*). A bar is the time of the command over the time of ``cp`` and ``sync``
# for the same files. Just before each command, as many bytes were written and removed, so that the disk is in the same
# state.

large = pandas.read_csv(DATA / "large.csv")
ratios = large.pivot(index="weights", columns="files", values="ratio").sort_values("memory")
fig, ax = plt.subplots(figsize=(8, 5))
for i, files in enumerate(("memory", "cold")):
    places = [row + 0.4 * (0.5 - i) for row in range(len(ratios))]
    ax.barh(places, ratios[files], height=0.4, label=f"files in {files}" if not i else "cold files")
ax.axvline(1, color="gray", linestyle="--")
ax.set_yticks(range(len(ratios)), ratios.index)
ax.set(xlabel="time of xoptim / time of cp and sync")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=2)
fig.tight_layout()

# %%
# The times are in seconds. ``cpu`` is the CPU time of the command, which two threads may spend. ``more_mb`` is the
# memory that the command takes beyond its own.

print(large.to_string(index=False))

# %%
# The measure
# +++++++++++
#
# ``make bench-large`` measures the second table again. It needs 7 GB of disk.

about = pandas.read_csv(DATA / "about.csv").set_index("table").loc[["memory.csv", "large.csv"]]
print(about[["date", "commit", "machine", "how"]].to_string())
