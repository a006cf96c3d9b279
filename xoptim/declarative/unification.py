"""Finds a small graph inside a big one, by unification with backtracking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.protos import main_domain
from xbuilder.op_traits import BROADCASTING, COMMUTATIVE
from xbuilder.store.graph_store import Key, NodeRecord

from ..api.queries import GraphQueries
from ..reading.constants import same_numbers

#: most inputs whose permutations are tried
_MAX_PERMUTED = 4


class Reasons:
    """Why nothing matched: what stopped the attempt that went the furthest.

    Text is made only when it is asked for.
    """

    __slots__ = ("_depth", "_row")

    def __init__(self) -> None:
        self._depth = -1
        self._row: tuple[object, ...] = ("the graph is not found",)

    def say(self, depth: int, template: str, *args: object) -> None:
        """Adds a reason.

        :param depth: number of nodes that were found
        :param template: a text to format later with *args*
        """
        if depth > self._depth:
            self._depth, self._row = depth, (template, *args)

    def best(self) -> str:
        """The reason."""
        template, *args = self._row
        return str(template).format(*args)


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
        self.records = [NodeRecord(n, i, 0) for i, n in enumerate(self.nodes)]
        self.before_root: frozenset[Key] = frozenset()
        if self.outputs and self.outputs[0] in self.producers:
            names = self.records[self.producers[self.outputs[0]]].inputs
            made = [self.records[self.producers[n]].key for n in names if n in self.producers]
            self.before_root = frozenset(made)

    def root(self) -> NodeProto:
        """The node giving the first result."""
        return self.nodes[self.producers[self.outputs[0]]]


@dataclass
class Binding:
    """What a pattern graph was unified with: names, and nodes by position in the pattern."""

    names: dict[str, str] = field(default_factory=dict)
    nodes: dict[int, NodeRecord] = field(default_factory=dict)

    def copy(self) -> Binding:
        """An independent copy."""
        return Binding(dict(self.names), dict(self.nodes))


def same_constant(g: GraphQueries, name: str, value: np.ndarray, broadcasts: bool = False) -> bool:
    """Tells if a result is a constant of the type of another one, equal up to its precision.

    Another float type is refused: what is written instead has constants of the expected type.

    :param g: the optimizer
    :param name: the result
    :param value: what is expected
    :param broadcasts: a constant of one element may have rank 0 or 1
    """
    shape = g.get_constant_shape(name)
    if shape is None:
        return False
    small = broadcasts and value.shape in ((), (1,)) and shape in ((), (1,))
    if shape != value.shape and not small:
        return False
    found = g.get_computed_constant(name)
    if found is None or found.dtype != value.dtype:
        return False
    if found.dtype.kind in "iubSUO":
        return bool((found.ravel() == value.ravel()).all())
    return same_numbers(found, value)


@dataclass
class Search:
    """One search: the graph, the pattern, and why it fails.

    :param g: the optimizer
    :param graph: the pattern
    :param reasons: receives what did not match
    """

    g: GraphQueries
    graph: PatternGraph
    reasons: Reasons

    def rejects(self, record: NodeRecord) -> bool:
        """Compares the nodes just before the root, without any copy. Cost: O(number of inputs)."""
        missing = self.graph.before_root
        if not missing:
            return False
        producers = self.g.store.producers
        found = {producers[n].key for n in record.inputs if n in producers}
        if missing <= found:
            return False
        names = sorted(k[1] for k in missing - found)
        self.reasons.say(0, "{} is expected before {}", " and ".join(names), record.op_type)
        return True

    def node(self, binding: Binding, i: int, actual: NodeRecord) -> Iterator[Binding]:
        """Every way to unify node *i* of the pattern, and what it reads, with a node."""
        node = self.graph.records[i]
        if i in binding.nodes:
            if binding.nodes[i] is actual:
                yield binding
            return
        if node.key != actual.key:
            self.reasons.say(
                len(binding.nodes), "{} was expected, {} was found", node.op_type, actual.op_type
            )
            return
        if any(n is actual for n in binding.nodes.values()):
            return
        found = list(actual.outputs)
        while len(found) > len(node.outputs) and not found[-1]:
            found.pop()
        if len(node.outputs) < len(found):
            text = "{} has {} outputs, {} expected"
            self.reasons.say(len(binding.nodes), text, node.op_type, len(found), len(node.outputs))
            return
        for order in _orders(actual):
            attempt = binding.copy()
            attempt.nodes[i] = actual
            if _bind_outputs(attempt, node.outputs, found):
                yield from self.inputs(attempt, i, order, 0)

    def inputs(
        self, binding: Binding, i: int, order: tuple[str, ...], position: int
    ) -> Iterator[Binding]:
        """Unifies the inputs of a node from one position."""
        names = self.graph.records[i].inputs
        if position >= max(len(names), len(order)):
            yield binding
            return
        name = names[position] if position < len(names) else ""
        actual = order[position] if position < len(order) else ""
        if name not in self.graph.producers:
            attempt = binding.copy()
            if self._bind(attempt, i, name, actual):
                yield from self.inputs(attempt, i, order, position + 1)
            else:
                self.reasons.say(len(binding.nodes), "{!r} cannot be {!r}", actual, name)
            return
        j = self.graph.producers[name]
        before = self.g.store.producers.get(actual)
        if before is None:
            self.reasons.say(len(binding.nodes), "{!r} is not the result of a node", actual)
            return
        rank = before.outputs.index(actual)
        expected = self.graph.records[j].outputs
        if rank >= len(expected) or expected[rank] != name:
            text = "{!r} is another output of {} than expected"
            self.reasons.say(len(binding.nodes), text, actual, before.op_type)
            return
        for attempt in self.node(binding, j, before):
            yield from self.inputs(attempt, i, order, position + 1)

    def _bind(self, binding: Binding, i: int, name: str, actual: str) -> bool:
        """Binds a name of the pattern that is not the result of one of its nodes."""
        if not name or not actual:
            return not name and not actual
        if name in binding.names:
            return binding.names[name] == actual
        value = self.graph.constants.get(name)
        wanted = self.graph.types.get(name)
        if value is not None:
            if not same_constant(self.g, actual, value, self._broadcasts(binding, i, actual)):
                return False
        elif wanted and self.g.try_infer_type(actual) != wanted:
            return False
        binding.names[name] = actual
        return True

    def _broadcasts(self, binding: Binding, i: int, actual: str) -> bool:
        """Tells if the rank of a constant (0 or 1) does not change the shape of the result."""
        record = binding.nodes[i]
        if record.op_type not in BROADCASTING or record.domain:
            return False
        others = [n for n in record.inputs if n and n != actual]
        return any(self.g.has_rank(n) and self.g.get_rank(n) > 0 for n in others)

    def complete(self, binding: Binding) -> Iterator[Binding]:
        """Binds the nodes that the root does not depend on, going down from what they read."""
        records = self.graph.records
        missing = [i for i in range(len(records)) if i not in binding.nodes]
        if not missing:
            if all(o in binding.names for o in self.graph.outputs):
                yield binding
            else:
                self.reasons.say(len(records), "an optional result is missing")
            return
        for i in missing:
            anchors = [n for n in records[i].inputs if n in binding.names]
            if not anchors:
                continue
            readers = self.g.store.readers(binding.names[anchors[0]])
            for actual in sorted(readers, key=lambda r: r.order):
                for attempt in self.node(binding, i, actual):
                    yield from self.complete(attempt)
            return
        self.reasons.say(len(records), "a part of the pattern is not connected to its first result")


def _orders(actual: NodeRecord) -> Iterator[tuple[str, ...]]:
    inputs = actual.inputs
    yield inputs
    if actual.op_type in COMMUTATIVE and not actual.domain and 1 < len(inputs) <= _MAX_PERMUTED:
        yield from dict.fromkeys(p for p in permutations(inputs) if p != inputs)


def _bind_outputs(binding: Binding, expected: tuple[str, ...], found: list[str]) -> bool:
    for name, actual in zip(expected, found, strict=False):
        if not actual or not name:
            continue
        if binding.names.get(name, actual) != actual:
            return False
        binding.names[name] = actual
    return True


def unify(
    g: GraphQueries, graph: PatternGraph, node: NodeProto, reasons: Reasons
) -> Iterator[Binding]:
    """Every way to unify a pattern graph with the graph around a node.

    :param g: the optimizer
    :param graph: the pattern
    :param node: stands for the root of the pattern
    :param reasons: receives what did not match
    """
    search = Search(g, graph, reasons)
    record = g.record(node)
    if search.rejects(record):
        return
    for binding in search.node(Binding(), graph.producers[graph.outputs[0]], record):
        yield from search.complete(binding)


def is_convex(g: GraphQueries, records: Mapping[int, NodeRecord]) -> bool:
    """Tells if no path leaves some nodes and comes back: replacing them would make a cycle.

    Cost: O(number of nodes between the first and the last of them).
    """
    inside = set(records.values())
    last = max(r.order for r in inside)
    stack = list(inside)
    seen: set[NodeRecord] = set()
    while stack:
        record = stack.pop()
        outside = record not in inside
        for name in record.outputs:
            for reader in g.store.readers(name):
                if reader in inside:
                    if outside:
                        return False
                elif reader not in seen and reader.order < last:
                    seen.add(reader)
                    stack.append(reader)
    return True


def root_key(node: NodeProto) -> str:
    """Root of a pattern for a node: its type, with its domain if it is not the main one."""
    domain = main_domain(node.domain)
    return f"{domain}::{node.op_type}" if domain else node.op_type
