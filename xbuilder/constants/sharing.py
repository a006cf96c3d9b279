"""Small initializers by content: the one that is equal to a new constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from onnx import TensorProto

from .initializers import initializer_type_shape, is_external

#: constants of more bytes are compared by the pass that merges initializers
SHARED_BYTES = 128

Content = tuple[int, tuple[int, ...], bytes]


class SharedInitializers:
    """Finds the initializer of a table equal to a small constant.

    Initializers are read when a constant is first looked for after they came: nothing is paid for
    those nobody compares. Cost: O(1) for a constant, and for each small initializer, once.

    :param initializers: the initializers
    :param read: reads a tensor
    """

    def __init__(
        self, initializers: dict[str, Any], read: Callable[[TensorProto], np.ndarray | None]
    ):
        self._initializers = initializers
        self._read = read
        self._names: dict[Content, str] = {}
        self._contents: dict[str, Content] = {}
        self._pending: list[str] = []
        #: initializer -> the small one that is equal to it, itself; empty if it is never shared
        self._equal: dict[str, str] = {}

    @property
    def names(self) -> Collection[str]:
        """Initializers an equal constant is merged into, as far as they were read."""
        return self._contents

    def added(self, name: str) -> None:
        """An initializer came, or has another value."""
        self.gone(name)
        self._pending.append(name)

    def gone(self, name: str) -> None:
        """An initializer left."""
        self._equal.pop(name, None)
        content = self._contents.pop(name, None)
        if content is not None:
            del self._names[content]

    def find_equal(self, name: str, excluded: tuple[Collection[str], ...]) -> str:
        """Name of the initializer that stands for a small one: itself, or one that is equal; an
        empty string if there is none.

        :param name: an initializer
        :param excluded: names that stand for nothing but themselves
        """
        known = self._equal.get(name)
        if known is not None and (not known or known in self._contents):
            return "" if any(known in names for names in excluded) else known
        value = self._initializers[name]
        found = self.find(value, excluded)
        if found or self._content(value) is None:
            self._equal[name] = found
        return found

    def find(self, value: Any, excluded: tuple[Collection[str], ...]) -> str:
        """Name of an initializer equal to a constant, an empty string if there is none.

        :param value: the constant
        :param excluded: names that stand for nothing but themselves
        """
        content = self._content(value)
        if content is None:
            return ""
        pending, self._pending = self._pending, []
        for name in pending:
            if name in self._initializers and not any(name in names for names in excluded):
                self._remember(name)
        found = self._names.get(content, "")
        return "" if any(found in names for names in excluded) else found

    def _remember(self, name: str) -> None:
        if name in self._contents:
            return
        content = self._content(self._initializers[name])
        if content is not None and self._names.setdefault(content, name) == name:
            self._contents[name] = content

    def _content(self, value: Any) -> Content | None:
        """What equal constants have in common, None for one that is never shared."""
        elem_type, shape = initializer_type_shape(value)
        if math.prod(shape) > SHARED_BYTES or elem_type == TensorProto.STRING or is_external(value):
            return None
        if isinstance(value, TensorProto) and value.HasField("raw_data"):
            raw = value.raw_data
            return (elem_type, shape, raw) if len(raw) <= SHARED_BYTES else None
        array = self._read(value) if isinstance(value, TensorProto) else value
        if array is None or array.nbytes > SHARED_BYTES:
            return None
        return elem_type, shape, array.tobytes()
