"""Bounds the cost of computing the constants of a model: bytes of results and operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: bytes of results computed for a whole model, whatever the size of its weights
BUDGET_BYTES = 1 << 29
#: elementary operations run for a whole model, a few seconds of one core
BUDGET_OPERATIONS = 1 << 34
#: beyond these, a model may compute this number of times the size of its weights
PER_WEIGHT = 16

OVER_BYTES = "the budget of bytes computed for the model is spent"
OVER_OPERATIONS = "the budget of operations computed for the model is spent"

Sizes = Sequence[int]
Attributes = Callable[[str, Any], Any]


@dataclass(slots=True)
class Budget:
    """Budget of the computation of constants, shared by all the graphs of a model.

    A file of two kilobytes may hold a chain of doublings, or of products of matrices, each of which
    is affordable. The budget bounds their sum.

    :param spent_bytes: bytes of results computed so far
    :param spent_operations: operations run so far
    :param weights: bytes of the weights of the model
    """

    spent_bytes: int = 0
    spent_operations: int = 0
    weights: int = 0

    def refusal(self, size: int, operations: int) -> str:
        """The reason why a computation exceeds the budget, an empty string if it does not.

        :param size: bytes of its results
        :param operations: number of operations
        """
        more = PER_WEIGHT * self.weights
        if self.spent_bytes + size > BUDGET_BYTES + more:
            return OVER_BYTES
        if self.spent_operations + operations > BUDGET_OPERATIONS + more:
            return OVER_OPERATIONS
        return ""

    def spend(self, size: int, operations: int) -> None:
        """Counts a computation."""
        self.spent_bytes += size
        self.spent_operations += operations


def _matrix_product(inputs: Sequence[Sizes], written: int, attribute: Attributes) -> int:
    """Operations of a product of matrices: each result is a sum over one dimension of the first
    operand."""
    return written * max(inputs[0], default=1)


def _convolution(inputs: Sequence[Sizes], written: int, attribute: Attributes) -> int:
    return max(written, math.prod(inputs[0])) * (math.prod(inputs[1]) if len(inputs) > 1 else 1)


def _pooling(inputs: Sequence[Sizes], written: int, attribute: Attributes) -> int:
    return written * math.prod(attribute("kernel_shape", ()))


def _einsum(inputs: Sequence[Sizes], written: int, attribute: Attributes) -> int:
    """Operations of an Einsum: one for every value of all the labels."""
    terms = str(attribute("equation", "")).replace(" ", "").split("->")[0].split(",")
    labels: dict[str, int] = {}
    for term, dims in zip(terms, inputs, strict=False):
        if len(term) != len(dims):
            return math.prod(math.prod(dims) for dims in inputs)
        labels.update(zip(term, dims, strict=True))
    return math.prod(labels.values())


def _recurrent(inputs: Sequence[Sizes], written: int, attribute: Attributes) -> int:
    """Operations of a recurrent node: the weights are read at each step, for each row of the
    batch."""
    return math.prod(inputs[0][:2]) * sum(math.prod(dims) for dims in inputs[1:])


def _pairs(inputs: Sequence[Sizes], written: int, attribute: Attributes) -> int:
    return sum(math.prod(dims) for dims in inputs) ** 2


#: counts the operations of the operators that do more than read their inputs once
_OPERATIONS: dict[str, Callable[[Sequence[Sizes], int, Attributes], int]] = {
    **dict.fromkeys(("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul", "Det"), _matrix_product),
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger", "DeformConv"), _convolution),
    **dict.fromkeys(("AveragePool", "MaxPool", "LpPool"), _pooling),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("NonMaxSuppression", "DFT", "STFT", "Attention"), _pairs),
    "QLinearConv": lambda inputs, written, _: written * math.prod(inputs[min(3, len(inputs) - 1)]),
    "Einsum": _einsum,
}


def operations(op_type: str, inputs: Sequence[Sizes], written: int, attribute: Attributes) -> int:
    """Number of elementary operations of a node, its order of magnitude.

    :param op_type: its type
    :param inputs: shapes of its inputs
    :param written: number of elements of its results
    :param attribute: gives an attribute, or a default value

    >>> operations("MatMul", [(4, 8), (8, 2)], 8, lambda name, default: default)
    120
    """
    count = written + sum(math.prod(dims) for dims in inputs)
    more = _OPERATIONS.get(op_type)
    return count if more is None or not inputs else count + more(inputs, written, attribute)
