"""A model in training mode."""

from __future__ import annotations

import warnings

import pytest
import torch

from torch_interpreter import to_onnx
from torch_interpreter.checking.training import training_message

nn = torch.nn
DIFFERENT = [
    nn.Dropout(),
    nn.Dropout2d(0.1),
    nn.BatchNorm1d(4),
    nn.RReLU(),
    nn.LSTM(4, 4, 2, dropout=0.2),
    nn.MultiheadAttention(4, 2, dropout=0.1),
]
SAME = [nn.Dropout(0.0), nn.LayerNorm(4), nn.LSTM(4, 4), nn.MultiheadAttention(4, 2)]


@pytest.mark.parametrize("module", DIFFERENT, ids=lambda m: type(m).__name__)
def test_it_is_told(module):
    module.train()
    name = type(module).__name__
    assert f"training mode: 'a.0' ({name})." in training_message(
        nn.ModuleDict({"a": nn.Sequential(module)})
    )
    assert training_message(module.eval()) == ""


@pytest.mark.parametrize("module", SAME, ids=lambda m: type(m).__name__)
def test_nothing_to_tell(module):
    assert training_message(module.train()) == ""


def test_many_modules():
    message = training_message(nn.Sequential(*[nn.Dropout() for _ in range(5)]))
    assert "'2' (Dropout) and 2 more." in message


def test_the_warning():
    model, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.randn(3, 4)
    with pytest.warns(UserWarning, match=r"in training mode: '1' \(BatchNorm1d\)"):
        to_onnx(model, (x,))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The model is in training mode")
        to_onnx(model.eval(), (x,))
