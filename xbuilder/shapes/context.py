"""ShapeContext, the view of a node a shape function reads: facts, attributes, opset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..dims import Constraints, Shape
from ..facts.facts import ResultFacts, Value
from ..nodes.record import NodeRecord

UNKNOWN = ResultFacts()


class FactSources(NamedTuple):
    """The functions of a graph that its shape contexts call.

    :param facts: returns the facts of a name
    :param constant: returns the value of a constant, None if it is not one
    :param attributes: returns the attributes of a node as python values
    :param new_dim: makes a fresh symbol out of a hint
    :param constraints: constraints collected on dimensions
    """

    facts: Callable[[str], ResultFacts]
    constant: Callable[[str], np.ndarray | None]
    attributes: Callable[[NodeRecord], dict[str, Any]]
    new_dim: Callable[[str], str]
    constraints: Constraints


class ShapeContext:
    """Read-only view on one node, given to shape functions.

    The view is lazy, a fact is looked up when it is read, never before. Shape functions are
    pure, they return facts and change nothing, except for the constraints they collect.

    :param node: the node; an empty name among its inputs is a missing optional input
    :param opset: version of its domain
    :param sources: where facts, constants and attributes are read

    ::

        def twice(ctx):
            # the first dimension doubles
            n, *others = ctx.facts(0).shape
            return [ResultFacts(ctx.facts(0).type, (2 * n, *others))]

        register_shape_function("Twice", twice, domain="my.domain")
    """

    __slots__ = ("_attributes", "_node", "_sources", "inputs", "n_inputs", "opset")

    def __init__(self, node: NodeRecord, opset: int, sources: FactSources):
        self._node = node
        self.opset = opset
        self._sources = sources
        self.inputs = inputs = node.inputs
        self.n_inputs = len(inputs)
        self._attributes: dict[str, Any] | None = None

    @property
    def op_type(self) -> str:
        """Operator type."""
        return self._node.op_type

    @property
    def domain(self) -> str:
        """Domain of the operator, `""` for the main one."""
        return self._node.domain

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the node."""
        return len(self._node.outputs)

    @property
    def constraints(self) -> Constraints:
        """Constraints collected on dimensions."""
        return self._sources.constraints

    def has_input(self, i: int) -> bool:
        """Whether input *i* is present and its name not empty."""
        return i < self.n_inputs and self.inputs[i] != ""

    def facts(self, i: int) -> ResultFacts:
        """All the known facts of input *i*; unknown if it is missing."""
        name = self.inputs[i] if i < self.n_inputs else ""
        return self._sources.facts(name) if name else UNKNOWN

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
        return self._sources.constant(self.inputs[i]) if self.has_input(i) else None

    def attr(self, name: str, default: Any = None) -> Any:
        """Attribute *name* as a python value (int, float, str, list, array or GraphProto)."""
        if self._attributes is None:
            self._attributes = self._sources.attributes(self._node)
        return self._attributes.get(name, default)

    def new_dim(self, hint: str = "") -> str:
        """Makes a fresh symbol for a dimension unrelated to any known one."""
        return self._sources.new_dim(hint)
