"""Required sizes: dimensions a Reshape requires not to be 0, in any run that does not fail."""

from __future__ import annotations

from collections.abc import Iterator

from ..dims import Dim
from ..graph.graph import Graph
from ..nodes.attributes import find_attribute
from ..nodes.record import NodeRecord
from .required_ranks import needed_nodes


def note_required_sizes(graph: Graph) -> bool:
    """Notes in the constraints of a graph the dimensions its Reshape nodes require not to be 0.

    Only the nodes of the outermost graph that its outputs depend on require something: the others
    may not run. What is noted is true of the model, whatever replaces these nodes afterwards.

    Cost: O(Reshape nodes), O(edges) if one of them requires something.

    :param graph: a graph
    :return: whether something new is known
    """
    if graph.parent is not None or graph.scope.is_function:
        return False
    constraints = graph.facts.constraints
    found = [
        (record, dim)
        for record in graph.store.bucket("", "Reshape")
        for dim in _required_by(graph, record)
        if not constraints.prove_ge(dim, 1)
    ]
    needed = needed_nodes(graph) if found else ()
    before = list(constraints.lower_bounds())
    for record, dim in found:
        if record in needed:
            constraints.add_at_least(dim, 1)
    return before != list(constraints.lower_bounds())


def _required_by(graph: Graph, record: NodeRecord) -> Iterator[str]:
    """The symbolic dimensions that cannot be 0 if a Reshape does not fail.

    An element 0 of the target copies the dimension of the input at its position. It fails if there
    is no such dimension, or if this dimension is null and an element is -1. With `allowzero`,
    onnxruntime accepts 0 beside -1, although the specification does not: nothing is required.
    """
    facts = graph.facts
    target = facts[record.inputs[1]].value if len(record.inputs) == 2 else None
    if not isinstance(target, tuple):
        return
    rank, shape = facts[record.inputs[0]].known_rank(), facts[record.inputs[0]].shape
    zeros = find_attribute(graph.store.proto(record), "allowzero")
    if rank is None or (zeros is not None and (zeros.i or zeros.ref_attr_name)):
        return
    constraints = facts.constraints
    for i, dim in enumerate(target):
        kept: Dim = dim
        if i < rank:
            if -1 not in target or shape is None:
                continue
            if dim != 0 and constraints.prove_equal(dim, shape[i]) is not True:
                continue
            kept = shape[i]
        if isinstance(kept, str) and constraints.prove_ge(kept, 0):
            yield kept
