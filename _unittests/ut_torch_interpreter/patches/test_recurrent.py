"""Recurrent layers: one operator each, whatever the length of the sequence."""

from __future__ import annotations

import warnings

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter import to_onnx

X, LONGER = torch.randn(3, 6, 4), torch.randn(2, 9, 4)
DYNAMIC = ({0: "batch", 1: "time"},)
LAYERS = {
    "LSTM": torch.nn.LSTM,
    "GRU": torch.nn.GRU,
    "RNN": torch.nn.RNN,
}
OPTIONS = {
    "default": {},
    "batch first": {"batch_first": True},
    "no bias, two layers": {"bias": False, "num_layers": 2},
    "both directions": {"bidirectional": True, "num_layers": 2, "batch_first": True},
}


@pytest.mark.parametrize("options", sorted(OPTIONS))
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_dynamic_batch_and_time(name, options):
    model = LAYERS[name](4, 5, **OPTIONS[options]).eval()
    onx = check_export(model, (X,), DYNAMIC, [(LONGER,), (X[:1, :1],)])
    assert op_types(onx).count(name) == OPTIONS[options].get("num_layers", 1)


def test_relu():
    model = torch.nn.RNN(4, 5, nonlinearity="relu", bidirectional=True)
    assert "RNN" in op_types(check_export(model, (X,), DYNAMIC, [(LONGER,)]))


def test_one_sequence_without_batch():
    onx = check_export(torch.nn.GRU(4, 5), (X[0],), ({0: "time"},), [(LONGER[0],)])
    assert "GRU" in op_types(onx)


def test_given_states_and_dropout_of_an_evaluation():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.LSTM(4, 5, 2, dropout=0.5, batch_first=True)

        def forward(self, x, h, c):
            y, (h, c) = self.rnn(x, (h, c))
            return y[:, -1], h, c

    args = X, torch.randn(2, 3, 5), torch.randn(2, 3, 5)
    other = LONGER, torch.randn(2, 2, 5), torch.randn(2, 2, 5)
    shapes = ({0: "batch", 1: "time"}, {1: "batch"}, {1: "batch"})
    assert "LSTM" in op_types(check_export(Model().eval(), args, shapes, [other]))


@pytest.mark.parametrize("strategy", ["nostrict-dec", "decall"])
def test_decompositions_keep_the_operator(strategy):
    onx = check_export(torch.nn.LSTM(4, 5), (X,), DYNAMIC, [(LONGER,)], export_options=strategy)
    assert "LSTM" in op_types(onx)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits(dtype):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.GRU(4, 5).to(dtype)

        def forward(self, x):
            return self.rnn(x.to(dtype))[0].float()

    onx = check_export(Model(), (X,), DYNAMIC, [(LONGER,)], atol=5e-2)
    assert "GRU" in op_types(onx)


@pytest.mark.parametrize("options", sorted(OPTIONS))
def test_a_projection_is_a_loop_over_time(options):
    model = torch.nn.LSTM(4, 5, proj_size=2, **OPTIONS[options]).eval()
    onx = check_export(model, (X,), DYNAMIC, [(LONGER,), (X[:1, :1],)])
    assert "Scan" in op_types(onx) and "LSTM" not in op_types(onx)


def test_what_onnx_has_no_operator_for_is_unrolled():
    onx = check_export(
        torch.nn.GRU(4, 5).double(), (X.double(),), ({1: "n"},), [(X[:, :2].double(),)]
    )
    assert "GRU" not in op_types(onx)


def test_the_functions_of_torch_come_back():
    before = torch._VF.lstm
    check_export(torch.nn.LSTM(4, 5), (X,))
    assert torch._VF.lstm == before == torch._C._VariableFunctions.lstm
    assert "lstm" not in vars(torch._VF)


def test_the_list_of_weights_is_no_warning():
    model = torch.nn.Sequential(torch.nn.GRU(4, 5, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_onnx(model, (X,), dynamic_shapes=({0: "time", 1: "batch"},))


def test_another_attribute_is_a_warning():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.GRU(4, 5)
            self.last = torch.zeros(())

        def forward(self, x):
            y = self.rnn(x)[0] + self.last
            self.last = x.sum()
            return y

    with pytest.warns(UserWarning, match=r"changes self\.last when"):
        to_onnx(Model(), (X,))
