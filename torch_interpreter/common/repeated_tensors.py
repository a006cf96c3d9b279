"""A list of tensors that is repeated as many times as an expression of torch says."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

#: functions of torch that join the tensors of a list
JOINED = ("stack", "cat", "concat", "concatenate")


class RepeatedTensors(Sequence[Any]):
    """The list ``[x] * n``, where ``n`` is a dynamic dimension. ``torch.stack`` and ``torch.cat``
    repeat the tensor they make of ``[x]``. What needs the number of elements makes it a constant.

    :param items: tensors
    :param times: how many times they are in the list

    >>> RepeatedTensors([torch.ones(2), torch.zeros(2)], 3).joined(torch.cat, 0).shape
    torch.Size([12])
    """

    def __init__(self, items: Sequence[torch.Tensor], times: Any) -> None:
        self.items, self.times = list(items), times

    def __len__(self) -> int:
        """The number of elements, a constant."""
        return len(self.items) * max(int(self.times), 0)

    def __iter__(self) -> Iterator[Any]:
        """The elements, whose number becomes a constant."""
        return iter(self.items * int(self.times))

    def __getitem__(self, key: Any) -> Any:
        """An element or a part, the number of elements becomes a constant."""
        return list(self)[key]

    def __add__(self, other: Sequence[Any]) -> list[Any]:
        """The elements, then those of another list."""
        return [*self, *other]

    def __radd__(self, other: Sequence[Any]) -> list[Any]:
        """The elements of a list, then these ones."""
        return [*other, *self]

    def __mul__(self, times: Any) -> RepeatedTensors:
        """The elements several times."""
        return RepeatedTensors(self.items, self.times * times)

    def joined(self, function: Callable[..., torch.Tensor], dim: int) -> torch.Tensor:
        """The tensor that ``stack`` or ``cat`` makes of the list.

        :param function: the function
        :param dim: its dimension
        """
        once = function(self.items, dim)
        sizes: list[Any] = [1] * once.ndim
        sizes[dim] = self.times
        return once.repeat(sizes)


def joined_tensors(original: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Makes ``stack`` and ``cat`` take a list that is repeated any number of times.

    :param original: the function of torch
    :param args: the list, then the dimension
    :param options: the arguments that are named
    """
    named = {**dict(zip(("tensors", "dim"), args, strict=False)), **options}
    tensors = named.pop("tensors", None)
    if not isinstance(tensors, RepeatedTensors):
        return original(*args, **options)
    if named.get("out") is not None:
        return original(list(tensors), **named)
    return tensors.joined(original, named.get("dim", named.get("axis", 0)))


def repeated_list(original: Callable[..., Any], times: Any, items: Any) -> Any:
    """Makes a dynamic dimension repeat a list of tensors in the functions that join tensors.

    :param original: the product of a dimension and a number
    :param times: the dimension
    :param items: a number or a list
    """
    is_list = isinstance(items, list | tuple) and not times.node.expr.is_number and items
    if not is_list or not all(isinstance(x, torch.Tensor) for x in items):
        return original(times, items)
    # the caller of the function that called this one
    names = sys._getframe(2).f_code.co_names
    return RepeatedTensors(items, times) if set(JOINED) & set(names) else original(times, items)
