"""Finds a small graph inside a big one, by unification with backtracking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from onnx import NodeProto

from .graph_queries import GraphQueries

#: operators whose two inputs may be exchanged
COMMUTATIVE = frozenset(
    {
        "Add",
        "And",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "Equal",
        "Max",
        "Mean",
        "Min",
        "Mul",
        "Or",
        "Sum",
        "Xor",
    }
)
#: most inputs whose permutations are tried
_MAX_PERMUTED = 4


@dataclass
class PatternGraph:
    """A graph to find or to write.

    :param nodes: nodes in topological order
    :param inputs: names standing for any result
    :param outputs: names of the results
    :param constants: constants by name
    :param types: element type an input must have, 0 for any
    :param opsets: domains
    """

    nodes: list[NodeProto]
    inputs: list[str]
    outputs: list[str]
    constants: dict[str, np.ndarray]
    types: dict[str, int] = field(default_factory=dict)
    opsets: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.producers = {o: i for i, n in enumerate(self.nodes) for o in n.output if o}

    def root(self) -> NodeProto:
        """The node giving the first result."""
        return self.nodes[self.producers[self.outputs[0]]]


@dataclass
class Binding:
    """What a pattern graph was unified with: names, and nodes by position in the pattern."""

    names: dict[str, str] = field(default_factory=dict)
    nodes: dict[int, NodeProto] = field(default_factory=dict)

    def copy(self) -> Binding:
        """An independent copy."""
        return Binding(dict(self.names), dict(self.nodes))


def same_constant(g: GraphQueries, name: str, value: np.ndarray) -> bool:
    """Tells if a result is this constant, up to the precision of its type.

    A constant of one element may have rank 0 or 1.
    """
    shape = g.get_constant_shape(name)
    if shape is None:
        return False
    small = value.size == 1 and value.ndim <= 1 and shape in ((), (1,))
    if shape != value.shape and not small:
        return False
    found = g.get_computed_constant(name)
    if found is None:
        return False
    if found.dtype.kind in "iub" or value.dtype.kind in "iub":
        return found.dtype == value.dtype and bool((found.ravel() == value.ravel()).all())
    try:
        precision = 4 * float(np.finfo(found.dtype).eps)
    except ValueError:
        precision = 2.0**-7
    a, b = found.ravel().astype(np.float64), value.ravel().astype(np.float64)
    return bool(np.allclose(a, b, rtol=precision, atol=0, equal_nan=True))


def _bind_name(g: GraphQueries, graph: PatternGraph, binding: Binding, name: str, actual: str) -> bool:
    """Binds a name of the pattern that is not the result of one of its nodes."""
    if not name or not actual:
        return not name and not actual
    if name in binding.names:
        return binding.names[name] == actual
    if name in graph.constants:
        if not same_constant(g, actual, graph.constants[name]):
            return False
    elif graph.types.get(name) and g.try_infer_type(actual) != graph.types[name]:
        return False
    binding.names[name] = actual
    return True


def _orders(node: NodeProto, actual: NodeProto) -> Iterator[tuple[str, ...]]:
    inputs = tuple(actual.input)
    yield inputs
    if actual.op_type in COMMUTATIVE and not actual.domain and 1 < len(inputs) <= _MAX_PERMUTED:
        for order in permutations(inputs):
            if order != inputs:
                yield order


def _unify_node(
    g: GraphQueries, graph: PatternGraph, binding: Binding, i: int, actual: NodeProto, why: list[str]
) -> Iterator[Binding]:
    """Every way to unify node *i* of the pattern, and what it reads, with a node of the graph."""
    node = graph.nodes[i]
    if i in binding.nodes:
        if binding.nodes[i] is actual:
            yield binding
        return
    if node.op_type != actual.op_type or node.domain != actual.domain:
        why.append(f"{node.op_type} was expected, {actual.op_type} was found")
        return
    if any(n is actual for n in binding.nodes.values()):
        return
    expected = list(node.output)
    found = list(actual.output)
    while len(found) > len(expected) and not found[-1]:
        found.pop()
    if len(expected) < len(found):
        why.append(f"{node.op_type} has {len(found)} outputs, {len(expected)} expected")
        return
    for order in _orders(node, actual):
        attempt = binding.copy()
        attempt.nodes[i] = actual
        if not _bind_outputs(attempt, expected, found):
            continue
        names = list(node.input)
        width = max(len(names), len(order))
        pairs = list(
            zip(
                names + [""] * (width - len(names)),
                list(order) + [""] * (width - len(order)),
                strict=True,
            )
        )
        yield from _unify_inputs(g, graph, attempt, pairs, why)


def _bind_outputs(binding: Binding, expected: list[str], found: list[str]) -> bool:
    for name, actual in zip(expected, found, strict=False):
        if not name:
            continue
        if not actual or binding.names.get(name, actual) != actual:
            return False
        binding.names[name] = actual
    return True


def _unify_inputs(
    g: GraphQueries,
    graph: PatternGraph,
    binding: Binding,
    pairs: list[tuple[str, str]],
    why: list[str],
) -> Iterator[Binding]:
    if not pairs:
        yield binding
        return
    (name, actual), rest = pairs[0], pairs[1:]
    if name not in graph.producers:
        attempt = binding.copy()
        if _bind_name(g, graph, attempt, name, actual):
            yield from _unify_inputs(g, graph, attempt, rest, why)
        else:
            why.append(f"{actual!r} cannot be {name!r}")
        return
    before = g.node_before(actual) if actual else None
    if before is None:
        why.append(f"{actual!r} is not the result of a node")
        return
    position = list(before.output).index(actual)
    pattern_node = graph.nodes[graph.producers[name]]
    if position >= len(pattern_node.output) or pattern_node.output[position] != name:
        why.append(f"{actual!r} is another output of {before.op_type} than the one expected")
        return
    for attempt in _unify_node(g, graph, binding, graph.producers[name], before, why):
        yield from _unify_inputs(g, graph, attempt, rest, why)


def _complete(
    g: GraphQueries, graph: PatternGraph, binding: Binding, why: list[str]
) -> Iterator[Binding]:
    """Binds the nodes that the root does not depend on, going down from what they read."""
    missing = [i for i in range(len(graph.nodes)) if i not in binding.nodes]
    if not missing:
        yield binding
        return
    for i in missing:
        anchors = [n for n in graph.nodes[i].input if n in binding.names]
        if not anchors:
            continue
        for actual in g.next_nodes(binding.names[anchors[0]]):
            for attempt in _unify_node(g, graph, binding, i, actual, why):
                yield from _complete(g, graph, attempt, why)
        return
    why.append("a part of the pattern is not connected to its first result")


def unify(
    g: GraphQueries, graph: PatternGraph, node: NodeProto, why: list[str]
) -> Iterator[Binding]:
    """Every way to unify a pattern graph with the graph around a node.

    :param g: the optimizer
    :param graph: the pattern
    :param node: stands for the root of the pattern
    :param why: receives the reasons of what did not match
    """
    root = graph.producers[graph.outputs[0]]
    for binding in _unify_node(g, graph, Binding(), root, node, why):
        yield from _complete(g, graph, binding, why)
