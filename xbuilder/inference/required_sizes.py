"""Required sizes: dimensions that are not 0 in any run that does not fail, as nodes require."""

from __future__ import annotations

from collections.abc import Iterator

from ..dims import Constraints, Shape
from ..facts.facts import Value
from ..graph.graph import Graph
from ..nodes.attributes import find_attribute
from ..nodes.record import NodeRecord
from .refresh import refresh
from .required_ranks import needed_nodes


def note_required_sizes(graph: Graph) -> bool:
    """Notes in the constraints of a graph the dimensions that its nodes require not to be 0, and
    infers again the Reshape nodes whose result depends on them.

    Only the nodes of the outermost graph that its outputs depend on require something: the others
    may not run. What is noted is true of the model, whatever replaces these nodes afterwards.

    1. A Reshape fails on a null one, see `_required_by`.
    2. A dimension is broadcast with an integer that is not 0 or 1: it is this integer, or 1.

    Cost: O(Reshape nodes + constraints), O(edges) if one of them requires something.

    :param graph: a graph
    :return: whether something new is known
    """
    if graph.parent is not None or graph.scope.is_function:
        return False
    constraints = graph.facts.constraints
    found = [
        (record, dim)
        for record, dims in _requirements(graph)
        for dim in dims
        if not constraints.prove_ge(dim, 1)
    ]
    pairs = [dim for dim in _broadcast(graph) if not constraints.prove_ge(dim, 1)]
    if not found and not pairs:
        return False
    needed = needed_nodes(graph)
    before = list(constraints.lower_bounds())
    dims = [dim for record, dim in found if record in needed]
    for dim in dims + (pairs if len(needed) == len(graph.store.nodes) else []):
        constraints.add_at_least(dim, 1)
    if before == list(constraints.lower_bounds()):
        return False
    doubtful = [r for r in graph.store.bucket("", "Reshape") if _is_doubtful(graph, r)]
    refresh(graph, [r.inputs[1] for r in doubtful if len(r.inputs) == 2])
    return True


def _broadcast(graph: Graph) -> Iterator[str]:
    """The symbolic dimensions that are broadcast with an integer larger than 1."""
    for kind, *dims, _ in graph.facts.constraints.items():
        numbers = [dim for dim in dims if isinstance(dim, int)]
        if kind == "equal_or_one" and len(numbers) == 1 and numbers[0] > 1:
            yield from (dim for dim in dims if isinstance(dim, str))


def _is_doubtful(graph: Graph, record: NodeRecord) -> bool:
    """Whether the result of a Reshape has a dimension that has no name but the builder's."""
    shape = graph.facts[record.outputs[0]].shape
    generated = graph.facts.constraints.is_generated
    return shape is not None and any(isinstance(d, str) and generated(d) for d in shape)


def _requirements(graph: Graph) -> Iterator[tuple[NodeRecord, list[str]]]:
    """The Reshape nodes that require something, and the dimensions that cannot be 0. Those with the
    same target, of data of the same shape, are looked at once: few are different."""
    facts = graph.facts
    alike: dict[tuple[Value, Shape | None, int | None], list[NodeRecord]] = {}
    for record in graph.store.bucket("", "Reshape"):
        inputs = record.inputs
        if len(inputs) == 2:
            data = facts[inputs[0]]
            alike.setdefault((facts[inputs[1]].value, data.shape, data.rank), []).append(record)
    for (target, shape, rank), records in alike.items():
        if isinstance(target, tuple):
            known = len(shape) if shape is not None else rank
            dims = _required_by(target, shape, known, facts.constraints)
            yield from ((r, dims) for r in records if dims and _refuses_zeros(graph, r))


def _required_by(
    target: Shape, shape: Shape | None, rank: int | None, constraints: Constraints
) -> list[str]:
    """The symbolic dimensions that cannot be 0 if a Reshape does not fail.

    An element 0 of the target copies the dimension of the input at its position. It fails if there
    is no such dimension, or if this dimension is null and an element is -1.
    """
    if rank is None:
        return []
    found = list(target[rank:])
    if shape is not None and -1 in target:
        found[:0] = [
            copied
            for dim, copied in zip(target, shape, strict=False)
            if isinstance(copied, str)
            and dim != -1
            and (dim == 0 or constraints.prove_equal(dim, copied) is True)
        ]
    return [dim for dim in found if isinstance(dim, str) and constraints.prove_ge(dim, 0)]


def _refuses_zeros(graph: Graph, reshape: NodeRecord) -> bool:
    """Whether a Reshape has no `allowzero`. With it, onnxruntime accepts 0 beside -1, although the
    specification does not: nothing is required."""
    zeros = find_attribute(graph.store.proto(reshape), "allowzero")
    return zeros is None or not (zeros.i or zeros.ref_attr_name)
