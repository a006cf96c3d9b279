"""
Custom operators
================

Your model may call an operator that you wrote. A converter, also yours, says what this operator becomes in
ONNX.
"""

import torch

from torch_interpreter import Dispatcher, to_onnx


@torch.library.custom_op("tutorial::twice_plus", mutates_args=())
def twice_plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return 2 * x + y


@twice_plus.register_fake
def _(x, y):
    return torch.empty_like(x)


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.tutorial.twice_plus(x, x.relu())


x = torch.randn(2, 3)

# %%
# Without a converter, the export fails and the error names the operator.

try:
    to_onnx(Model(), (x,))
except Exception as e:
    print(type(e).__name__, str(e)[:300])

# %%
# A converter receives the builder, what torch knows about the outputs, the names they must have, then the
# arguments. It writes the operator with those of ONNX.

import numpy as np


def convert(g, sts, outputs, x, y):
    return g.op.Add(g.op.Mul(x, np.float32([2])), y, outputs=outputs)


dispatcher = Dispatcher({"tutorial::twice_plus": convert})
onx = to_onnx(Model(), (x,), dispatcher=dispatcher, validate_onnx=True)
drawn = {"written by the converter": onx}

# %%
# If your runtime has this operator, write it as one node of your own domain:


def keep(g, sts, outputs, x, y):
    return g.anyop.TwicePlus(x, y, outputs=outputs, domain="tutorial")


onx = to_onnx(Model(), (x,), dispatcher=Dispatcher({"tutorial::twice_plus": keep}))
print([(node.domain, node.op_type) for node in onx.graph.node])
