"""Part of GraphBuilder: constants and questions that users of other builders know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dims import Dim
from ..errors import OptionError
from ..support.argument_types import shown
from .graph_builder_facts import BuilderFacts
from .graph_builder_making import BuilderMaking
from .graph_builder_opset import Opset


def _frozen(value: int | list[int]) -> np.ndarray:
    array = np.array(value, dtype=np.int64)
    array.flags.writeable = False
    return array


class BuilderNames(BuilderMaking, BuilderFacts):
    """The other names of the queries of :class:`xbuilder.GraphBuilder`, and the constants an
    exporter writes everywhere, `g.op.Unsqueeze(x, g.ZERO)`."""

    op: Opset

    ZERO = _frozen([0])
    ONE = _frozen([1])
    MINUS_ONE = _frozen([-1])
    ZERO_NO_DIM = _frozen(0)
    ONE_NO_DIM = _frozen(1)

    def rank(self, name: str) -> int:
        """The number of dimensions of a result, as :meth:`get_rank`.

        :raises FactError: it is not known
        """
        return self.get_rank(name)

    def get_type_known(self, name: str, exc: bool = False) -> int | None:
        """The element type of a result, None if it is not known.

        :param name: the result
        :param exc: raises an exception instead
        :raises FactError: the type is not known
        """
        return self.get_type(name) if exc else self.facts[name].type or None

    def is_dynamic_dimension(self, dim: Dim | None) -> bool:
        """Whether a dimension is not a known integer."""
        return not isinstance(dim, (int, np.integer))

    def set_type_shape_or_rank(self, name: str, like: str) -> None:
        """Declares for a result what is known of another one: type, shape or rank, device.

        :param name: the result
        :param like: the other one
        :raises FactError: it contradicts what is known
        """
        if self.has_type(like):
            self.set_type(name, self.get_type(like))
        if self.has_shape(like):
            self.set_shape(name, self.get_shape(like))
        elif self.has_rank(like):
            self.set_rank(name, self.get_rank(like))
        if self.has_device(like):
            self.set_device(name, self.get_device(like))

    def has_local_function(self, name: str, domain: str = "") -> bool:
        """Whether a local function exists.

        :param name: its name
        :param domain: its domain, the local domain of the builder if it is empty
        """
        return (domain or self.graph.scope.local_domain, name) in self.graph.functions

    def make_shape_from_results(self, shape: Sequence[int | str]) -> str:
        """Adds the nodes that make a shape out of integers and of results.

        :param shape: integers, and names of integer results of one element
        :return: the name of a result, a vector of INT64
        :raises OptionError: a name is no result, or has more than one dimension

        ::

            rows = g.op.Shape("x", start=0, end=1)
            y = g.op.Reshape("x", g.make_shape_from_results([rows, -1, 4]))
        """
        if not any(isinstance(dim, str) for dim in shape):
            return self.make_initializer("", np.array(shape, dtype=np.int64))
        parts = [
            self._vector(dim) if isinstance(dim, str) else np.array([dim], dtype=np.int64)
            for dim in shape
        ]
        return str(self.op.Concat(*parts, axis=0) if len(parts) > 1 else parts[0])

    def _vector(self, name: str) -> str:
        """A dimension held by a result, as a vector of one element."""
        if not self.has_name(name) or (self.has_rank(name) and self.get_rank(name) > 1):
            raise OptionError(
                f"A shape is made of integers and of results of one element, not {shown(name)}."
            )
        if self.has_rank(name) and self.get_rank(name) == 1:
            return name
        return str(self.op.Reshape(name, self.MINUS_ONE))
