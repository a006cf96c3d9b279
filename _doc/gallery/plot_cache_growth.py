"""
The cost of one token
=====================

Each step of a decoder reads its whole cache, so its cost grows with the length. This script measures the time of a
step for several lengths, before and after the optimization.
"""

import matplotlib.pyplot as plt
import torch
import transformers

import xoptim
from torch_interpreter import to_onnx

torch.manual_seed(0)
config = transformers.LlamaConfig(
    vocab_size=99,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
model = transformers.LlamaForCausalLM(config).eval()
ids = torch.randint(0, 99, (2, 5))
with torch.no_grad():
    result = model(ids)
name = "cache" if "cache" in result else "past_key_values"
layers = [{0: "batch", 2: "past"}] * 2
onx = to_onnx(
    model,
    kwargs={"input_ids": ids[:, :1], name: result[name]},
    dynamic_shapes={
        "input_ids": {0: "batch"},
        name: {"key_cache": layers, "value_cache": layers},
    },
    optimize=False,
)
optimized = xoptim.optimize(onx, patterns="default+onnxruntime").model

# %%

lengths, rows = [16, 64, 256, 1024], []
for length in lengths:
    sizes = {"batch": 1, "past": length}
    rows.append(xoptim.measure(onx, optimized, sizes=sizes, blocks=5, seconds=0.05))

fig, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(lengths, [before.milliseconds for before, _ in rows], marker="o", label="before")
ax.plot(lengths, [after.milliseconds for _, after in rows], marker="o", label="after")
ax.set(xscale="log", xlabel="tokens in the cache", ylabel="milliseconds for one token", ylim=0)
ax.legend()
fig.tight_layout()
