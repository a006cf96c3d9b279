"""The errors of approximate rewrites, measured on numbers of any magnitude."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.helper as oh

from xoptim.testing import model_from_text, optimize_with, run_reference

#: number of elements
COUNT = 20000
#: element type -> factor of the errors told for float16
HALVES = {"float16": 1, "bfloat16": 8}
TYPES = {"float": 1, "float16": 10, "double": 11, "bfloat16": 16}


def numbers(kind: str, seed: int, low: float = -3, high: float = 3) -> np.ndarray:
    """Numbers of any magnitude between powers of 10, of both signs."""
    rng = np.random.default_rng(seed)
    found = 10.0 ** rng.uniform(low, high, COUNT) * rng.choice([-1, 1], COUNT)
    return found.astype(oh.tensor_dtype_to_np_dtype(TYPES[kind]))


def difference(
    text: str, pattern: str, feeds: dict[str, np.ndarray], run: Callable = run_reference
) -> tuple[np.ndarray, np.ndarray]:
    """The differences between the results, and the expected ones, in double. The model is meant for
    a processor that has kernels for narrow types."""
    before = model_from_text(text, 18)
    after, rows, _ = optimize_with(before, pattern, processor="CUDA")
    assert sum(r.get("instances", 0) for r in rows), pattern
    expected, got = (run(model, feeds)[0].astype(np.float64) for model in (before, after))
    return np.abs(got - expected), np.abs(expected)
