"""Tests of xbuilder.tensors.scratch."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np

from xbuilder.tensors.scratch import Scratch


def test_each_thread_has_its_memory():
    scratch, separate, found = Scratch(), Scratch(), []

    def ask():
        arrays = [scratch.array(shape, np.dtype(np.float32)) for shape in ((3, 4), (2, 2))]
        arrays += [
            scratch.array((50,), np.dtype(bool)),
            separate.array((), np.dtype(ml_dtypes.bfloat16)),
        ]
        found.append(arrays)

    ask()
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    (a, again, longer, other), (b, *_) = found
    assert (a.shape, a.dtype, again.shape) == ((3, 4), np.float32, (2, 2))
    assert np.shares_memory(a, again) and not np.shares_memory(a, b)
    assert longer.nbytes == 50 and other.shape == () and not np.shares_memory(longer, other)
