"""Numbers of a range, as many as an expression of torch says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

_UNTYPED: Any = torch


class SymbolicRange(Sequence[Any]):
    """The elements of a ``range`` whose number is a symbolic size.

    A part of it, the list made of it, a sum of this list and another one are of any length too,
    and ``tensor`` makes a tensor of them. What needs the number of elements, a loop for example,
    makes it a constant.

    :param start: the first element
    :param step: the difference between two elements
    :param size: the number of elements from the first one
    :param before: elements before the first one

    >>> pooled = [-1] + SymbolicList(0, 1, 9)[1:-1][::2]
    >>> list(pooled), pooled.tensor().tolist()
    ([-1, 1, 3, 5, 7], [-1, 1, 3, 5, 7])
    """

    def __init__(self, start: Any, step: Any, size: Any, before: Sequence[Any] = ()) -> None:
        self.start, self.step, self.size = start, step, size
        self.before = list(before)

    @property
    def length(self) -> Any:
        """The number of elements, an expression."""
        return len(self.before) + self.size

    def __len__(self) -> int:
        """The number of elements, a constant."""
        return len(self.before) + int(self.size)

    def __iter__(self) -> Iterator[Any]:
        """The elements, whose number becomes a constant."""
        numbers = (self.start + i * self.step for i in range(int(self.size)))
        return itertools.chain(self.before, numbers)

    def __bool__(self) -> bool:
        """Whether there is an element."""
        return bool(self.length > 0)

    def __reversed__(self) -> Any:
        """The elements in reverse, whose number becomes a constant if some are before."""
        return iter([*self][::-1]) if self.before else self[::-1]

    def __eq__(self, other: object) -> bool:
        """Whether the elements are those of a list."""
        return list(self) == (list(other) if isinstance(other, SymbolicRange) else other)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: Any) -> Any:
        """An element or a part."""
        if isinstance(key, slice):
            return self._part(key)
        first = len(self.before)
        if 0 <= key < first:
            return self.before[key]
        place = key - first if key >= 0 else self.size + key
        if place < 0 or place >= self.size:
            return list(self)[key]
        return self.start + place * self.step

    def _part(self, key: slice) -> Any:
        """Every few elements, all of them in reverse, or what has a constant number of them."""
        first = len(self.before)
        if (key.start, key.stop, key.step) == (None, None, -1) and not first:
            return type(self)(self.start + (self.size - 1) * self.step, -self.step, self.size)
        start, stop, step = key.start or 0, key.stop or 0, key.step or 1
        is_known = all(isinstance(v, int) for v in (start, stop, step))
        if not is_known or start < 0 or step < 0 or stop > 0 or key.stop == 0 or self.size < -stop:
            return list(self)[key]
        skipped = start - first if start >= first else (start - first) % step
        left = _UNTYPED.sym_max(self.size + stop - skipped, 0)
        return type(self)(
            self.start + skipped * self.step,
            step * self.step,
            (left + step - 1) // step,
            self.before[start::step],
        )

    def tensor(self) -> torch.Tensor:
        """The elements in a tensor of integers."""
        numbers = self.start + self.step * torch.arange(self.size)
        return torch.cat([torch.tensor(self.before), numbers]) if self.before else numbers


class SymbolicList(SymbolicRange):
    """The elements of a symbolic range in a list. What changes the list makes the number of its
    elements a constant."""

    @classmethod
    def of(cls, numbers: SymbolicRange) -> SymbolicList:
        """The list of the elements of a range."""
        return cls(numbers.start, numbers.step, numbers.size, numbers.before)

    def __getattr__(self, name: str) -> Any:
        """A method of a list; torch asks an index for its own ``__torch_function__``."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._known(), name)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Replaces an element."""
        self._known()[key] = value

    def __delitem__(self, key: Any) -> None:
        """Removes an element."""
        del self._known()[key]

    def __add__(self, other: list[Any]) -> list[Any]:
        """The elements, then those of another list."""
        return [*self, *other]

    def __radd__(self, other: list[Any]) -> SymbolicList:
        """The elements of a list, then these ones."""
        return type(self)(self.start, self.step, self.size, [*other, *self.before])

    def __mul__(self, times: int) -> list[Any]:
        """The elements several times."""
        return list(self) * times

    def _known(self) -> list[Any]:
        """The elements, whose number is a constant from now on."""
        self.before, self.size = list(self), 0
        return self.before


def index_of_tensors(key: Any) -> Any:
    """An index whose lists of any length are tensors, another one as it is.

    :param key: what is between the brackets
    """
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, SymbolicRange) for part in parts):
        return key
    return tuple(p.tensor() if isinstance(p, SymbolicRange) else p for p in parts)
