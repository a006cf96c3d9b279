"""Export without data: fake tensors stand for the arguments and the weights.

torch has two kinds of tensors with a type and a shape only: those of the device *meta*, and fake
tensors, which claim another device. torch.export needs a single kind and a single device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

pytree = torch.utils._pytree


def has_no_data(value: Any) -> bool:
    """Whether a value is a tensor with a type and a shape but no content."""
    return isinstance(value, torch.Tensor) and (value.is_meta or isinstance(value, FakeTensor))


@contextlib.contextmanager
def without_data(mod: torch.nn.Module, values: Any) -> Iterator[Any]:
    """Replaces arguments, and the weights of a model that have no data, by fake tensors.

    The weights of the model are restored at the end.

    :param mod: the model, weights with data stay as they are
    :param values: any nested python structure
    :return: the same structure with fake tensors
    """
    weights = [(d, k, v) for d, k, v in _weights(mod) if has_no_data(v)]
    tensors = [*(v for _, _, v in weights), *pytree.tree_leaves(values)]
    fake_of = _faker(next((t for t in tensors if isinstance(t, FakeTensor)), None))
    try:
        for owner, name, value in weights:
            owner[name] = fake_of(value)
        yield pytree.tree_map(fake_of, values)
    finally:
        for owner, name, value in weights:
            owner[name] = value


def _weights(mod: torch.nn.Module) -> Iterator[tuple[dict[str, Any], str, Any]]:
    for module in mod.modules():
        for owner in (module._parameters, module._buffers):
            for name, value in list(owner.items()):
                yield owner, name, value


def _faker(example: FakeTensor | None) -> Callable[[Any], Any]:
    """A function making fake tensors in one mode, the mode of an example if there is one."""
    mode = FakeTensorMode(allow_non_fake_inputs=True) if example is None else example.fake_mode
    mode.allow_non_fake_inputs = True
    made: dict[int, torch.Tensor] = {}

    def fake_of(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
            return value
        if id(value) not in made:
            made[id(value)] = _fake(mode, value)
        return made[id(value)]

    return fake_of


def _fake(mode: FakeTensorMode, value: torch.Tensor) -> torch.Tensor:
    device = "cpu" if value.is_meta else value.device
    with mode:
        fake = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
    is_parameter = isinstance(value, torch.nn.Parameter)
    return torch.nn.Parameter(fake, value.requires_grad) if is_parameter else fake
