"""Keeps recurrent layers as operators. torch.export unrolls them for the length of the arguments.

While a model is exported, ``torch.nn.LSTM``, ``GRU`` and ``RNN`` call an operator of ours, which
becomes the operator of ONNX, or a loop over time when an LSTM has a projection. Cases without such
an operator stay as torch does them: dropout between the layers, other layers with 64 bits.
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
    "bool bidirectional"
)
_LIBRARY: Any = _UNTYPED.Library(_NAMESPACE, "DEF")
_TYPES = (torch.float32, torch.float16, torch.bfloat16)
#: functions of torch -> number of states
_STATES = {"lstm": 2, "gru": 1, "rnn_tanh": 1, "rnn_relu": 1}


def _define(name: str, states: int) -> None:
    """Registers an operator with the signature of a function of torch, which computes the same,
    and one for sequences of several lengths, time first, the longest one first."""
    function = getattr(torch._C._VariableFunctions, name)
    hx, results = ("Tensor[]", ", Tensor") if states == 2 else ("Tensor", "")
    returned = f"-> (Tensor, Tensor{results})"

    def shapes(
        x: torch.Tensor, hx: Any, params: Sequence[torch.Tensor], *options: Any
    ) -> tuple[torch.Tensor, ...]:
        state = hx if states == 1 else hx[0]
        y = x.new_empty((x.shape[0], x.shape[1], state.shape[2] * (1 + options[4])))
        return y, *(v.new_empty(v.shape) for v in (hx if states == 2 else [hx]))

    def with_lengths(x: torch.Tensor, lengths: torch.Tensor, *arguments: Any) -> Any:
        return shapes(x, *arguments)

    def compute(x: torch.Tensor, lengths: torch.Tensor, *arguments: Any) -> Any:
        pack, pad = (
            getattr(torch._C._VariableFunctions, f)
            for f in ("_pack_padded_sequence", "_pad_packed_sequence")
        )
        data, sizes = pack(x, lengths, False)
        y, *last = function(data, sizes, *arguments)
        return pad(y, sizes, False, 0.0, x.shape[0])[0], *last

    _LIBRARY.define(f"{name}(Tensor x, {hx} hx, {_PARAMETERS}, bool batch_first) {returned}")
    _LIBRARY.define(
        f"{name}_of_lengths(Tensor x, Tensor lengths, {hx} hx, {_PARAMETERS}) {returned}"
    )
    for op, run, fake in (
        (name, function, shapes),
        (f"{name}_of_lengths", compute, with_lengths),
    ):
        _LIBRARY.impl(op, run, "CompositeExplicitAutograd")
        _UNTYPED.register_fake(f"{_NAMESPACE}::{op}", fake, lib=_LIBRARY)


for _name, _count in _STATES.items():
    _define(_name, _count)


def _has_operator(name: str, args: Sequence[Any]) -> bool:
    """Whether a converter knows this call."""
    x, hx, weights = args[:3]
    if not isinstance(weights, list | tuple):
        return False  # a packed sequence
    biases, _, dropout, train = args[3:7]
    projected = len(weights) % (4 if biases else 2) != 0 or (
        name == "lstm" and hx[0].shape[2] != hx[1].shape[2]
    )
    return not (train and dropout) and (projected or x.dtype in _TYPES)


def _kept(name: str) -> Callable[..., Any]:
    original = getattr(torch._C._VariableFunctions, name)
    operator = getattr(getattr(torch.ops, _NAMESPACE), name)

    def call(*args: Any) -> Any:
        return operator(*args) if len(args) == 9 and _has_operator(name, args) else original(*args)

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
