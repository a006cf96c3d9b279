"""
Rewrites on a GPU
=================

This page shows what ``processor="CUDA"`` gives on a GPU NVIDIA H100, with onnxruntime-gpu 1.31.1. The script
``_doc/examples/bench_cuda.py`` prepares the models on a machine with torch, then checks and measures them on a machine
that may have neither torch nor network.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas

DATA = Path("data")
table = pandas.read_csv(DATA / "gpu.csv")
table["kind"] = table["model"].str.split(".").str[0]

# %%
# Right or wrong
# ++++++++++++++
#
# The script runs the test models of the rewrites before and after, on CUDA, and compares them with the CPU, without the
# optimizations of onnxruntime.
#
# =======================================================  ======
# test models that the CPU runs                            models
# =======================================================  ======
# right on CUDA                                            344
# an empty input that the kernel refuses                   5
# a ``SoftmaxGrad_13``, which has no kernel                3
# a ``Gelu`` of a scalar, written for the CPU              1
# =======================================================  ======
#
# The runs found the defects of the next table. The rewrites now refuse these cases, except the last two.
#
# .. list-table::
#     :header-rows: 1
#
#     * - operator
#       - what the kernel of CUDA does
#     * - ``ComplexMul``, ``ComplexMulConj``
#       - it multiplies every number by the first one of the other operand
#     * - ``GemmaRotaryEmbedding``
#       - it reads past the end of the keys when they have fewer heads than the queries
#     * - ``Gelu`` of ``com.microsoft``
#       - it refuses a scalar
#     * - ``GroupQueryAttention``
#       - it refuses a node that does not return the keys and values, and is slower than the products
#     * - ``Attention``, with a mask or shared heads
#       - it is slower than the products in float32
#     * - ``MultiHeadAttention``, with a mask
#       - without cuDNN, it fails when the number of queries is a multiple of 8 and the number of keys is not
#     * - ``MatMul`` of a row of zeros and the values, which tells where values are not finite
#       - it takes up to three times as long as a product and a sum, which are written instead
#     * - ``FusedConv``
#       - it is slower than Conv and Relu
#     * - ``MultiHeadAttention``, ``RotaryEmbedding``
#       - they fail on an empty batch or an empty sequence, where the original model gives an empty result
#     * - ``SoftmaxGrad_13``
#       - it only exists in the builds for training: the rewrite is in no set
#
# Latency of models
# +++++++++++++++++
#
# The ratio is the time of the optimized model divided by the time of the original. onnxruntime optimizes both, inputs
# and outputs stay on the device. The large models have four layers of width 768, a batch of 8 and 128 words, with
# random weights; those of the corpus are smaller.

SETS = ["default", "default+onnxruntime, CPU", "default+onnxruntime"]
models = table[table["kind"] != "attention"].pivot_table("ratio", "model", "set")
models = models.sort_index(ascending=False)
fig, ax = plt.subplots(figsize=(8, 10))
for i, name in enumerate(SETS):
    places = [row + 0.27 * (1 - i) for row in range(len(models))]
    label = name if "CPU" in name or name == "default" else f"{name}, CUDA"
    ax.barh(places, models[name], height=0.27, label=label)
ax.axvline(1, color="gray", linestyle="--")
ax.set_yticks(range(len(models)), models.index, fontsize=8)
ax.set(xlabel="time / time of the original", title="NVIDIA H100, onnxruntime 1.31.1")
ax.margins(y=0.01)
ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.06), ncol=3)
fig.tight_layout()

# %%
# Attention alone
# +++++++++++++++
#
# One dot is an attention of ``bench_attention.py``: batch, queries and type vary. The dot is the lower quarter of five
# blocks of runs, because in float16 cuDNN may build a plan when the runs of two sessions alternate.

attentions = table[table["kind"] == "attention"].copy()
attentions["type"] = attentions["model"].str.split(".").str[1]
attentions["case"] = attentions["model"].str.split(".").str[2]
cuda = attentions[attentions["set"] == "default+onnxruntime"]
cases = sorted(cuda["case"].unique(), reverse=True)
fig, ax = plt.subplots(figsize=(7, 4))
for kind, part in cuda.groupby("type"):
    ax.scatter(part["low"], [cases.index(c) for c in part["case"]], label=kind, alpha=0.7)
ax.axvline(1, color="gray", linestyle="--")
ax.set_yticks(range(len(cases)), cases)
ax.set(xlabel="time / time of the original", title="default+onnxruntime, CUDA")
ax.legend()
fig.tight_layout()

# %%
# .. _l-cuda-lengths:
#
# Attention in float16 when lengths change
# ++++++++++++++++++++++++++++++++++++++++
#
# In float16 and bfloat16, on a GPU of compute capability 9 or above, onnxruntime takes the attention kernel of cuDNN.
# It is the fastest one for long sequences, but cuDNN builds a plan for each batch and each length that the thread has
# not run yet. A text that grows word by word pays for a plan at each word. The environment variable
# ``ORT_ENABLE_CUDNN_FLASH_ATTENTION=0`` chooses another kernel, which needs no plan. Set it before the session is
# created when the lengths of your inputs change. A model whose shapes are fixed pays once, at its first run.

plans = pandas.read_csv(DATA / "gpu_plans.csv")
plans = plans[~plans["mask"]]
sizes = (
    plans["batch"].astype(str)
    + "x"
    + plans["queries"].astype(str)
    + "x"
    + plans["keys"].astype(str)
)
plans = plans.assign(size=sizes)
auto, off = plans[plans["cudnn"] == "auto"], plans[plans["cudnn"] == "0"]
bars = [
    ("products", auto["products"]),
    ("cuDNN, length seen before", auto["attention"]),
    ("cuDNN, new length", auto["new_length"]),
    ("other kernel, length seen before", off["attention"]),
    ("other kernel, new length", off["new_length"]),
]
fig, ax = plt.subplots(figsize=(8, 4.5))
for i, (label, values) in enumerate(bars):
    ax.bar([row + 0.16 * (i - 2) for row in range(len(values))], values, width=0.16, label=label)
ax.set_yscale("log")
ax.set_xticks(range(len(auto)), auto["size"])
ax.set(
    xlabel="batch x queries x keys", ylabel="microseconds", title="float16, no mask, 12 heads of 64"
)
ax.legend(fontsize=8, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))
fig.tight_layout()

# %%
# Each rewrite
# ++++++++++++
#
# ``xoptim tune --processor CUDA`` optimizes a model with and without a rewrite and runs both in turns. A dot is a
# model. The means of the rewrites that have a speed gate are in ``xoptim/data/gates.csv``.

gains = pandas.read_csv(DATA / "gpu_patterns.csv")
names = sorted(gains["pattern"].unique(), reverse=True)
fig, ax = plt.subplots(figsize=(8, 5))
ax.scatter(gains["ratio"], [names.index(n) for n in gains["pattern"]], alpha=0.7)
ax.axvline(1, color="gray", linestyle="--")
ax.set_yticks(range(len(names)), names, fontsize=8)
ax.set(xlabel="time with / time without")
fig.tight_layout()
