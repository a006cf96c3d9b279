"""
Operators for attention
=======================

This page shows what the rewrites of attention save. The sets only hold a rewrite that saves time. The ratio is the time
with the operator divided by the time without it. onnxruntime runs both models on one thread, with its own
optimizations. The operator is faster when the ratio is below 1.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas

TABLES = Path("..") / "tables"
table = pandas.read_csv(TABLES / "attention.csv")

# %%
# One dot is one size of the inputs. ``_doc/examples/bench_attention.py --write`` measures the ratios again.

groups = [(name, part["ratio"]) for name, part in table.groupby("pattern")]
fig, ax = plt.subplots(figsize=(7, 4))
for i, (_, ratios) in enumerate(groups):
    ax.scatter(ratios, [i] * len(ratios), alpha=0.6)
ax.axvline(1, color="gray", linestyle="--")
ax.set_yticks(range(len(groups)), [name for name, _ in groups])
ax.set(xlabel="time with / time without", title=f"onnxruntime {table['onnxruntime'].max()}, CPU")
fig.tight_layout()

# %%
# ``SkipLayerNormalization`` is slower on CPU when another node reads the sum, and saves nothing otherwise. The
# optimization only writes it for CUDA.

skip = pandas.read_csv(TABLES / "skip_layer_norm.csv")
skip["size"] = skip["batch"] * skip["sequence"] * skip["hidden"]
fig, ax = plt.subplots(figsize=(7, 3.5))
for (name, case), part in skip.groupby(["pattern", "case"]):
    ax.scatter(part["size"], part["ratio"], label=f"{name}, {case}", alpha=0.7)
ax.axhline(1, color="gray", linestyle="--")
ax.set(xscale="log", xlabel="elements", ylabel="time with / time without")
ax.legend(fontsize=7)
fig.tight_layout()

# %%
# Each rewrite on models
# ++++++++++++++++++++++
#
# A bar is the range of the ratios over the sizes, with two cores and onnxruntime 1.31 or 1.32. Each range was measured
# when the rewrite was written. The machines differ, and some of them ran other programs, so a range inside the gray
# band is noise.

DATA = Path("data")


def ranges(name, columns, height):
    """One bar by row, from the lowest ratio to the highest."""
    rows = pandas.read_csv(DATA / name)
    labels = rows[columns].agg(", ".join, axis=1)
    fig, ax = plt.subplots(figsize=(8, height))
    ax.barh(range(len(rows)), rows["high"] - rows["low"] + 0.004, left=rows["low"])
    ax.set_yticks(range(len(rows)), labels, fontsize=7)
    ax.invert_yaxis()
    ax.axvline(1, color="gray", linestyle="--")
    ax.axvspan(0.97, 1.03, color="gray", alpha=0.15)
    ax.set(xlabel="time with / time without")
    fig.tight_layout()


ranges("rewrites.csv", ["rewrite", "model", "case"], 9)

# %%
# Measured, and not written
# +++++++++++++++++++++++++
#
# These rewrites were measured in the same way. They do not save enough time, so the project does not have them.

ranges("not_written.csv", ["rewrite", "case"], 5)
