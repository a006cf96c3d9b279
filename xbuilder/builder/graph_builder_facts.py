"""Part of GraphBuilder: queries and declarations of types, shapes, ranks and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..constants.content import known_content
from ..dims import Constraints, Dim, Shape
from ..errors import FactError
from ..facts.fact_reading import FactReading
from ..facts.facts import ResultFacts, Value
from ..graph.graph import Graph
from ..support.argument_types import check_elem_type


class BuilderFacts(FactReading):
    """The queries of :class:`xbuilder.GraphBuilder` about results. Each one costs O(1)."""

    graph: Graph

    # -- types

    def set_type(self, name: str, elem_type: int) -> None:
        """Declares an element type.

        :raises FactError: another type is known
        """
        known = check_elem_type(elem_type)
        self.graph.facts.refine(name, ResultFacts(known), "set_type")

    # -- shapes

    def set_shape(
        self,
        name: str,
        shape: Sequence[Dim | None],
        set_if_more_precise: bool = True,
        exc: bool = True,
    ) -> None:
        """Declares a shape, which refines the known one.

        :param name: name of the result
        :param shape: dimensions, None for one that is not known
        :param set_if_more_precise: False leaves a known shape as it is
        :param exc: raises an exception if it contradicts the known one, which stays otherwise
        :raises FactError: it contradicts the known one
        """
        facts = self.graph.facts
        new = ResultFacts(shape=self.clean_shape(shape))
        if not set_if_more_precise and self.has_shape(name):
            return
        if exc or not facts.contradicts(name, new):
            facts.refine(name, new, "set_shape")

    def set_rank(self, name: str, rank: int) -> None:
        """Declares a number of dimensions."""
        self.graph.facts.refine(name, ResultFacts(rank=rank), "set_rank")

    def clean_shape(self, shape: Sequence[Dim | None]) -> Shape:
        """Normalises dimensions; symbols are reserved, None becomes a fresh symbol."""
        return self.graph.dimensions.clean_shape(shape)

    def is_written(self, dim: Dim) -> bool:
        """Whether a symbolic dimension may be written in a file where none was declared."""
        return self.graph.dimensions.is_written(dim)

    # -- devices, sequences

    def has_device(self, name: str) -> bool:
        """Whether the device of a result is known."""
        return name in self.facts.devices

    def get_device(self, name: str) -> Any:
        """The device of a result (-1 for CPU, the index of a GPU).

        :raises FactError: it is not known
        """
        if name not in self.facts.devices:
            raise FactError(f"The device of {name!r} is not known; call has_device first.")
        return self.facts.devices[name]

    def set_device(self, name: str, device: Any) -> None:
        """Declares the device of a result."""
        self.facts.devices[name] = device

    def is_sequence(self, name: str) -> bool:
        """Whether a result is known to be a sequence."""
        return self.graph.facts[name].sequence is not None

    has_sequence = is_sequence

    def get_sequence(self, name: str) -> ResultFacts:
        """Facts of the elements of a sequence.

        :raises FactError: it is not known to be one
        """
        inner = self.graph.facts[name].sequence
        if inner is None:
            raise FactError(f"{name!r} is not known to be a sequence; call is_sequence first.")
        return inner

    def set_sequence(
        self, name: str, elem_type: int, shape: Sequence[Dim | None] | None = None
    ) -> None:
        """Declares a sequence of tensors of one type."""
        inner = ResultFacts(elem_type, None if shape is None else self.clean_shape(shape))
        self.graph.facts.refine(name, ResultFacts(sequence=inner), "set_sequence")

    # -- values

    def set_value_shape(self, name: str, value: Value) -> None:
        """Declares the content of a shape-like result."""
        self.graph.facts.refine(name, ResultFacts(value=value), "set_value_shape")

    def is_constant(self, name: str) -> bool:
        """Whether the value of a result does not depend on the inputs (an overridable initializer
        does)."""
        return self.graph.constants.is_constant(name)

    def get_constant(
        self, name: str, exc: bool = True, computed_value: bool = False, as_shape: bool = False
    ) -> Any:
        """The value of a constant.

        :param name: name of the result
        :param exc: raises an exception if it is not available, returns None otherwise
        :param computed_value: also computes results of nodes whose inputs are all constant
        :param as_shape: returns a tuple of int
        :return: array, or tuple
        :raises FactError: there is no value
        """
        available = computed_value or name not in self.graph.constants.computed
        if not available:
            available = known_content(self.graph.facts[name]) is not None
            available |= self.graph.constants.computed[name].op_type == "Constant"
        value: np.ndarray | None = self.graph.constants.value(name) if available else None
        if value is None:
            if exc:
                raise FactError(f"{name!r} has no constant value (is_constant tells beforehand).")
            return None
        return tuple(int(i) for i in value.ravel()) if as_shape else value

    @property
    def constraints(self) -> Constraints:
        """The constraints on dimensions."""
        return self.graph.facts.constraints

    # -- dimensions

    def new_dimension(self, hint: str = "") -> str:
        """Makes a fresh symbol for an unknown dimension."""
        return self.graph.dimensions.new(hint)

    def unique_dimension_name(self, prefix: str) -> str:
        """Reserves an unused name of dimension."""
        return self.graph.dimensions.unique(prefix)

    def is_generated(self, dim: Dim) -> bool:
        """Whether a dimension depends on a symbol made by the builder."""
        return self.graph.dimensions.is_generated(dim)
