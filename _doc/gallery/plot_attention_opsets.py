"""
Attention, by opset
===================

ONNX has an operator for attention since opset 23. With an older opset, ``scaled_dot_product_attention`` becomes
products and a softmax, which the set ``onnxruntime`` recognizes.
"""

import matplotlib.pyplot as plt
import torch

import xoptim
from torch_interpreter import to_onnx


class Attention(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


qkv = tuple(torch.randn(2, 4, 6, 8) for _ in range(3))
names = ({0: "batch", 2: "seq"},) * 3
counts = {}
for opset in (18, 23):
    onx = to_onnx(Attention(), qkv, dynamic_shapes=names, target_opset=opset, optimize=False)
    for patterns in ("default", "default+onnxruntime"):
        done = xoptim.optimize(onx, patterns=patterns)
        counts[f"opset {opset}\n{patterns}"] = [n.op_type for n in done.model.graph.node]
for name, ops in counts.items():
    print(name.replace("\n", ", "), ops)

# %%

fig, ax = plt.subplots(figsize=(7, 3))
ax.bar(list(counts), [len(ops) for ops in counts.values()])
ax.set(ylabel="nodes")
fig.tight_layout()
drawn = {"opset 18, default+onnxruntime": done.model}
