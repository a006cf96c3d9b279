"""
Recurrent networks: LSTM and GRU
================================

A recurrent layer of torch becomes one node of ONNX. This node accepts sequences of any length.
"""

import torch

from torch_interpreter import to_onnx


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


model = Tagger().eval()
shapes = ({0: "batch", 1: "time"},)
onx = to_onnx(model, (torch.randn(2, 5, 8),), dynamic_shapes=shapes, validate_onnx=True)
print([node.op_type for node in onx.graph.node])
drawn = {"two layers, two directions": onx}

# %%
# ``validate_onnx=True`` compared the results with those of torch, at two sizes. Here is a third one.

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(onx.SerializeToString())
x = torch.randn(3, 11, 8)
(got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
print("largest difference", np.abs(got - model(x).detach().numpy()).max())
