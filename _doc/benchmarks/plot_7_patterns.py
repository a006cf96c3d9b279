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

# %%
# Kernels that are slow
# +++++++++++++++++++++
#
# Some kernels of onnxruntime take longer on CPU than a few other operators that compute the same results. These
# patterns write the other operators. The set ``onnxruntime`` has them, except ``ResizeCubicProducts``, which is
# approximate: a NaN spreads to its row and its column. Select it with ``-p default+onnxruntime+ResizeCubicProducts``.
#
# =======================  ======================================  =========================================
# pattern                  in the model                            written
# =======================  ======================================  =========================================
# ``ResizeChannelsLast``   Transpose, Resize, Transpose            Resize, the channels are last
# ``ResizeCubicProducts``  a cubic Resize between known sides      two products by constants
# ``SlowReduction``        ReduceL2, ReduceL1, ReduceSumSquare,    ReduceSum and a product, or Abs, Exp, Log
#                          ReduceLogSumExp
# ``SlowPow``              Pow by 2, 4, 0.5, -0.5 or -1            Mul, Sqrt, Reciprocal
# ``SlowDiv``              Div by a constant                       Mul by its inverse
# ``SlowActivation``       Softplus, Mish, Elu                     Exp, Log, Relu, Max, Mul
# =======================  ======================================  =========================================
#
# ``ratio`` is the CPU time with the pattern divided by the time without it, on the small model of its page in the
# :doc:`catalogue </rewrites/pattern_catalogue>`. ``python _doc/benchmarks/collect.py CORPUS --only gains`` measures it,
# and ``xoptim tune model.onnx`` does so on your model.

gains = pandas.read_csv(Path("data") / "gains.csv", keep_default_na=False)
slow = [
    "ResizeChannelsLast",
    "ResizeCubicProducts",
    "SlowReduction",
    "SlowPow",
    "SlowDiv",
    "SlowActivation",
]
rows = (
    gains[gains["pattern"].isin(slow) & (gains["model"] == "")]
    .set_index("pattern")
    .sort_values("ratio")
)
print(rows[["microseconds", "ratio", "low", "high"]].to_string())
