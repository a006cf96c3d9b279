"""What infers the nodes whose results depend on a whole graph: owners of bodies, calls."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import OptionError
from ..facts.facts import ResultFacts
from ..graph.graph import Graph
from ..nodes.record import NodeRecord

#: facts of the outputs of a node, None for what is not known
NodeFacts = list[ResultFacts | None] | None
GraphInference = Callable[[Graph, NodeRecord], NodeFacts]

#: kind of the nodes calling a local function, whatever their type
CALL = "a call to a local function"

_INFERENCES: dict[str, GraphInference] = {}


def infers(kind: str) -> Callable[[GraphInference], GraphInference]:
    """Decorator, registers what infers the nodes of a kind.

    Inferring such a node builds other graphs, whose nodes are inferred in turn: the rooms that know
    how to do that are above this one.

    :param kind: an operator of the main domain which owns a graph, or :data:`CALL`
    :raises OptionError: the kind is registered already
    """

    def register(function: GraphInference) -> GraphInference:
        if kind in _INFERENCES:
            raise OptionError(f"What infers {kind} is already registered.")
        _INFERENCES[kind] = function
        return function

    return register


def graph_inference(kind: str) -> GraphInference | None:
    """What infers the nodes of a kind, None if nothing does."""
    return _INFERENCES.get(kind)
