"""
The rewrites that real models need
==================================

This page counts, for each pattern, the models of the corpus that it was applied to. The second plot shows the nodes
that it saved.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas

table = pandas.read_csv(Path("data") / "fired.csv")
print(table["model"].nunique(), "models,", table["pattern"].nunique(), "patterns")

models = table.groupby("pattern")["model"].nunique().sort_values().tail(25)
ax = models.plot.barh(figsize=(7, 6))
ax.set(xlabel="models", ylabel="")
plt.tight_layout()

# %%

nodes = table.groupby("pattern")["nodes"].sum().sort_values().tail(25)
ax = nodes.plot.barh(figsize=(7, 6), color="C1")
ax.set(xlabel="nodes saved", ylabel="")
plt.tight_layout()
