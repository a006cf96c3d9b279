"""
Where the time of a model goes
==============================

This page compares the latency of each optimized model with what the processor needs at least, and says which
operators take the rest. ``python _doc/benchmarks/roofline.py CORPUS`` measures it again.

Everything runs on one thread, with the optimizations of onnxruntime. The bound of a product or of a convolution is its
operations at the speed of the fastest product of two matrices on the same core, or its bytes at the speed of a copy.
The bound of any other node is its bytes at the speed of a copy. A node that only changes a shape has none.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas

DATA = Path("data")
about = pandas.read_csv(DATA / "about.csv").set_index("table")
print(about.loc["roofline.csv", ["date", "machine", "versions", "how"]].to_string())
table = pandas.read_csv(DATA / "roofline.csv").set_index("model")

# %%
# Latency, before and after
# +++++++++++++++++++++++++
#
# The ratio is the median over blocks in which both models run in turns.

ratios = table["ratio"]
print(f"geometric mean over {len(table)} models: {np.exp(np.log(ratios).mean()):.3f}")
print(table.loc[ratios > 1.01, ["original_ms", "ours_ms", "ratio"]].to_string())

# %%
# Shares of the latency
# +++++++++++++++++++++
#
# *products* and *passes* are the bounds. What products take above theirs depends on the kernels. A fusion may save the
# passes over memory and what they take above their bound. What is outside of the kernels is the cost of running a node.

parts = {
    "products": "products_ms",
    "products, above their bound": "products_over_ms",
    "passes over memory": "passes_ms",
    "passes, above their bound": "passes_over_ms",
    "outside of the kernels": "outside_ms",
}
# kernels add up to more than the latency where other programs ran, or where timing a small kernel takes its time
table["undisturbed"] = table["outside_ms"] > -table["ours_ms"] / 10
print("disturbed:", ", ".join(table.index[~table["undisturbed"]]) or "none")
shares = table.loc[table["undisturbed"], list(parts.values())].clip(lower=0)
shares = shares.div(shares.sum(axis=1), axis=0).rename(columns={v: k for k, v in parts.items()})
shares = shares.sort_values("products")
ax = shares.plot.barh(stacked=True, figsize=(8, 1 + 0.2 * len(shares)), width=0.85)
ax.set(xlabel="share of the latency", ylabel="", xlim=(0, 1))
ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncol=2)
plt.tight_layout()
print(shares.mean().round(3).to_string())

# %%
# Operators
# +++++++++
#
# These operators take the most time above their bound: the mean over the models of their share of the latency.

found = pandas.read_csv(DATA / "roofline_operators.csv")
found["over"] = (found["ms"] - found["products_ms"] - found["traffic_ms"]).clip(lower=0)
found = found[found["model"].isin(shares.index)]
found["over"] /= found["model"].map(table["ours_ms"])
mean = (found.groupby("operator")["over"].sum() / len(shares)).sort_values()
ax = mean.tail(15).plot.barh(figsize=(7, 4))
ax.set(xlabel="share of the latency above the bound, mean over the models", ylabel="")
plt.tight_layout()

# %%
# Models
# ++++++

print(table[["ours_ms", "ratio", "largest"]].to_string(max_colwidth=60))
