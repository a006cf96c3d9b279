"""Keeps packed sequences padded while a model is exported, with their lengths.

torch packs the elements of all the sequences of a batch in one dimension, whose size depends on the
lengths. Here ``pack_padded_sequence`` keeps the padded tensor, the layers of :mod:`.recurrent` are
given the lengths, and ``pad_packed_sequence`` gives the tensor back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.utils.rnn import PackedSequence

from ..common.errors import ExportError
from .attributes import patched

_UNTYPED: Any = torch
_PACKED: Any = PackedSequence
_CPU = torch.device("cpu")


class Padded:
    """A padded tensor, time first, in the place of the elements of a packed sequence.

    :param tensor: the tensor
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, function: Any, *_: Any) -> Any:
        """Refuses the other uses of the elements.

        :raises ExportError: always
        """
        raise ExportError(
            f"torch.{getattr(function, '__name__', function)} reads the elements of a packed "
            f"sequence, whose number depends on the lengths: call pad_packed_sequence before, and "
            f"this function on its result."
        )


class Lengths:
    """The lengths of sequences, in the place of the number of sequences at every time.

    :param tensor: the lengths, the longest first
    """

    device = _CPU

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def size(self, dim: int) -> int:
        """Zero: the longest length is not a number yet."""
        return 0


def _pack(x: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[Padded, Lengths]:
    return Padded(x.transpose(0, 1) if batch_first else x), Lengths(lengths)


def _pad(
    data: Padded, lengths: Lengths, batch_first: bool, padding_value: float, total: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The padded tensor, up to the longest length or to a given one."""
    x = data.tensor
    time = x.shape[0]
    if isinstance(total, int) and total == 0:
        total = lengths.tensor.max().item()
        _UNTYPED._check(total >= 0)
        _UNTYPED._check(total <= time)
        x = x.narrow(0, 0, total)
    elif not statically_known_true(total == time):
        missing = _UNTYPED.sym_max(total - time, 0)
        x = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, missing)).narrow(0, 0, total)
    if padding_value:
        rows: torch.Tensor = _UNTYPED.arange(x.shape[0], device=x.device)
        after = rows[:, None, None] >= lengths.tensor[None, :, None]
        x = x.masked_fill(after, padding_value)
    return x.transpose(0, 1) if batch_first else x, lengths.tensor


@contextlib.contextmanager
def keep_packed_sequences() -> Iterator[None]:
    """Keeps packed sequences padded in this context."""
    functions = {"_pack_padded_sequence": _pack, "_pad_packed_sequence": _pad}
    with contextlib.ExitStack() as stack:
        stack.enter_context(patched(torch._VF, functions))
        for layer in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
            stack.enter_context(patched(layer, {"forward": _forward(layer)}))
        yield


def _forward(layer: Any) -> Any:
    """``forward`` of a recurrent layer, which takes padded sequences as well."""
    original = layer.forward

    def forward(self: Any, input: Any, hx: Any = None) -> Any:
        padded = isinstance(input, PackedSequence) and isinstance(input.data, Padded)
        return _call(self, input, hx) if padded else original(self, input, hx)

    return forward


def _call(layer: Any, packed: Any, hx: Any) -> tuple[Any, Any]:
    """The results of a recurrent layer on padded sequences.

    :raises ExportError: the layer has dropout between its layers, in training mode
    """
    x, order = packed.data.tensor, packed.sorted_indices
    if layer.training and layer.dropout and layer.num_layers > 1:
        raise ExportError("dropout between recurrent layers is random: call model.eval() before.")
    if hx is None:
        directions = layer.num_layers * (1 + layer.bidirectional)
        sizes = [layer.hidden_size] * (1 + (layer.mode == "LSTM"))
        sizes[0] = layer.proj_size or layer.hidden_size
        zeros = [x.new_zeros(directions, x.shape[1], size) for size in sizes]
        hx = tuple(zeros) if layer.mode == "LSTM" else zeros[0]
    else:
        hx = layer.permute_hidden(hx, order)
    operator = getattr(torch.ops.torch_interpreter, f"{layer.mode.lower()}_of_lengths")
    states = list(hx) if layer.mode == "LSTM" else hx
    weights = layer._flat_weights, layer.bias, layer.num_layers, 0.0, False, layer.bidirectional
    y, *last = operator(x, packed.batch_sizes.tensor, states, *weights)
    made = _PACKED(Padded(y), packed.batch_sizes, order, packed.unsorted_indices)
    end = tuple(last) if layer.mode == "LSTM" else last[0]
    return made, layer.permute_hidden(end, packed.unsorted_indices)
