"""Memory that is taken again."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np


class Scratch(threading.local):
    """Memory each thread takes again. The system gives a new one page by page, which takes longer
    than what is computed in it."""

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """An array whose content is lost when the same thread asks for the same name.

        :param name: what it is for
        :param shape: its shape
        :param dtype: its type
        """
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory = self._known.get(name)
        if memory is None or memory.nbytes < size:
            memory = self._known[name] = np.empty(size, np.uint8)
        return memory[:size].view(dtype).reshape(shape)


scratch = Scratch()
