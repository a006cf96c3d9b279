"""
What an optimization costs
==========================

This page shows how the time of an optimization grows with the number of nodes, and which steps take the most time.
``python _doc/benchmarks/collect.py CORPUS`` measures it again.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas

DATA = Path("data")
print(pandas.read_csv(DATA / "about.csv").set_index("table")[["date", "machine"]].to_string())

# %%
# Chains of nodes
# +++++++++++++++

table = pandas.read_csv(DATA / "scaling.csv")
slope = np.polyfit(np.log(table["nodes"]), np.log(table["seconds"]), 1)[0]
print(f"time grows as N^{slope:.2f}")
fig, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(table["nodes"], table["seconds"], marker="o", label="xoptim")
first = table.iloc[0]
ax.plot(table["nodes"], table["nodes"] * first["seconds"] / first["nodes"], "--", label="linear")
ax.set(xscale="log", yscale="log", xlabel="nodes", ylabel="seconds of CPU")
ax.legend()
fig.tight_layout()

# %%
# Steps
# +++++
#
# These steps take the most time over the models of the corpus. A step is the search of a pattern (``match_``), the
# application of a pattern (``apply_``), or a pass.

steps = pandas.read_csv(DATA / "steps.csv").groupby("step")["ms"].sum().sort_values()
ax = steps.tail(20).plot.barh(figsize=(7, 5))
ax.set(xlabel="milliseconds, all the models", ylabel="")
plt.tight_layout()
