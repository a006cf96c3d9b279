"""Pairs the nodes of two graphs: first by what they compute, then by what surrounds them."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from onnx import NodeProto

from xbuilder.nodes.canonical_attributes import canonical_attributes
from xbuilder.nodes.subgraphs import captured_names, subgraphs_of
from xbuilder.operators.domains import main_domain

#: identity of a result, equal in both graphs for results that correspond
Token = str
#: the attributes of a node, hashable; bodies are read with the tokens of what they capture
Attributes = Callable[[NodeProto, Mapping[str, Token]], object]


def token_of(*parts: object) -> Token:
    """A short token, equal for equal parts."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def operator_of(node: NodeProto) -> str:
    """The operator of a node with its domain, as users write it: `Relu`, `com.microsoft.Gelu`."""
    domain = main_domain(node.domain)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def plain_attributes(node: NodeProto, opset: int) -> frozenset[bytes]:
    """The attributes of a node that are no graph, without those equal to their default.

    >>> from onnx import helper
    >>> plain_attributes(helper.make_node("Concat", ["x"], ["y"], axis=1), 18) != frozenset()
    True
    >>> plain_attributes(helper.make_node("Gemm", ["x", "w"], ["y"], alpha=1.0), 18)
    frozenset()
    """
    if not any(subgraphs_of(node)):
        return canonical_attributes(node, opset)
    copy = NodeProto(op_type=node.op_type, domain=node.domain)
    copy.attribute.extend(a for a in node.attribute if not a.HasField("g") and not a.graphs)
    return canonical_attributes(copy, opset)


class NodePair(NamedTuple):
    """Two nodes that correspond.

    :param before: the node of the first graph
    :param after: the node of the second graph
    :param equal: whether they compute the same from the same inputs and weights
    """

    before: NodeProto
    after: NodeProto
    equal: bool


class GraphSide:
    """The nodes of one of the two graphs, with the tokens of its results.

    :param nodes: the nodes, sorted
    :param tokens: tokens of the results the nodes read from outside
    :param attributes: gives the attributes of a node
    """

    def __init__(
        self, nodes: Sequence[NodeProto], tokens: Mapping[str, Token], attributes: Attributes
    ):
        self.nodes = nodes
        self._attributes = attributes
        #: a result of Identity -> what it copies
        self._copied: dict[str, str] = {}
        self._copies: defaultdict[str, list[str]] = defaultdict(list)
        #: content of each result: what it computes from inputs and weights
        self.contents: dict[str, Token] = dict(tokens)
        #: tokens of the results known to correspond to a result of the other graph
        self.paired: dict[str, Token] = dict(tokens)
        self.producers: dict[str, int] = {}
        self.readers: defaultdict[str, list[int]] = defaultdict(list)
        self.partners: dict[int, int] = {}
        self._operands: list[list[str]] = []
        self.keys = [self._read(i, node) for i, node in enumerate(nodes)]

    def _read(self, position: int, node: NodeProto) -> Token:
        key = self._key(node, self.contents)
        captured = [name for _, graph in subgraphs_of(node) for name in captured_names(graph)]
        self._operands.append([self.source(n) for n in (*node.input, *captured) if n])
        for name in self._operands[position]:
            self.readers[name].append(position)
        for index, name in enumerate(node.output):
            if name:
                self.contents[name] = token_of(key, index)
                self.producers[name] = position
        if operator_of(node) == "Identity" and node.input[0] in self.contents:
            copied = self.source(node.input[0])
            self._copied[node.output[0]] = copied
            self._copies[copied].append(node.output[0])
            self.contents[node.output[0]] = self.contents[copied]
            if copied in self.paired:
                self.paired[node.output[0]] = self.paired[copied]
        return key

    def operator_giving(self, name: str) -> str:
        """The type of the node that gives a result, in words if none does."""
        position = self.producers.get(name)
        return "no node" if position is None else self.nodes[position].op_type

    def source(self, name: str) -> str:
        """The result that Identity nodes copy into another one, itself if there is none."""
        return self._copied.get(name, name)

    def set_paired(self, name: str, token: Token) -> None:
        """Records that a result, and its copies, correspond to one of the other graph."""
        for copy in (name, *self._copies[name]):
            self.paired[copy] = token

    def _key(self, node: NodeProto, tokens: Mapping[str, Token]) -> Token:
        """A key of what a node does to results known by their tokens."""
        outputs = [bool(name) for name in node.output]
        operands = [tokens.get(self.source(n), f"?{n}") if n else "" for n in node.input]
        attributes = self._attributes(node, tokens)
        return token_of(operator_of(node), node.overload, attributes, outputs, operands)

    def place(self, position: int) -> Token | None:
        """A key equal for nodes that do the same to paired results, None if one is not paired."""
        node = self.nodes[position]
        if any(name not in self.paired for name in self._operands[position]):
            return None
        return self._key(node, self.paired)


