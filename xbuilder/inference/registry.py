"""Registry of the inferences of nodes whose results depend on a graph: bodies, calls."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import OptionError
from ..facts.facts import ResultFacts
from ..graph.graph import Graph
from ..nodes.record import NodeRecord

#: facts of the outputs of a node, None for those that are not known
NodeFacts = list[ResultFacts | None] | None
GraphInference = Callable[[Graph, NodeRecord], NodeFacts]

#: kind of the nodes that call a local function, whatever their type
CALL = "a call to a local function"

_INFERENCES: dict[str, GraphInference] = {}


def infers(kind: str) -> Callable[[GraphInference], GraphInference]:
    """Decorator that registers the inference of the nodes of a kind.

    Inferring such a node builds other graphs, whose nodes are inferred in turn. The packages that
    do it are above this one, hence the registry.

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
    """The inference registered for a kind of nodes, None if there is none."""
    return _INFERENCES.get(kind)
