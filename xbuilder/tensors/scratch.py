"""Scratch memory, reused by each thread from one computation to the next."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Sequence

import numpy as np


class Scratch(threading.local):
    """Memory reused by each thread, from the beginning of a page. The system gives new memory page
    by page, which takes longer than the computation in it."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def array(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """An array whose content is lost when the same thread asks for another one.

        :param shape: its shape
        :param dtype: its type
        """
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if self._memory.nbytes < size:
            self._memory = np.frombuffer(mmap.mmap(-1, size), np.uint8)
        return self._memory[:size].view(dtype).reshape(shape)
