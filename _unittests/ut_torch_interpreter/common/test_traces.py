"""The lines of the user are found among those of torch."""

from __future__ import annotations

import os

import torch

import torch_interpreter
from torch_interpreter.common.traces import last_place, user_lines

FRAMES = [f'  File "m{i}.py", line {i}, in forward\n    x = f(x)\n' for i in range(5)]
TORCH = os.path.join(os.path.dirname(torch.__file__), "nn", "functional.py")
OURS = os.path.join(os.path.dirname(torch_interpreter.__file__), "patches", "packed.py")
INSIDE = "".join(f'  File "{file}", line 3, in f\n    return g(x)\n' for file in (TORCH, OURS))


def test_lines_of_the_user():
    assert user_lines("".join([*FRAMES, INSIDE])) == "".join(FRAMES[2:]).strip()
    assert user_lines("") == "" and user_lines(INSIDE) == ""


def test_last_place():
    assert last_place("".join([*FRAMES, INSIDE])) == "m4.py:4, in forward: x = f(x)"
    assert last_place('File "m.py", line 2, in forward') == "m.py:2, in forward"
    assert last_place(INSIDE) == ""


def test_a_recurrent_layer_has_the_line_of_its_call():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.GRU(3, 4)

        def forward(self, x):
            return self.rnn(x)[0]

    onx = torch_interpreter.to_onnx(Model(), (torch.randn(2, 5, 3),))
    traces = [p.value for n in onx.graph.node for p in n.metadata_props if "stack_trace" in p.key]
    assert traces and all(t.endswith("return self.rnn(x)[0]") for t in traces)
    assert not any("packed.py" in t for t in traces)
