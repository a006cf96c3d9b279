"""
What each pattern removes
=========================

This script optimizes a small GPT-2 and plots the nodes that each pattern removed and added.
"""

import matplotlib.pyplot as plt
import torch
import transformers

import xoptim
from torch_interpreter import to_onnx

torch.manual_seed(0)
config = transformers.GPT2Config(vocab_size=99, n_positions=32, n_embd=32, n_layer=2, n_head=4)
model = transformers.GPT2Model(config).eval()
onx = to_onnx(
    model,
    kwargs={"input_ids": torch.randint(0, 99, (2, 8)), "use_cache": False},
    dynamic_shapes={"input_ids": {0: "batch", 1: "seq"}, "use_cache": None},
    optimize=False,
)
done = xoptim.optimize(onx, patterns="default+onnxruntime", verify=True)

# %%

rows = done.statistics
rows = rows[rows["pattern"].str.startswith("apply_")]
rows = rows.assign(pattern=rows["pattern"].str.removeprefix("apply_"))
saved = rows.groupby("pattern")[["removed", "added"]].sum().sort_values("removed")
ax = saved.tail(20).plot.barh(figsize=(7, 6), width=0.8)
ax.set(xlabel="nodes", ylabel="", title="nodes each pattern removed and added")
plt.tight_layout()
