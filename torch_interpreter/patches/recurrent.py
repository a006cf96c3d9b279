"""Keeps recurrent layers as operators. torch.export unrolls them for the length of the arguments.

While a model is exported, ``torch.nn.LSTM``, ``GRU`` and ``RNN`` call an operator of ours, which
becomes the operator of ONNX. Cases ONNX has no operator for stay as torch does them: projections,
packed sequences, dropout between the layers, numbers of 64 bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

_NAMESPACE = "torch_interpreter"
_UNTYPED: Any = torch.library
_PARAMETERS = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
    "bool bidirectional, bool batch_first"
)
_LIBRARY: Any = _UNTYPED.Library(_NAMESPACE, "DEF")
_TYPES = (torch.float32, torch.float16, torch.bfloat16)
#: functions of torch -> number of states
_STATES = {"lstm": 2, "gru": 1, "rnn_tanh": 1, "rnn_relu": 1}


def _define(name: str, states: int) -> None:
    """Registers an operator with the signature of a function of torch, which computes the same."""
    hx, results = ("Tensor[]", ", Tensor") if states == 2 else ("Tensor", "")
    _LIBRARY.define(f"{name}(Tensor x, {hx} hx, {_PARAMETERS}) -> (Tensor, Tensor{results})")
    _LIBRARY.impl(name, getattr(torch._C._VariableFunctions, name), "CompositeExplicitAutograd")

    def shapes(
        x: torch.Tensor,
        hx: Any,
        params: Sequence[torch.Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[torch.Tensor, ...]:
        state = hx[0] if states == 2 else hx
        size = state.shape[2] * (1 + bidirectional)
        y = x.new_empty((x.shape[0], x.shape[1], size))
        return y, *(state.new_empty(state.shape) for _ in range(states))

    _UNTYPED.register_fake(f"{_NAMESPACE}::{name}", shapes, lib=_LIBRARY)


for _name, _count in _STATES.items():
    _define(_name, _count)


def _has_operator(args: Sequence[Any]) -> bool:
    """Whether ONNX has an operator for this call."""
    x, hx, weights = args[:3]
    if not isinstance(weights, list | tuple):
        return False  # a packed sequence
    biases, _, dropout, train = args[3:7]
    state = hx[0] if isinstance(hx, list | tuple) else hx
    recurrent = weights[1]
    projected = len(weights) % (4 if biases else 2) != 0 or recurrent.shape[1] != state.shape[2]
    return not projected and not (train and dropout) and x.dtype in _TYPES


def _kept(name: str) -> Callable[..., Any]:
    original = getattr(torch._C._VariableFunctions, name)
    operator = getattr(getattr(torch.ops, _NAMESPACE), name)

    def call(*args: Any) -> Any:
        return operator(*args) if len(args) == 9 and _has_operator(args) else original(*args)

    return call


@contextlib.contextmanager
def keep_recurrent_layers() -> Iterator[None]:
    """Makes each call of a recurrent layer one operator in this context."""
    functions = vars(torch._VF)
    before = {name: functions.get(name) for name in _STATES}
    for name in _STATES:
        setattr(torch._VF, name, _kept(name))
    try:
        yield
    finally:
        for name, function in before.items():
            if function is None:
                delattr(torch._VF, name)
            else:
                setattr(torch._VF, name, function)