class NodeMatcher:
    """Pairs the nodes of two graphs.

    1. Nodes that compute the same from inputs and weights, whatever the names.
    2. From the outputs up: nodes of one operator whose results are read at one place.
    3. From paired results down: nodes that do the same to them.
    4. Nodes of one operator that write a result of the same name; then 2 and 3 again.

    Cost: linear in the nodes and edges of the two graphs.

    :param before: the first graph
    :param after: the second graph

    ::

        for pair in NodeMatcher(before, after).pairs([("y", "y")]):
            print(pair.before.op_type, pair.equal)
    """

    def __init__(self, before: GraphSide, after: GraphSide):
        self.before, self.after = before, after
        self._upward: list[tuple[str, str]] = []
        self._downward: list[int] = []
        self._waiting: defaultdict[Token, list[int]] = defaultdict(list)

    def pairs(self, outputs: Iterable[tuple[str, str]]) -> list[NodePair]:
        """The pairs, in the order of the first graph.

        :param outputs: names of the outputs that correspond
        """
        self._pair_equal(self.before.keys, self.after.keys)
        self._upward.extend(outputs)
        self._spread()
        self._pair_by_name()
        self._spread()
        return [
            NodePair(
                self.before.nodes[i],
                self.after.nodes[j],
                self.before.keys[i] == self.after.keys[j],
            )
            for i, j in sorted(self.before.partners.items())
        ]

    def _pair_equal(self, firsts: Sequence[Token], seconds: Sequence[Token]) -> None:
        """Pairs the nodes of equal keys, those of equal names first."""
        candidates: defaultdict[Token, deque[int]] = defaultdict(deque)
        named: dict[tuple[Token, str], int] = {}
        for j, key in enumerate(seconds):
            candidates[key].append(j)
            named[key, self.after.nodes[j].output[0]] = j
        late = []
        for i, key in enumerate(firsts):
            homonym = named.get((key, self.before.nodes[i].output[0]))
            if homonym is not None and homonym not in self.after.partners:
                self._pair(i, homonym)
            elif key in candidates:
                late.append(i)
        for i in late:
            free = candidates[firsts[i]]
            while free and free[0] in self.after.partners:
                free.popleft()
            if free:
                self._pair(i, free.popleft())

    def _pair_by_name(self) -> None:
        for i, node in enumerate(self.before.nodes):
            if i in self.before.partners:
                continue
            for name in node.output:
                homonym = self.after.producers.get(name) if name else None
                if homonym is not None and self._fit(i, homonym):
                    self._pair(i, homonym)
                    break

    def _fit(self, i: int, j: int) -> bool:
        """Whether two nodes are free and have one operator."""
        if i in self.before.partners or j in self.after.partners:
            return False
        first, second = self.before.nodes[i], self.after.nodes[j]
        return operator_of(first) == operator_of(second)

    def _pair(self, i: int, j: int) -> None:
        self.before.partners[i], self.after.partners[j] = j, i
        first, second = self.before.nodes[i], self.after.nodes[j]
        for index, (a, b) in enumerate(zip(first.output, second.output, strict=False)):
            if a and b:
                token = token_of("pair", i, j, index)
                self.before.set_paired(a, token)
                self.after.set_paired(b, token)
                self._downward.extend(self.before.readers[a])
                self._downward.extend(-1 - k for k in self.after.readers[b])
        if self.before.keys[i] != self.after.keys[j]:
            self._upward.extend(zip(first.input, second.input, strict=False))

    def _spread(self) -> None:
        """Follows the edges of the pairs, up and down, until there is nothing new."""
        while self._upward or self._downward:
            while self._upward:
                a, b = self._upward.pop()
                i = self.before.producers.get(self.before.source(a))
                j = self.after.producers.get(self.after.source(b))
                if i is not None and j is not None and self._fit(i, j):
                    self._pair(i, j)
            if self._downward:
                self._place(self._downward.pop())

    def _place(self, reader: int) -> None:
        """Pairs a reader of paired results with one that does the same in the other graph.

        :param reader: position in the first graph, or -1 minus the position in the second
        """
        side, position = (self.before, reader) if reader >= 0 else (self.after, -1 - reader)
        if position in side.partners:
            return
        place = side.place(position)
        if place is None:
            return
        waiting = self._waiting[place]
        for other in waiting:
            if (other >= 0) != (reader >= 0):
                i, j = max(reader, other), -1 - min(reader, other)
                if self._fit(i, j):
                    waiting.remove(other)
                    self._pair(i, j)
                    return
        if reader not in waiting:
            waiting.append(reader)
