"""Detects endless optimizations: rewrites that undo each other, or a graph that grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod

from xbuilder.graph.graph import Graph
from xbuilder.support.user_warnings import warn_user

from .endless import EndlessError
from .engine import Engine
from .observers import Observer
from .outcomes import Application

#: iterations without a smaller graph before the graph is compared with its earlier states
PATIENCE = 16
#: constants with at most this number of elements are hashed by value, the others by name
_SMALL = 64
#: largest allowed ratio between the size of the graph and its first size
GROWTH = 16
#: largest allowed number of additional nodes
FREE_NODES = 10_000


class OscillationDetector(Observer):
    """Compares signatures of the graph once its size stops decreasing.

    A signature does not depend on generated names: a node is described by its type, its attributes
    and its inputs, down to inputs of the graph and constants. Cost: nothing while the graph gets
    smaller, O(N) an iteration after.
    """

    def __init__(self) -> None:
        self._smallest: int | None = None
        self._stalled = 0
        self._seen: dict[int, int] = {}
        self._names: list[set[str]] = []
        self.culprits: list[str] = []

    def begin(self, engine: Engine) -> None:
        """Resets the signatures."""
        self._smallest = None
        self._seen.clear()
        self._names.clear()

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        """The reason to stop if the graph is one already seen, with the patterns that cause it.

        :param graph: the graph after an iteration
        :param applications: the applications of the iteration
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
        """The message for the user."""
        return (
            f"patterns {', '.join(self.culprits)} undo each other, the optimization stops here; "
            "remove one of them from the selection"
        )


class GrowthDetector(Observer):
    """Stops when the graph became much larger than it was, because rewrites feed each other.

    :param size: number of nodes at the beginning
    """

    def __init__(self, size: int = 0):
        self._starts_at(size)

    def _starts_at(self, size: int) -> None:
        self.size = size
        self.limit = GROWTH * size + FREE_NODES
        self._added: Counter[str] = Counter()

    def begin(self, engine: Engine) -> None:
        """Measures the graph."""
        self._starts_at(len(engine.store))

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        """The reason to stop if the graph is too large, with the patterns that cause it.

        Cost: nothing unless it is larger than it was at first.

        :param graph: the graph after an iteration
        :param applications: the applications of the iteration
        """
        if len(graph.store) <= self.size:
            return ""
        for a in applications:
            self._added[a.match.pattern.name] += len(a.added) - len(a.removed)
        return self.message() if len(graph.store) > self.limit else ""

    @property
    def culprits(self) -> list[str]:
        """The patterns that added most nodes."""
        return [name for name, added in self._added.most_common(3) if added > 0]

    def message(self) -> str:
        """The message for the user."""
        return (
            f"the graph had {self.size} nodes and has more than {self.limit} after patterns "
            f"{', '.join(self.culprits)}: they never end, remove them from the selection"
        )


def raise_if_endless(stops: Callable[..., str], reason: str) -> None:
    """Raises an exception if the detector that stops the optimization is a GrowthDetector.

    :param stops: the method of the detector
    :param reason: the reason it gives
    :raises EndlessError: it is
    """
    detector = getattr(stops, "__self__", None)
    if isinstance(detector, GrowthDetector):
        raise EndlessError(reason, detector.culprits)


def report_no_fixed_point(limit: int, done: Sequence[Application], grows: bool) -> None:
    """Reports an optimization that reached its number of iterations.

    :param limit: number of iterations
    :param done: the applications of the last one
    :param grows: the graph is larger than it was
    :raises EndlessError: it is; otherwise the user is warned
    """
    names = sorted({a.match.pattern.name for a in done if not a.refusal})
    last = f"the last one applied {', '.join(names) or 'nothing'}"
    reason = f"No fixed point after {limit} iterations, {last}."
    if grows:
        raise EndlessError(reason, names)
    warn_user(reason)


class UseDetector(Observer):
    """Stops when a rewrite was applied too many times.

    :param ratio: number of times for each node of the graph at the beginning
    """

    def __init__(self, ratio: float):
        self.ratio = ratio
        self.limit = 0.0
        self._used: Counter[str] = Counter()

    def begin(self, engine: Engine) -> None:
        """Measures the graph."""
        self.limit = self.ratio * len(engine.store)
        self._used.clear()

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        """The reason to stop if a rewrite was applied too often. Cost: O(number of applications).

        :param graph: the graph after an iteration
        :param applications: the applications of the iteration
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
    """Signature of a result without producer: an input, an outer result, an initializer."""
    shape = graph.facts[name].shape
    if name not in graph.constants.initializers or shape is None:
        return hash(name)
    small = prod(d for d in shape if isinstance(d, int)) <= _SMALL
    value = graph.constants.value(name) if small else None
    if value is None:
        return hash(name)
    return hash((str(value.dtype), value.shape, repr(value.tolist())))


def graph_signature(graph: Graph) -> int:
    """A number equal for equal computations. Cost: O(N)."""
    store = graph.store
    hashes: dict[str, int] = {}

    def signature(name: str) -> int:
        if name not in hashes:
            hashes[name] = _leaf(graph, name)
        return hashes[name]

    signatures: list[int] = []
    for record in store.nodes:
        inputs = tuple(signature(n) if n else 0 for n in (*record.inputs, *record.captured))
        attributes = tuple(
            sorted(a.SerializeToString(deterministic=True) for a in store.proto(record).attribute)
        )
        value = hash((record.domain, record.op_type, inputs, attributes))
        for i, name in enumerate(record.outputs):
            hashes[name] = hash((value, i))
        signatures.append(value)
    outputs = tuple(signature(o) for o in store.outputs)
    return hash((tuple(sorted(signatures)), outputs))
