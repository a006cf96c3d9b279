"""
Families of models with attention
=================================

This page compares three optimizers on the families of models of transformers. Three exporters export the families, with
random weights. The latency is a ratio to the exported model, and both models run with the optimizations of
onnxruntime. ``_doc/examples/bench_families.py --write`` measures it again. :doc:`/rewrites/attention` explains which graphs are
recognized.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas

TABLES = Path("..") / "tables"
table = pandas.read_csv(TABLES / "families.csv")
tools = {"ours": "xoptim", "onnxruntime": "onnxruntime.transformers", "onnxscript": "onnxscript"}


def geometric(values):
    """The geometric mean."""
    return float(np.exp(np.log(values.dropna()).mean()))


# %%
# By exporter
# +++++++++++
#
# The bars are geometric means over the families.

columns = [f"{tool} latency" for tool in tools]
for column in ("nodes", *columns):
    table[column] = pandas.to_numeric(table[column], errors="coerce")
means = table.groupby(["exporter", "opset"])[columns].agg(geometric)
means.columns = tools.values()
print(means.round(2))
ax = means.plot.barh(figsize=(7, 4), width=0.8)
ax.axvline(1, color="gray", linestyle="--")
ax.set(xlabel="latency / latency of the exported model", ylabel="exporter, opset")
ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.15), ncols=3)
plt.tight_layout()

# %%
# By family
# +++++++++
#
# One row is one family, exported by ``torch_interpreter`` for opset 18. The families that ``xoptim`` speeds up the most
# are at the bottom.

mine = table[(table["exporter"] == "ours") & (table["opset"] == 18)]
mine = mine.drop_duplicates("family").set_index("family")[columns].sort_values(columns[0]).head(40)
fig, ax = plt.subplots(figsize=(7, 9))
for column, name in zip(columns, tools.values(), strict=True):
    ax.scatter(mine[column], range(len(mine)), label=name)
ax.set_yticks(range(len(mine)), mine.index, fontsize=7)
ax.axvline(1, color="gray", linestyle="--")
ax.set(xlabel="latency / latency of the exported model", xlim=(0.4, 1.5))
ax.legend(fontsize=7)
fig.tight_layout()

# %%
# Nodes
# +++++
#
# One dot is the number of nodes that one optimizer leaves in one exported model.

fig, ax = plt.subplots(figsize=(6, 4))
for tool, name in tools.items():
    nodes = pandas.to_numeric(table[f"{tool} nodes"], errors="coerce")
    ax.scatter(table["nodes"], nodes, s=12, alpha=0.6, label=name)
ax.plot([0, 400], [0, 400], color="gray", linestyle="--")
ax.set(xlabel="nodes of the exported model", ylabel="nodes", xlim=(0, 600), ylim=(0, 400))
ax.legend(fontsize=7)
fig.tight_layout()
