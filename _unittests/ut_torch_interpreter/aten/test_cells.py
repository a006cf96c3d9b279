"""One step of a recurrent layer."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

nn = torch.nn
X, OTHER = torch.randn(3, 4), torch.randn(5, 4)
CELLS = {
    "lstm": nn.LSTMCell(4, 5),
    "lstm without bias": nn.LSTMCell(4, 5, bias=False),
    "gru": nn.GRUCell(4, 5),
    "gru without bias": nn.GRUCell(4, 5, bias=False),
    "tanh": nn.RNNCell(4, 5),
    "relu": nn.RNNCell(4, 5, nonlinearity="relu"),
}


@pytest.mark.parametrize("name", sorted(CELLS))
def test_cells(name):
    onx = check_export(CELLS[name], (X,), ({0: "n"},), [(OTHER,), (X[:1],)])
    assert op_types(onx).count("MatMul") == 2


def test_states_doubles_and_a_cell_without_batch():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTMCell(4, 5).double(), nn.GRUCell(5, 5).double()

        def forward(self, x):
            h, c = self.lstm(x, (x[..., :1] + torch.zeros(5), x[..., 1:2] - torch.ones(5)))
            return self.gru(h, c)

    check_export(Model(), (X.double(),), ({0: "n"},), [(OTHER.double(),)])
    check_export(Model(), (X[0].double(),))
