"""Index of small initializers by content, to reuse one instead of adding an equal constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from itertools import repeat
from operator import contains
from typing import Any

import numpy as np
from onnx import TensorProto

from .initializers import initializer_type_shape, is_external_proto

#: constants of more bytes are compared by the pass that merges initializers
SHARED_BYTES = 128

Content = tuple[int, tuple[int, ...], bytes]


class SharedInitializers:
    """Finds the initializer of a table equal to a small constant.

    Initializers are read at the first search after they were added. Nothing is paid if no constant
    is ever compared. Cost: O(1) for a constant, and for each small initializer, once.

    :param initializers: the initializers
    :param read: reads a tensor
    :param alone: sets of names that are never shared
    """

    def __init__(
        self,
        initializers: dict[str, Any],
        read: Callable[[TensorProto], np.ndarray | None],
        alone: tuple[Collection[str], ...] = (),
    ):
        self._initializers = initializers
        self._read = read
        self._alone = alone
        self._names: dict[Content, str] = {}
        self._contents: dict[str, Content] = {}
        self._pending: list[str] = []
        #: initializer -> the small one that is equal to it, itself; empty if it is never shared
        self._equal: dict[str, str] = {}

    @property
    def names(self) -> Collection[str]:
        """Initializers an equal constant is merged into, among those read so far."""
        return self._contents

    def added(self, name: str) -> None:
        """Records that an initializer was added, or has another value."""
        self.gone(name)
        self._pending.append(name)

    def gone(self, name: str) -> None:
        """Records that an initializer was removed."""
        self._equal.pop(name, None)
        content = self._contents.pop(name, None)
        if content is not None:
            del self._names[content]

    def find_equal(self, name: str) -> str:
        """Name of the initializer a small one is merged into: itself, or one that is equal; an
        empty string if there is none.

        :param name: an initializer
        """
        if self._pending:
            self._read_pending()
        known = self._equal.get(name)
        if known is not None and (not known or known in self._contents):
            return "" if self._is_alone(known) else known
        if not self._is_alone(name):
            self._remember(name)
            return self._equal[name]
        return self.find(self._initializers[name])

    def find(self, value: Any) -> str:
        """Name of an initializer equal to a constant, an empty string if there is none.

        :param value: the constant
        """
        content = self._content(value)
        if content is None:
            return ""
        if self._pending:
            self._read_pending()
        found = self._names.get(content, "")
        return "" if self._is_alone(found) else found

    def _is_alone(self, name: str) -> bool:
        return any(map(contains, self._alone, repeat(name)))

    def _read_pending(self) -> None:
        pending, self._pending = self._pending, []
        for name in pending:
            if name in self._initializers and not self._is_alone(name):
                self._remember(name)

    def _remember(self, name: str) -> None:
        if name in self._contents:
            return
        content = self._content(self._initializers[name])
        if content is None:
            self._equal[name] = ""
            return
        self._equal[name] = first = self._names.setdefault(content, name)
        if first == name:
            self._contents[name] = content

    def _content(self, value: Any) -> Content | None:
        """The key equal constants have in common, None for one that is never shared."""
        elem_type, shape = initializer_type_shape(value)
        if (
            math.prod(shape) > SHARED_BYTES
            or elem_type == TensorProto.STRING
            or is_external_proto(value)
        ):
            return None
        if isinstance(value, TensorProto) and value.HasField("raw_data"):
            raw = value.raw_data
            return (elem_type, shape, raw) if len(raw) <= SHARED_BYTES else None
        array = self._read(value) if isinstance(value, TensorProto) else value
        if array is None or array.nbytes > SHARED_BYTES:
            return None
        return elem_type, shape, array.tobytes()
