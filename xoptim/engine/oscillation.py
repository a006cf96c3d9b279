"""Detects rewrites that never end: they undo each other, or the graph grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from xbuilder.graph.graph import Graph

from .observers import Observer
from .outcomes import Application
from .state import EngineState

#: iterations without a smaller graph before the graph is compared with what it was
PATIENCE = 16
#: constants with at most this number of elements count by value, the others by name
_SMALL = 64
#: a graph may become so many times bigger
GROWTH = 16
#: and have so many nodes more
FREE_NODES = 10_000


class OscillationDetector(Observer):
    """Compares signatures of the graph once its size stopped decreasing.

    A signature does not depend on generated names: a node is described by its type, its attributes
    and what it reads, down to inputs and constants. Cost: nothing while the graph gets smaller,
    O(N) an iteration after.
    """

    def __init__(self) -> None:
        self._smallest: int | None = None
        self._stalled = 0
        self._seen: dict[int, int] = {}
        self._names: list[set[str]] = []
        self.culprits: list[str] = []

    def begin(self, state: EngineState) -> None:
        """Starts again from nothing."""
        self._smallest = None
        self._seen.clear()
        self._names.clear()

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        """Tells if the graph is one that was seen before, and because of which patterns.

        :param graph: the graph after an iteration
        :param applications: what the iteration applied
        """
        size = len(graph.store)
        if self._smallest is None or size < self._smallest:
            self._smallest, self._stalled = size, 0
            self._seen.clear()
            self._names.clear()
            return ""
        self._stalled += 1
        if self._stalled < PATIENCE:
            return ""
        self._names.append({a.match.pattern.name for a in applications if not a.refusal})
        signature = graph_signature(graph)
        if signature in self._seen:
            loop = self._names[self._seen[signature] :]
            self.culprits = sorted(set().union(*loop))
            return self.message()
        self._seen[signature] = len(self._names)
        return ""

    def message(self) -> str:
        """What to tell the user."""
        return (
            f"patterns {', '.join(self.culprits)} undo each other, the optimization stops here; "
            "remove one of them from the selection"
        )


class GrowthDetector(Observer):
    """Tells when a graph became much bigger than it was: rewrites feed each other.

    :param size: number of nodes at the beginning
    """

    def __init__(self, size: int = 0):
        self._starts_at(size)

    def _starts_at(self, size: int) -> None:
        self.size = size
        self.limit = GROWTH * size + FREE_NODES
        self._added: Counter[str] = Counter()

    def begin(self, state: EngineState) -> None:
        """Measures the graph."""
        self._starts_at(len(state.store))

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        """Tells if the graph is too big, and because of which patterns.

        Cost: nothing unless it is bigger than it was at first.

        :param graph: the graph after an iteration
        :param applications: what the iteration applied
        """
        if len(graph.store) <= self.size:
            return ""
        for a in applications:
            self._added[a.match.pattern.name] += len(a.added) - len(a.removed)
        return self.message() if len(graph.store) > self.limit else ""

    def message(self) -> str:
        """What to tell the user."""
        names = [name for name, added in self._added.most_common(3) if added > 0]
        return (
            f"the graph had {self.size} nodes and has more than {self.limit} after patterns "
            f"{', '.join(names)}, the optimization stops here; remove them from the selection"
        )


class UseDetector(Observer):
    """Tells when a rewrite was applied too many times.

    :param ratio: number of times for each node there was at the beginning
    """

    def __init__(self, ratio: float):
        self.ratio = ratio
        self.limit = 0.0
        self._used: Counter[str] = Counter()

    def begin(self, state: EngineState) -> None:
        """Measures the graph."""
        self.limit = self.ratio * len(state.store)
        self._used.clear()

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        """Tells if one was, and which. Cost: O(number of applications).

        :param graph: the graph after an iteration
        :param applications: what the iteration applied
        """
        self._used.update(a.match.pattern.name for a in applications if not a.refusal)
        names = sorted(name for name, count in self._used.items() if count > self.limit)
        if not names:
            return ""
        return (
            f"{', '.join(names)} was applied more than {self.limit:.8g} times (max_use_ratio), the "
            "optimization stops here"
        )


def _leaf(graph: Graph, name: str) -> int:
    """Signature of what no node gives: an input, an outer result, an initializer."""
    shape = graph.facts[name].shape
    if name not in graph.constants.initializers or shape is None:
        return hash(name)
    small = prod(d for d in shape if isinstance(d, int)) <= _SMALL
    value = graph.constants.value(name) if small else None
    if value is None:
        return hash(name)
    return hash((str(value.dtype), value.shape, repr(value.tolist())))


def graph_signature(graph: Graph) -> int:
    """A number that is the same for the same computation. Cost: O(N)."""
    store = graph.store
    known: dict[str, int] = {}

    def signature(name: str) -> int:
        if name not in known:
            known[name] = _leaf(graph, name)
        return known[name]

    signatures: list[int] = []
    for record in store.nodes:
        inputs = tuple(signature(n) if n else 0 for n in (*record.inputs, *record.captured))
        attributes = tuple(
            sorted(a.SerializeToString(deterministic=True) for a in store.proto(record).attribute)
        )
        value = hash((record.domain, record.op_type, inputs, attributes))
        for i, name in enumerate(record.outputs):
            known[name] = hash((value, i))
        signatures.append(value)
    outputs = tuple(signature(o) for o in store.outputs)
    return hash((tuple(sorted(signatures)), outputs))
