"""
From torch to one optimized graph
=================================

Many repositories write a normalization by hand. This script exports such a network from torch, and the optimization
recognizes the normalization.
"""

import torch

import xoptim
from torch_interpreter import to_onnx


class HandMadeNorm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.rand(size) + 0.5)
        self.beta = torch.nn.Parameter(torch.rand(size) - 0.5)

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        variance = (centered**2).mean(-1, keepdim=True)
        return centered / torch.sqrt(variance + 1e-5) * self.gamma + self.beta


model = torch.nn.Sequential(torch.nn.Linear(8, 16), HandMadeNorm(16), torch.nn.GELU()).eval()
onx = to_onnx(model, (torch.randn(2, 8),), dynamic_shapes=({0: "batch"},), optimize=False)
done = xoptim.optimize(onx, patterns="default+onnxruntime", verify=True)
print(done)

# %%

drawn = {"before": onx, "after": done.model}
