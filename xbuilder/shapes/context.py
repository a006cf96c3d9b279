"""What a shape function may read: facts of the inputs, attributes, opset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dims import Constraints, Shape
from ..facts import ResultFacts, Value

UNKNOWN = ResultFacts()


class ShapeContext:
    """Read-only view on one node, given to shape functions.

    The view is lazy: a fact is looked up when it is asked for, never before. Shape functions are
    pure, they answer facts and change nothing, except for the constraints they collect.

    :param op_type: operator type
    :param domain: its domain, `""` for the main one
    :param opset: version of the domain
    :param inputs: names of the inputs, an empty string is a missing optional input
    :param n_outputs: number of outputs of the node
    :param lookup: gives the facts of a name
    :param constants: gives the value of a constant (None if it is not one)
    :param attributes: gives the attributes as python values
    :param new_dim: makes a fresh symbol out of a hint
    :param constraints: constraints collected on dimensions
    """

    __slots__ = (
        "_attributes",
        "_constants",
        "_loaded",
        "_lookup",
        "_new_dim",
        "constraints",
        "domain",
        "inputs",
        "n_inputs",
        "n_outputs",
        "op_type",
        "opset",
    )

    def __init__(
        self,
        op_type: str,
        domain: str,
        opset: int,
        inputs: tuple[str, ...],
        n_outputs: int,
        lookup: Callable[[str], ResultFacts],
        constants: Callable[[str], np.ndarray | None],
        attributes: Callable[[], dict[str, Any]],
        new_dim: Callable[[str], str],
        constraints: Constraints,
    ):
        self.op_type = op_type
        self.domain = domain
        self.opset = opset
        self.inputs = inputs
        self.n_inputs = len(inputs)
        self.n_outputs = n_outputs
        self._lookup = lookup
        self._constants = constants
        self._attributes = attributes
        self._loaded: dict[str, Any] | None = None
        self._new_dim = new_dim
        self.constraints = constraints

    def has_input(self, i: int) -> bool:
        """Tells if input *i* is given and not empty."""
        return i < self.n_inputs and self.inputs[i] != ""

    def facts(self, i: int) -> ResultFacts:
        """All the facts known of input *i*; unknown if it is missing."""
        name = self.inputs[i] if i < self.n_inputs else ""
        return self._lookup(name) if name else UNKNOWN

    def type(self, i: int) -> int:
        """Element type of input *i* (`TensorProto.DataType`), 0 if unknown."""
        return self.facts(i).type

    def shape(self, i: int) -> Shape | None:
        """Shape of input *i*, None if unknown."""
        return self.facts(i).shape

    def rank(self, i: int) -> int | None:
        """Rank of input *i*, None if unknown."""
        facts = self.facts(i)
        return len(facts.shape) if facts.shape is not None else facts.rank

    def value(self, i: int) -> Value:
        """Content of an integer input: a scalar for rank 0, a tuple for rank 1, None if unknown."""
        return self.facts(i).value

    def constant(self, i: int) -> np.ndarray | None:
        """Value of input *i* when it is a constant."""
        return self._constants(self.inputs[i]) if self.has_input(i) else None

    def attr(self, name: str, default: Any = None) -> Any:
        """Attribute *name* as a python value (int, float, str, list, array or GraphProto)."""
        if self._loaded is None:
            self._loaded = self._attributes()
        return self._loaded.get(name, default)

    def new_dim(self, hint: str = "") -> str:
        """Makes a symbol for a dimension that nothing ties to a known one."""
        return self._new_dim(hint)
