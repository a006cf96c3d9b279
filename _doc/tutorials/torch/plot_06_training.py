"""
Training with torch.compile
===========================

``OnnxBackend`` runs the graphs of ``torch.compile`` with onnxruntime, gradients included. The optimizer is
still an optimizer of torch, and the losses are those of eager mode.
"""

import copy

import matplotlib.pyplot as plt
import torch

from torch_interpreter import OnnxBackend

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
twin = copy.deepcopy(model)
backend = OnnxBackend()
compiled = torch.compile(twin, backend=backend)


def train(forward, weights, steps=40):
    """The losses of a few steps."""
    optimizer = torch.optim.Adam(weights.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        x = torch.randn(32, 8, generator=generator)
        loss = (forward(x) - x.sum(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


eager, with_onnx = train(model, model), train(compiled, twin)
print("largest difference", max(abs(a - b) for a, b in zip(eager, with_onnx, strict=True)))

# %%

fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(eager, label="torch, eager", linewidth=4, alpha=0.4)
ax.plot(with_onnx, label="onnxruntime", linestyle="--")
ax.set(xlabel="step", ylabel="loss")
ax.legend()
fig.tight_layout()

# %%
# The backend keeps its models, here one for the forward pass and one for the backward pass.

for name, onx in backend.models.items():
    print(name, type(onx).__name__)

# %%
# :doc:`/torch/torch_compile` explains dynamic sizes and the choice of patterns, and trains a GPT2.
