"""
The operators of BERT, before and after
=======================================

This script exports a small BERT, optimizes it, and counts the nodes of each operator.
"""

import matplotlib.pyplot as plt
import pandas
import torch
import transformers

import xoptim
from torch_interpreter import to_onnx

torch.manual_seed(0)
config = transformers.BertConfig(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    attn_implementation="eager",
)
model = transformers.BertModel(config).eval()
ids = torch.randint(0, 99, (2, 8))
onx = to_onnx(
    model,
    kwargs={"input_ids": ids, "attention_mask": torch.ones_like(ids)},
    dynamic_shapes={k: {0: "batch", 1: "seq"} for k in ("input_ids", "attention_mask")},
    optimize=False,
)
done = xoptim.optimize(onx, patterns="default+onnxruntime", verify=True)

# %%

table = pandas.DataFrame(done.to_dict()["op_types"]).set_index("op_type")
table = table[["before", "after"]].sort_values("before")
ax = table.tail(18).plot.barh(figsize=(7, 6), width=0.8)
counts = done.to_dict()
ax.set(
    title=f"{counts['nodes_before']} nodes -> {counts['nodes_after']}", ylabel="", xlabel="nodes"
)
plt.tight_layout()
