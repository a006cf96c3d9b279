"""
Dynamic shapes, and what to do when one is frozen
=================================================

``dynamic_shapes`` says which sizes may change. torch sometimes turns one of them into a constant. This
page shows how to notice it, and what to write instead.
"""

import torch

from torch_interpreter import to_onnx


def signature(onx):
    """The shapes of the inputs and outputs."""
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*onx.graph.input, *onx.graph.output)
    }


class Rows(torch.nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], -1).softmax(dim=-1)


x = torch.randn(4, 3, 5)

# %%
# Without names, every size is fixed.

print(signature(to_onnx(Rows(), (x,))))

# %%
# A name makes a size dynamic. Sizes computed from it are expressions.

onx = to_onnx(Rows(), (x,), dynamic_shapes=({0: "batch", 1: "n"},))
print(signature(onx))
drawn = {"dynamic": onx}

# %%
# ``torch.export.Dim("batch", min=1)`` also says that the size is never 0. Some rewrites need this.
#
# A frozen size
# +++++++++++++
#
# The number 4 below is the size of the arguments. ``torch.export`` sees that the batch can only be 4, and
# refuses to make it dynamic.


class Frozen(torch.nn.Module):
    def forward(self, x):
        return x.reshape(4, 15)


try:
    to_onnx(Frozen(), (x,), dynamic_shapes=({0: "batch"},))
except Exception as e:
    print(type(e).__name__, str(e)[:400])

# %%
# Read the size from the tensor instead: ``x.reshape(x.shape[0], 15)``. Three other habits freeze a
# size: ``int(tensor)``, a ``torch.zeros(4, ...)`` made outside of ``forward``, and a Python ``if`` on a size.
#
# The model only keeps the side of an ``if`` that the arguments take. The message gives the condition, and a
# size that does not meet it. It is an error if the condition goes through a float, a warning otherwise.

from torch_interpreter import ConversionError


class Branch(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[1] * 0.5 > 3.7 else x


try:
    to_onnx(Branch(), (torch.randn(2, 8),), dynamic_shapes=({1: "n"},))
except ConversionError as e:
    print(str(e)[:300])

# %%
# ``torch.cond`` keeps both sides, see :doc:`plot_03_control_flow`.
