"""
What the converter of torch covers
==================================

This page counts the operators of torch and the families of transformers that the converter exports. The operators are
those that the tests of torch know. The status is *right* when the model gives the results of torch. Any other status
says why there is no such model. ``_doc/examples/bench_opinfo.py`` and ``bench_transformers.py`` write the tables.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas

TABLES = Path("..") / "tables"
operators = pandas.read_csv(TABLES / "opinfo.csv")
families = pandas.read_csv(TABLES / "transformers.csv").query("status != 'not measured'")

fig, axes = plt.subplots(1, 2, figsize=(8, 4))
for ax, table, title in zip(
    axes, (operators, families), ("operators", "families of transformers"), strict=True
):
    counts = table.groupby(["exporter", "status"]).size().unstack(fill_value=0)
    counts.plot.bar(stacked=True, ax=ax, rot=0)
    ax.set(title=title, xlabel="")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=2, fontsize=8)
fig.tight_layout()

# %%

print(operators.groupby(["exporter", "status"]).size())
print(families.groupby(["exporter", "kind", "status"]).size())

# %%
# Nodes and time
# ++++++++++++++

right = families[families["status"] == "right"]
fig, ax = plt.subplots(figsize=(6, 3.5))
for kind, part in right.groupby("kind"):
    ax.scatter(part["nodes"], part["seconds"], label=kind, alpha=0.7)
ax.set(xlabel="nodes", ylabel="seconds to export")
ax.legend(fontsize=7)
fig.tight_layout()
