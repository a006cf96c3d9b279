"""What can be asked and said about results: types, shapes, ranks, values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .constants.table import ConstantTable, known_content
from .dims import Constraints, Dim, Shape, normalize, substitute, symbols
from .errors import FactError
from .facts import FactTable, ResultFacts, Value
from .names import NameAllocator


class FactReading:
    """Questions on the types, shapes and contents of results; each one costs O(1)."""

    facts: FactTable

    def has_type(self, name: str) -> bool:
        """Tells if the element type of a result is known."""
        return self.facts[name].type != 0

    def get_type(self, name: str) -> int:
        """Returns the element type (`TensorProto.DataType`).

        :raises FactError: it is not known
        """
        elem_type = self.facts[name].type
        if not elem_type:
            raise FactError(f"The type of {name!r} is not known; call has_type before get_type.")
        return elem_type

    def has_shape(self, name: str, full: bool = False) -> bool:
        """Tells if the shape of a result is known.

        :param full: every dimension must be an integer
        """
        shape = self.facts[name].shape
        return shape is not None and (not full or all(isinstance(d, int) for d in shape))

    def get_shape(self, name: str) -> Shape:
        """Returns the shape, a tuple of int or expressions (str).

        :raises FactError: it is not known
        """
        shape = self.facts[name].shape
        if shape is None:
            raise FactError(f"The shape of {name!r} is not known; call has_shape before get_shape.")
        return shape

    def has_rank(self, name: str) -> bool:
        """Tells if the number of dimensions is known."""
        return self.facts[name].known_rank() is not None

    def get_rank(self, name: str) -> int:
        """Returns the number of dimensions.

        :raises FactError: it is not known
        """
        rank = self.facts[name].known_rank()
        if rank is None:
            raise FactError(f"The rank of {name!r} is not known; call has_rank before get_rank.")
        return rank

    def value_as_shape(self, name: str) -> Value:
        """Known content of a shape-like result: a tuple, an int, an expression; None if unknown."""
        return self.facts[name].value


class FactQueries(FactReading):
    """Part of :class:`xbuilder.GraphBuilder`: facts about results. Every query is O(1)."""

    constants: ConstantTable
    dimension_names: NameAllocator
    generated_dimensions: set[str]
    body_dimensions: set[str]
    scope: dict[str, Dim]
    devices: dict[str, Any]

    # -- types

    def set_type(self, name: str, elem_type: int) -> None:
        """Declares an element type.

        :raises FactError: another type is known
        """
        self.facts.refine(name, ResultFacts(int(elem_type)), "set_type")

    # -- shapes

    def set_shape(self, name: str, shape: Sequence[Dim | None]) -> None:
        """Declares a shape; it refines what is known.

        :param name: name of the result
        :param shape: dimensions, None for one that is not known
        :raises FactError: it contradicts the known one
        """
        self.facts.refine(name, ResultFacts(shape=self.clean_shape(shape)), "set_shape")

    def set_rank(self, name: str, rank: int) -> None:
        """Declares a number of dimensions."""
        self.facts.refine(name, ResultFacts(rank=rank), "set_rank")

    def clean_shape(self, shape: Sequence[Dim | None]) -> Shape:
        """Normalises dimensions; symbols are reserved, None becomes a fresh symbol."""
        dims: list[Dim] = []
        for d in shape:
            if d is None:
                dims.append(self.new_dimension("unk"))
            elif isinstance(d, str):
                dims.append(self.normalize_dimension(d))
            else:
                dims.append(int(d))
        return tuple(dims)

    def normalize_dimension(self, dim: str) -> Dim:
        """Puts a dimension in normal form and reserves the names it holds."""
        normal = normalize(dim)
        if isinstance(normal, str):
            for symbol in symbols(normal):
                self.dimension_names.reserve(symbol)
        return normal

    def declared_dimension(self, dim: str) -> Dim:
        """Dimension declared by a value info of a file.

        A symbol belongs to the graph declaring it: the one of a subgraph gets a name of its own,
        unless :attr:`scope` already says what it is.
        """
        normal = self.normalize_dimension(dim)
        if self.parent is None or isinstance(normal, int):  # type: ignore[attr-defined]
            return normal
        for symbol in symbols(normal):
            if symbol not in self.scope:
                local = self.unique_dimension_name(symbol if symbol.isidentifier() else "body")
                self.scope[symbol] = local
                self.body_dimensions.add(local)
        return substitute(normal, self.scope)

    def is_written(self, dim: Dim) -> bool:
        """Tells if a file can show a symbolic dimension where nothing was declared.

        It cannot show a name made by the builder, nor in a subgraph a name that stands for
        something else there.
        """
        if self.is_generated(dim):
            return False
        return not self.body_dimensions or not any(
            s in self.body_dimensions or self.scope.get(s, s) != s for s in symbols(dim)
        )

    # -- devices, sequences

    def has_device(self, name: str) -> bool:
        """Tells if the device of a result is known."""
        return name in self.devices

    def get_device(self, name: str) -> Any:
        """Returns the device of a result (-1 for CPU, the index of a GPU)."""
        if name not in self.devices:
            raise FactError(f"The device of {name!r} is not known; call has_device first.")
        return self.devices[name]

    def set_device(self, name: str, device: Any) -> None:
        """Declares the device of a result."""
        self.devices[name] = device

    def is_sequence(self, name: str) -> bool:
        """Tells if a result is known to be a sequence."""
        return self.facts[name].sequence is not None

    has_sequence = is_sequence

    def get_sequence(self, name: str) -> ResultFacts:
        """Facts of the elements of a sequence."""
        inner = self.facts[name].sequence
        if inner is None:
            raise FactError(f"{name!r} is not known to be a sequence; call is_sequence first.")
        return inner

    def set_sequence(
        self, name: str, elem_type: int, shape: Sequence[Dim | None] | None = None
    ) -> None:
        """Declares a sequence of tensors of one type."""
        inner = ResultFacts(elem_type, None if shape is None else self.clean_shape(shape))
        self.facts.refine(name, ResultFacts(sequence=inner), "set_sequence")

    # -- values

    def set_value_shape(self, name: str, value: Value) -> None:
        """Declares the content of a shape-like result."""
        self.facts.refine(name, ResultFacts(value=value), "set_value_shape")

    def is_constant(self, name: str) -> bool:
        """Tells if the value does not depend on the inputs (an overridable initializer does)."""
        return self.constants.is_constant(name)

    def get_constant(
        self, name: str, exc: bool = True, computed_value: bool = False, as_shape: bool = False
    ) -> Any:
        """Returns the value of a constant.

        :param name: name of the result
        :param exc: raises an exception if it is not available, returns None otherwise
        :param computed_value: also computes results of nodes whose inputs are all constant
        :param as_shape: returns a tuple of int
        :return: array, or tuple
        :raises FactError: there is no value
        """
        available = computed_value or name not in self.constants.computed
        if not available:
            available = known_content(self.facts[name]) is not None
            available |= self.constants.computed[name].op_type == "Constant"
        value: np.ndarray | None = self.constants.value(name) if available else None
        if value is None:
            if exc:
                raise FactError(f"{name!r} has no constant value (is_constant tells beforehand).")
            return None
        return tuple(int(i) for i in value.ravel()) if as_shape else value

    @property
    def constraints(self) -> Constraints:
        """What is known on dimensions."""
        return self.facts.constraints

    # -- dimensions

    def new_dimension(self, hint: str = "") -> str:
        """Makes a symbol for a dimension nothing is known of."""
        name = self.unique_dimension_name(f"{hint or 'd'}__0")
        self.generated_dimensions.add(name)
        self.facts.constraints.add_generated(name)
        return name

    def unique_dimension_name(self, prefix: str) -> str:
        """Reserves a name of dimension nobody uses."""
        return self.dimension_names.unique(prefix)

    def is_generated(self, dim: Dim) -> bool:
        """Tells if a dimension depends on a symbol made by the builder."""
        if isinstance(dim, int) or not self.generated_dimensions:
            return False
        return dim in self.generated_dimensions or any(
            s in self.generated_dimensions for s in symbols(dim)
        )
