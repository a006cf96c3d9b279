"""Tensors whose elements are checked when they are read, so as not to be read once for that."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ..errors import LateCheckError
from ..tensors.amplitude import is_all_finite
from .block_sources import Blocks, Bounds, FileBlocks


class FiniteBlocks:
    """A tensor of floats that is refused if an element is not finite, when it is read.

    Invariant: what is written was checked, every block of it.

    :param operand: the tensor
    :param name: how it is called in the error
    """

    def __init__(self, operand: Blocks, name: str):
        self.data_type = operand.data_type
        self.dims = operand.dims
        self.operand = operand
        self.name = name

    def key(self) -> Hashable:
        """See :class:`.block_sources.Blocks`. The content is the same."""
        return self.operand.key()

    def files(self) -> list[FileBlocks]:
        """See :class:`.block_sources.Blocks`."""
        return self.operand.files()

    def grain(self) -> int:
        """See :class:`.block_sources.Blocks`."""
        return self.operand.grain()

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`.block_sources.Blocks`.

        :raises LateCheckError: if an element is not finite
        """
        value = self.operand.block(bounds)
        if not is_all_finite(value):
            raise LateCheckError(
                f"Weight {self.name!r}, multiplied by constants, is not finite. It is checked when "
                "it is read, as option late_checks asks: optimize the model again without it."
            )
        return value
