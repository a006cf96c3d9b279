"""Notes, the state that passes and the engine keep about one graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Notes:
    """The notes about a graph, one for each class of notes. A note belongs to the module that
    defines its class, and is made, without argument, when it is first read.

    ::

        @dataclass
        class Visits:
            count: int = 0

        graph.notes[Visits].count += 1
    """

    __slots__ = ("_notes",)

    def __init__(self) -> None:
        self._notes: dict[type[Any], Any] = {}

    def __getitem__(self, kind: type[T]) -> T:
        """The note of a class."""
        if kind not in self._notes:
            self._notes[kind] = kind()
        note: T = self._notes[kind]
        return note

    def __iter__(self) -> Iterator[object]:
        """The notes, in the order they were made."""
        return iter(self._notes.values())
