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

# %%
# Compiled code and free threads
# ++++++++++++++++++++++++++++++
#
# mypyc does not compile every module: it has no inheritance from builtin types, no deleted attributes and no second
# base class. The table has the share of an optimization that is spent in the modules it accepts among those that
# store, match and apply, calls of builtin functions included, and what it lets expect. No compiled build is kept: it
# would pay from a speed of 1.5.
#
# On a free-threaded Python, optimizations in several threads give the same graphs. protobuf has no compiled wheel for
# 3.13t, its version in pure Python takes more time.

tried = pandas.read_csv(DATA / "tried.csv").set_index("what")
print(tried.to_string())
