"""A decision on the content of a buffer is taken during the export."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter import to_onnx
from torch_interpreter.common.errors import ExportError


class Rates(torch.nn.Module):
    """Scales by the rates that are positive, and repeats as many times as a buffer says."""

    def __init__(self, *rates):
        super().__init__()
        self.register_buffer("rates", torch.tensor(rates))
        self.register_buffer("times", torch.tensor(3), persistent=False)

    def forward(self, x):
        for i in range(len(self.rates)):
            if self.rates[i] > 0:
                x = x * self.rates[i]
        for _ in range(int(self.times)):
            x = x + 1
        return x


class Changes(torch.nn.Module):
    """Decides on a buffer that it changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x * 2 if self.calls > 1 else x


@pytest.mark.parametrize("rates", [(0.5, 0.0, 2.0), (-1.0, 3.0)])
def test_a_decision_on_a_buffer(rates):
    x, y = torch.randn(2, 3), torch.randn(5, 3)
    model = Rates(*rates)
    onx = check_export(model, (x,), ({0: "b"},), [(y,)])
    assert not {"If", "Loop"} & {n.op_type for n in onx.graph.node}
    assert model.rates.tolist() == pytest.approx(list(rates)) and model.times == 3


@pytest.mark.parametrize("changes", [True, False])
def test_a_decision_on_something_else(changes):
    """A buffer that changes, or the arguments: the decision is not the same at each call."""

    class Sign(Rates):
        def forward(self, x):
            return -x if x.sum() > self.rates[0] else x

    with pytest.raises(ExportError, match="depends on the content of a tensor"):
        to_onnx(Changes() if changes else Sign(1.0), (torch.ones(2, 3),))
