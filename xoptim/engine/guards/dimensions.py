"""Tests whether a rewrite changes dimensions, and whether nodes only run for some sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from xbuilder.dims import Constraints, Dim, DimensionError, evaluate, prod, prove_equal, symbols
from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord

#: sizes given to the dimensions of the inputs, one after the other
_SIZES = (29, 7, 61, 13, 101, 3, 41, 17)
#: factors applied to these sizes, since a window may be larger than the small ones
_SCALES = (1, 50)
#: largest number of names that are tested when the graph restricts them
_MAX_RESTRICTED = 5


def only_runs_for_some_sizes(graph: Graph, records: Iterable[NodeRecord]) -> bool:
    """Whether some nodes only run for some sizes of their inputs, while no constraint on
    dimensions saying so.

    :param graph: the graph
    :param records: nodes of the graph, or nodes that just left it
    """
    return any(_restricts(graph, r) for r in records)


def _restricts(graph: Graph, record: NodeRecord) -> bool:
    facts, constraints = graph.facts, graph.facts.constraints
    if record.domain:
        return True
    if record.op_type == "Reshape":
        before, after = facts[record.inputs[0]].shape, facts[record.outputs[0]].shape
        target = facts[record.inputs[1]].value if len(record.inputs) > 1 else None
        if before is None or after is None or not isinstance(target, tuple):
            return True
        pairs = [(prod(before), prod(after))]
        # an element 0 copies a dimension
        pairs += [(a, b) for a, b, t in zip(before, after, target, strict=False) if t == 0]
        return not all(prove_equal(a, b, constraints) for a, b in pairs)
    if record.op_type == "Squeeze":
        shape = facts[record.inputs[0]].shape
        return shape is None or any(isinstance(d, str) for d in shape)
    if record.op_type == "PRelu":
        x, slope = (facts[name].shape for name in record.inputs)
        if x is None or slope is None:
            return True
        aligned = zip(x[::-1], slope[::-1], strict=False)
        return not all(b == 1 or prove_equal(a, b, constraints) for a, b in aligned)
    return record.op_type == "Split"


def equal_on_samples(a: Dim, b: Dim, free: frozenset[str], constraints: Constraints) -> bool:
    """Whether two dimensions are equal for every sampled size of the inputs, which is no proof.

    :param a: a dimension
    :param b: a dimension
    :param free: names that stand for any integer: the dimensions of the inputs
    :param constraints: constraints of the graph on dimensions; only sizes they allow are tried
    :return: False if inputs exist for which they differ and none is negative; a dimension made of
        other names than *free* says nothing
    """
    if a == b or prove_equal(a, b, constraints) is True:
        return True
    names, limits = _related(symbols(a) | symbols(b), constraints)
    if not names <= free or (limits and len(names) > _MAX_RESTRICTED):
        return True
    for sizes in _assignments(sorted(names), bool(limits)):
        try:
            if not all(
                _holds(kind, evaluate(x, sizes), evaluate(y, sizes)) for kind, x, y in limits
            ):
                continue
            x, y = evaluate(a, sizes), evaluate(b, sizes)
        except DimensionError:
            continue
        if x != y and x >= 0 and y >= 0:
            return False
    return True


def _related(
    names: frozenset[str], constraints: Constraints
) -> tuple[frozenset[str], list[tuple[str, Dim, Dim]]]:
    """The names, the names a constraint relates to them, and these constraints."""
    rows = [(kind, x, y, symbols(x) | symbols(y)) for kind, x, y, _ in constraints.items()]
    known = 0
    while known != len(names):
        known = len(names)
        names = names.union(*(s for *_, s in rows if not names.isdisjoint(s)))
    return names, [(kind, x, y) for kind, x, y, s in rows if not names.isdisjoint(s)]


def _assignments(names: list[str], restricted: bool) -> Iterator[dict[str, int]]:
    """Sizes of the names: all different, and also equal or 1 if the graph restricts them."""
    for scale, shift in product(_SCALES, range(3)):
        yield {n: _SIZES[(i + shift) % len(_SIZES)] * scale for i, n in enumerate(names)}
    if restricted:
        for choice in product((1, 7, 12), repeat=len(names)):
            yield dict(zip(names, choice, strict=True))


def _holds(kind: str, x: int, y: int) -> bool:
    return x == y or (kind == "equal_or_one" and 1 in (x, y))
