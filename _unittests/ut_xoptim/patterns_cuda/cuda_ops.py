"""The operators of onnx-extended in numpy, because their kernels only exist for CUDA."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from xbuilder.operators.domains import CUDA_DOMAIN
from xoptim.testing import (
    assert_same_outputs,
    check_no_match,
    check_pattern,
    model_from_text,
    refusal_tests,
    table_rows,
)

#: pattern -> case -> two texts
Table = Mapping[str, Mapping[str, tuple[str, str]]]
#: gives inputs for a pattern, the name of a case, a model before it is changed
FeedsOf = Callable[[str, str, str], Iterable[Mapping[str, np.ndarray]]]


def _repeated(*arrays: np.ndarray) -> list[np.ndarray]:
    """As the kernels do: the elements of each operand again and again, in order."""
    biggest = max(arrays, key=lambda a: (a.size, a.ndim))
    return [np.resize(a, biggest.shape) for a in arrays]


def _three(compute: Callable[..., np.ndarray]) -> Callable[..., tuple[np.ndarray, ...]]:
    def run(self, a, b, c, transposeMiddle=None, negative=None):
        result = compute(*_repeated(a, b, c))
        if negative:
            result = -result
        return (np.transpose(result, (0, 2, 1, 3)) if transposeMiddle else result,)

    return run


def _two(compute: Callable[..., np.ndarray]) -> Callable[..., tuple[np.ndarray, ...]]:
    def run(self, a, b, c):
        a, b, c = _repeated(a, b, c)
        return compute(a, b), compute(a, c)

    return run


def _one(compute: Callable[..., np.ndarray]) -> Callable[..., tuple[np.ndarray, ...]]:
    return lambda self, x: (compute(x).astype(x.dtype),)


def _replace_zero(self, x, by=None):
    return (np.where(x == 0, np.array(by, x.dtype), x),)


def _scatter(self, shape, indices, updates, reduction=None, maskedValue=None):
    result = np.zeros(tuple(shape), updates.dtype)
    combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    for place in np.ndindex(indices.shape[:-1]):
        if maskedValue is None or indices[place][0] != maskedValue:
            where = tuple(indices[place])
            result[where] = combine(result[where], updates[place])
    return (result,)


def _tri_matrix(self, shape, csts):
    row, column = np.indices(tuple(shape))
    return (csts[1 + np.sign(column - row)],)


def _rotary(self, x, splits, side=None):
    a, b = np.split(x, [int(splits[0])], axis=-1)
    return (np.concatenate([-b, a] if side == "right" else [b, -a], axis=-1),)


def _turned(dtype: Any) -> Callable[..., tuple[np.ndarray, ...]]:
    return lambda self, x: (x.T.astype(dtype),)


RUNS: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "AddAdd": _three(lambda a, b, c: a + b + c),
    "MulMul": _three(lambda a, b, c: a * b * c),
    "AddMul": _three(lambda a, b, c: (a + b) * c),
    "MulAdd": _three(lambda a, b, c: a * b + c),
    "SubMul": _three(lambda a, b, c: (a - b) * c),
    "MulSub": _three(lambda a, b, c: a * b - c),
    "AddSharedInput": _two(np.add),
    "MulSharedInput": _two(np.multiply),
    "MulSigmoid": _one(lambda x: x / (1 + np.exp(-x))),
    "NegXplus1": _one(lambda x: 1 - x),
    "ReplaceZero": _replace_zero,
    "ScatterNDOfShape": _scatter,
    "MaskedScatterNDOfShape": _scatter,
    "TriMatrix": _tri_matrix,
    "Rotary": _rotary,
    "Transpose2DCastFP16": _turned(np.float16),
    "Transpose2DCastFP32": _turned(np.float32),
}
CUDA_OPS = [type(k, (OpRun,), {"op_domain": CUDA_DOMAIN, "_run": v}) for k, v in RUNS.items()]


def parsed(text: str) -> ModelProto:
    """A model which may use the operators; they are written `cuda.AddMul` in the text."""
    return model_from_text(spelled(text), domains=(CUDA_DOMAIN,))


def spelled(text: str) -> str:
    """The text with the name of the domain."""
    return re.sub(r"(?<!\.)\bcuda\.", f"{CUDA_DOMAIN}.", text)


def run(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs, with the operators of this module."""
    return ReferenceEvaluator(model, new_ops=CUDA_OPS).run(None, dict(feeds))


def check(
    before: str,
    after: str | None,
    pattern: str,
    feeds: Iterable[Mapping[str, np.ndarray]],
    tolerance: float = 1e-6,
) -> None:
    """Checks the graph, then the results in numpy."""
    model = parsed(before)
    expected = None if after is None else parsed(after)
    result = check_pattern(model, expected, pattern, feeds=[], processor="CUDA")
    for feed in feeds:
        assert_same_outputs(run(model, feed), run(result, feed), tolerance, tolerance, pattern)


def check_refused(text: str, pattern: str, reason: str, processor: str = "CUDA") -> None:
    """Checks why a pattern refuses a model."""
    check_no_match(parsed(text), pattern, reason, processor=processor)


def cuda_rewrite_tests(table: Table, feeds_of: FeedsOf) -> Callable[..., None]:
    """Makes the test of the models patterns change; rows are `(text before, text after)`.

    :param table: pattern -> case -> row
    :param feeds_of: gives the inputs of a case
    """
    rows = [(pattern, name, *row) for pattern, name, row in table_rows(table)]

    @pytest.mark.parametrize(("pattern", "name", "before", "after"), rows)
    def test_rewrites(pattern: str, name: str, before: str, after: str) -> None:
        check(before, after, pattern, feeds_of(pattern, name, before))

    return test_rewrites


def cuda_refusal_tests(table: Table) -> Callable[..., None]:
    """Makes the test of the models patterns refuse; rows are `(text, reason)`."""
    models: dict[str, dict[str, tuple[ModelProto, str]]] = {}
    for pattern, name, (text, reason) in table_rows(table):
        models.setdefault(pattern, {})[name] = parsed(text), reason
    return refusal_tests(models, processor="CUDA")


def only_on_cuda_test(table: Table) -> Callable[..., None]:
    """Makes the test of patterns that refuse another processor: the first model of each."""

    @pytest.mark.parametrize("pattern", sorted(table))
    def test_only_on_cuda(pattern: str) -> None:
        before = next(iter(table[pattern].values()))[0]
        check_refused(before, pattern, "the processor is not CUDA", "CPU")

    return test_only_on_cuda
