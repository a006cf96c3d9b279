"""Products of weights by factors, checked when they are written to avoid another read."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ...errors import LateCheckError
from ...tensors.amplitude import largest_along, loses_digits
from .block_sources import Blocks, Bounds, part_of, separate_memory
from .scaled_blocks import ScaledBlocks


class CheckedProduct(Blocks):
    """A tensor of floats multiplied by factors. Reading it raises an error if an element is not
    finite, or if the elements multiplied by one factor, in a block, become too small for the type.

    Invariant: every block that is written was checked.

    :param product: the tensor and the factors
    :param name: its name in the error
    """

    def __init__(self, product: ScaledBlocks, name: str):
        super().__init__(product.data_type, product.dims, product)
        self.product = product
        self.name = name

    def key(self) -> Hashable:
        """See :class:`.block_sources.Blocks`. The content is the same."""
        return self.product.key()

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`.block_sources.Blocks`.

        :raises LateCheckError: if an element is not finite or a factor too small
        """
        value = self.product.block(bounds)
        for factor in self.product.factors:
            after = largest_along(value, axes_of_factor(factor, value.ndim))
            if not np.isfinite(after).all():
                raise self._error("is not finite")
            small = loses_digits(after, part_of(factor, bounds), value.dtype)
            if small.any() and self._was_larger(bounds, factor, after, small):
                raise self._error("is too small for its type")
        return value

    def _was_larger(
        self, bounds: Bounds, factor: np.ndarray, after: np.ndarray, small: np.ndarray
    ) -> bool:
        """Whether the small elements were larger before the multiplication."""
        with separate_memory():
            operand = self.product.operand.block(bounds)
        before = largest_along(operand, axes_of_factor(factor, operand.ndim))
        return bool((small & (after < before)).any())

    def _error(self, reason: str) -> LateCheckError:
        return LateCheckError(
            f"Weight {self.name!r}, multiplied by constants, {reason}. It is checked when it is "
            "read, as option late_checks asks: optimize the model again without it."
        )


def axes_of_factor(factor: np.ndarray, rank: int) -> tuple[int, ...]:
    """The axes along which a factor multiplies all elements by one number.

    :param factor: it has as many dimensions as the tensor it multiplies, or none
    :param rank: number of dimensions of that tensor

    >>> axes_of_factor(np.ones((1, 5)), 2)
    (0,)
    """
    return tuple(i for i in range(rank) if factor.ndim == 0 or factor.shape[i] == 1)
