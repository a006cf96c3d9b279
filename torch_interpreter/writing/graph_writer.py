"""The interface of the graph a converter writes: it adds nodes and asks for known facts.

:class:`xbuilder.GraphBuilder` implements it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Tensor = str | Array
Shape = tuple[int | str, ...]


class OpCall(Protocol):
    """Adds one node: inputs are results, constants or None when omitted."""

    def __call__(self, *inputs: Tensor | None, **attributes: Any) -> str:
        """Adds the node and returns the name of its only result, see :func:`several` for more."""


class Operators(Protocol):
    """One attribute for each operator: ``g.op.Add(x, y)``."""

    def __getattr__(self, op_type: str) -> OpCall: ...


class GraphWriter(Protocol):
    """The part of a graph that a converter uses."""

    @property
    def op(self) -> Operators:
        """Adds nodes of the main domain."""

    @property
    def main_opset(self) -> int:
        """Opset of the main domain."""

    def has_type(self, name: str) -> bool:
        """Whether the element type of a result is known."""

    def get_type(self, name: str) -> int:
        """The element type of a result."""

    def has_shape(self, name: str) -> bool:
        """Whether the shape of a result is known."""

    def get_shape(self, name: str) -> Shape:
        """The shape of a result."""

    def get_rank(self, name: str) -> int:
        """The number of dimensions of a result."""

    def make_initializer(self, name: str, value: Any, *, allow_empty: bool = False) -> str:
        """Adds a constant."""


def op_named(g: GraphWriter, op_type: str) -> OpCall:
    """The operator with this name, when the name comes from a table."""
    call: OpCall = getattr(g.op, op_type)
    return call


def several(
    g: GraphWriter, op_type: str, n: int, *inputs: Tensor | None, **attributes: Any
) -> tuple[str, ...]:
    """Adds a node with several results and returns their names."""
    names: str | tuple[str, ...] = op_named(g, op_type)(*inputs, outputs=n, **attributes)
    return (names,) if isinstance(names, str) else names


def constant(g: GraphWriter, value: Array) -> str:
    """Adds a constant, which may be empty."""
    return g.make_initializer("", np.asarray(value), allow_empty=True)
