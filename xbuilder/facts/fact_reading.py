"""Queries on results: types, shapes, ranks, contents."""

from __future__ import annotations

from ..dims import Shape, is_static
from ..errors import FactError
from .facts import FactTable, Value


class FactReading:
    """Queries on the types, shapes and contents of results; each one costs O(1)."""

    facts: FactTable

    def has_type(self, name: str) -> bool:
        """Whether the element type of a result is known."""
        return self.facts[name].type != 0

    def get_type(self, name: str) -> int:
        """The element type of a result (`TensorProto.DataType`).

        :raises FactError: it is not known
        """
        elem_type = self.facts[name].type
        if not elem_type:
            raise FactError(f"The type of {name!r} is not known; call has_type before get_type.")
        return elem_type

    def has_shape(self, name: str, full: bool = False) -> bool:
        """Whether the shape of a result is known.

        :param name: the result
        :param full: every dimension must be an integer
        """
        shape = self.facts[name].shape
        return shape is not None and (not full or is_static(shape))

    def get_shape(self, name: str) -> Shape:
        """The shape of a result, a tuple of int or expressions (str).

        :raises FactError: it is not known
        """
        shape = self.facts[name].shape
        if shape is None:
            raise FactError(f"The shape of {name!r} is not known; call has_shape before get_shape.")
        return shape

    def has_rank(self, name: str) -> bool:
        """Whether the number of dimensions of a result is known."""
        return self.facts[name].known_rank() is not None

    def get_rank(self, name: str) -> int:
        """The number of dimensions of a result.

        :raises FactError: it is not known
        """
        rank = self.facts[name].known_rank()
        if rank is None:
            raise FactError(f"The rank of {name!r} is not known; call has_rank before get_rank.")
        return rank

    def value_as_shape(self, name: str) -> Value:
        """Known content of a shape-like result: a tuple, an int, an expression; None if unknown."""
        return self.facts[name].value
