"""
Control flow: cond and while_loop
=================================

A Python ``if`` only keeps one side in the model. ``torch.cond`` becomes the operator If, with both sides, and
``while_loop`` becomes Loop.
"""

import torch
from torch._higher_order_ops.while_loop import while_loop

from torch_interpreter import to_onnx


class Absolute(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: -t, (x,))


onx = to_onnx(Absolute(), (torch.randn(3, 4),), dynamic_shapes=({0: "batch"},))
print([node.op_type for node in onx.graph.node])
drawn = {"cond": onx}

# %%
# onnxruntime computes the condition and runs one branch, as torch does.

import onnxruntime

session = onnxruntime.InferenceSession(onx.SerializeToString())
for value in (1.0, -1.0):
    x = torch.full((2, 4), value)
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    print(value, "->", got[0], "torch:", Absolute()(x)[0].numpy())

# %%
# A loop
# ++++++
#
# The body runs as long as the condition holds.


class Halves(torch.nn.Module):
    def forward(self, x):
        def condition(i, value):
            return value.abs().max() > 1

        def body(i, value):
            return i + 1, value / 2

        return while_loop(condition, body, (torch.tensor(0), x))


loop = to_onnx(Halves(), (torch.randn(3) * 9,))
session = onnxruntime.InferenceSession(loop.SerializeToString())
x = torch.tensor([20.0, 3.0, -1.0])
print(*session.run(None, {session.get_inputs()[0].name: x.numpy()}), "torch:", *Halves()(x))

# %%
# Rewrites work inside the branches and the bodies. ``verify`` draws inputs to run every branch, and
# names the branches that never ran.
