"""Packed sequences: the lengths go to the recurrent operators of ONNX."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from ut_torch_interpreter.export_checks import Fct2, check_export, op_types

from torch_interpreter import ExportOptions, to_onnx
from xbuilder.errors import XoptimError

nn = torch.nn
ARGS = torch.randn(3, 6, 4), torch.tensor([6, 4, 2])
OTHER = torch.randn(4, 7, 4), torch.tensor([3, 7, 1, 5])
ONE = torch.randn(1, 1, 4), torch.tensor([1])
SHORTER = torch.randn(2, 7, 4), torch.tensor([3, 5])
DYNAMIC = ({0: "batch", 1: "time"}, {0: "batch"})
LAYERS = {
    "lstm": lambda: nn.LSTM(4, 5, batch_first=True),
    "gru of two layers": lambda: nn.GRU(4, 5, 2, bidirectional=True, batch_first=True),
    "rnn without bias": lambda: nn.RNN(4, 5, bias=False, nonlinearity="relu", batch_first=True),
    "projection": lambda: nn.LSTM(4, 5, 2, proj_size=3, bidirectional=True, batch_first=True),
}


class Packed(nn.Module):
    def __init__(self, layer, whole=True, value=0.0, given=False):
        super().__init__()
        self.layer, self.whole, self.value, self.given = layer, whole, value, given

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        state = (x[:, 0, :1].t()[..., None].expand(1, -1, 5).contiguous(),) if self.given else ()
        y, end = self.layer(packed, *state)
        total = x.shape[1] if self.whole else None
        y, n = pad_packed_sequence(y, True, padding_value=self.value, total_length=total)
        return y, n, end


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_sequences_of_several_lengths(name):
    torch.manual_seed(0)
    model = Packed(LAYERS[name]()).eval()
    onx = check_export(model, ARGS, DYNAMIC, [OTHER, ONE, SHORTER])
    expected = "Scan" if name == "projection" else name.split()[0].upper()
    assert expected in op_types(onx)


def test_padding_given_states_and_the_longest_length():
    torch.manual_seed(0)
    model = Packed(nn.GRU(4, 5, batch_first=True), whole=False, value=-1.0, given=True).eval()
    check_export(model, ARGS, DYNAMIC, [OTHER, SHORTER])


def test_sorted_lengths_and_a_longer_result():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LSTM(4, 5)

        def forward(self, x, lengths):
            y, _ = self.layer(pack_padded_sequence(x, lengths))
            return pad_packed_sequence(y, total_length=x.shape[0] + 2)

    args = ARGS[0].transpose(0, 1).contiguous(), ARGS[1]
    other = torch.randn(5, 2, 4), torch.tensor([5, 1])
    check_export(Model(), args, ({0: "time", 1: "batch"}, {0: "batch"}), [other])


def test_the_exported_program_runs():
    options = ExportOptions(validate_ep=True)
    onx = to_onnx(Packed(LAYERS["lstm"]()).eval(), ARGS, export_options=options)
    assert "LSTM" in op_types(onx)


def test_refusals():
    def elements(x, lengths):
        return torch.relu(pack_padded_sequence(x, lengths, batch_first=True).data)

    with pytest.raises(XoptimError, match="relu reads the elements of a packed sequence"):
        to_onnx(Fct2(elements), ARGS)
    model = Packed(nn.LSTM(4, 5, 2, dropout=0.5, batch_first=True)).train()
    with pytest.raises(XoptimError, match=r"call model\.eval\(\) before"):
        to_onnx(model, ARGS)


def test_everything_comes_back():
    forward = nn.GRU.forward
    to_onnx(Packed(nn.GRU(4, 5, batch_first=True)).eval(), ARGS)
    assert nn.GRU.forward is forward
    assert isinstance(pack_padded_sequence(*ARGS, batch_first=True).data, torch.Tensor)
