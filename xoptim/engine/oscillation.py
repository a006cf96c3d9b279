"""Detects endless optimizations: rewrites that undo each other, or a graph that grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.support.user_warnings import warn_user

from .endless import EndlessError
from .engine import Engine
from .observers import Observer
from .outcomes import Application, names_of_applied

#: iterations without a smaller graph before the graph is compared with its earlier states
PATIENCE = 16
#: a graph is compared once in so many iterations as it has times this number of nodes: a rewrite
#: that moves along a chain does not read all of it at each step
_RARER = 32
#: constants with at most this number of elements are hashed by value, the others by name
_SMALL = 64
#: largest allowed ratio between the size of the graph and its first size
GROWTH = 16
#: largest allowed number of additional nodes
FREE_NODES = 10_000
#: equal windows, each in what the one before wrote, after which rewrites are endless, and when the
#: graph is already twice as large as it was, and this number of nodes
REPEATS, FEWER_REPEATS, FREE_DOUBLE = 6, 3, 1000
#: largest number of ancestors of an application that are compared with it
_ANCESTORS = 64


@dataclass(slots=True, eq=False)
class _Generation:
    """An application all of whose nodes were written by earlier ones.

    :param pattern: name of its pattern
    :param parent: the application that wrote these nodes, the one with the fewest ancestors
    :param depth: its number of ancestors
    :param size: number of nodes that it and its ancestors added
    :param window: hash of the nodes it removed and of what is known of their inputs
    :param place: hash of the same nodes with the names of their inputs and results
    """

    pattern: str
    parent: _Generation | None = None
    depth: int = 0
    size: int = 0
    window: int = 0
    place: int = 0

    def ancestors(self) -> Iterator[_Generation]:
        """The last ancestors, the nearest first."""
        found = self.parent
        for _ in range(_ANCESTORS):
            if found is None:
                return
            yield found
            found = found.parent


class GenerationDetector(Observer):
    """Stops when rewrites apply to what they wrote, over and over, and make the graph larger.

    An application belongs to a generation if earlier applications wrote every node it removes, and
    if it reads no other result than these nodes do. The rewrites are endless if the windows of
    several generations are equal: their nodes, attributes, small constants, types, shapes and
    numbers of readers. A rewrite that consumes nodes of the model, or moves along them, is never
    one of them, because each of these starts again from no ancestor.

    Cost: O(edges of the applications), nothing for the size of the graph.
    """

    def __init__(self) -> None:
        self._born: dict[NodeRecord, _Generation] = {}
        self._large = 0
        self.repeats = 0
        self.culprits: list[str] = []
        #: whether a place of the graph is as it was before
        self.came_back = False

    def begin(self, engine: Engine) -> None:
        """Forgets the applications, measures the graph."""
        self._born.clear()
        self._large = 2 * len(engine.store) + FREE_DOUBLE
        self.culprits, self.came_back = [], False

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Finds the generation of an application."""
        if done.refusal or not done.added:
            return
        made = _Generation(done.match.pattern.name)
        born = self._born
        parents = [born.pop(record) for record in done.removed if record in born]
        whole = bool(parents) and len(parents) == len(done.removed)
        if whole and _reads_nothing_new(engine, done):
            made.parent = parent = min(parents, key=lambda g: g.depth)
            made.depth = parent.depth + 1
            made.size = parent.size + len(done.added) - len(done.removed)
            made.window, made.place = _window_hashes(engine, done)
            self._compare(made, FEWER_REPEATS if len(engine.store) > self._large else REPEATS)
        for record in done.added:
            self._born[record] = made

    def _compare(self, made: _Generation, enough: int) -> None:
        """Compares an application with its ancestors."""
        repeats, size, names = 1, made.size, {made.pattern}
        for old in made.ancestors():
            names.add(old.pattern)
            if old.place == made.place and old.size == made.size:
                self.came_back = True
            if old.window == made.window and old.size < size:
                repeats, size = repeats + 1, old.size
                if repeats == enough:
                    self.repeats, self.culprits = repeats, sorted(names)
                    return

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        """The reason to stop if rewrites are endless, with their names.

        :param graph: the graph after an iteration
        :param applications: the applications of the iteration
        """
        return self.message() if self.culprits else ""

    def message(self) -> str:
        """The message for the user."""
        names = ", ".join(self.culprits)
        end = f"{self.repeats} times in the same way"
        if len(self.culprits) == 1:
            return (
                f"pattern {names} makes the graph larger, and applies again to what it wrote, "
                f"{end}: it never ends, remove it from the selection"
            )
        return (
            f"patterns {names} make the graph larger, and apply again to what they wrote, {end}: "
            "they never end, remove them from the selection"
        )


class OscillationDetector(Observer):
    """Compares signatures of the graph once its size stops decreasing.

    A signature does not depend on generated names: a node is described by its type, its attributes
    and its inputs, down to inputs of the graph and constants. Cost: nothing while the graph gets
    smaller, O(N) an iteration once a place is as it was before, O(1) an iteration without it, when
    a cycle is found after some of its turns.

    :param generations: the signatures are compared as soon as it sees a place that is as it was
        before, and later, in one iteration of many if the graph is large, without it
    """

    def __init__(self, generations: GenerationDetector | None = None) -> None:
        self._generations = generations
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
        came_back = self._generations is not None and self._generations.came_back
        if self._stalled < PATIENCE and not came_back:
            return ""
        self._names.append(set(names_of_applied(applications)))
        if not came_back and self._stalled % (1 + size // _RARER):
            return ""
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
    """Stops when the graph became much larger than it was, because rewrites feed each other."""

    def begin(self, engine: Engine) -> None:
        """Measures the graph."""
        self.size = len(engine.store)
        self.limit = GROWTH * self.size + FREE_NODES
        self._added: Counter[str] = Counter()

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


def endless_detectors() -> list[Observer]:
    """Detectors of each kind of endless optimization."""
    generations = GenerationDetector()
    return [generations, OscillationDetector(generations), GrowthDetector()]


def raise_if_endless(stops: Callable[..., str], reason: str) -> None:
    """Raises an exception if the detector that stops the optimization saw a graph that grows.

    :param stops: the method of the detector
    :param reason: the reason it gives
    :raises EndlessError: it is
    """
    detector = getattr(stops, "__self__", None)
    if isinstance(detector, (GenerationDetector, GrowthDetector)):
        raise EndlessError(reason, detector.culprits)


def report_no_fixed_point(limit: int, names: Sequence[str], grows: bool) -> None:
    """Reports an optimization that reached its number of iterations.

    :param limit: number of iterations
    :param names: the rewrites that the last one applied
    :param grows: the graph is larger than it was
    :raises EndlessError: it is; otherwise the user is warned
    """
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


def _reads_nothing_new(engine: Engine, done: Application) -> bool:
    """Whether the written nodes read what the removed ones read, or constants."""
    known, read = set[str](), set[str]()
    for record in done.removed:
        known.update(record.reads(), record.outputs)
    for record in done.added:
        known.update(record.outputs)
        read.update(record.reads())
    return all(map(engine.graph.constants.is_constant, read - known))


def _window_hashes(engine: Engine, done: Application) -> tuple[int, int]:
    """Hashes of the nodes an application removed: with what is known of their inputs, of their
    results and of the readers of these, then with the names of those that other nodes share."""
    graph, ranks = engine.graph, dict[str, int]()
    nodes = []
    for record in done.removed:
        written = [a.SerializeToString(deterministic=True) for a in record.current().attribute[:]]
        for name in (names := (*record.inputs, *record.captured, *record.outputs)):
            if name not in ranks:
                ranks[name] = len(ranks)
        nodes.append((record.key, tuple(sorted(written)), tuple(map(ranks.__getitem__, names))))
    made = {name: facts for name, facts, *_ in done.known}
    kept = [name for name in ranks if name not in made or name in graph.store.producers]
    window = [
        repr(made[name]) if name in made else (_leaf(graph, name, ""), repr(graph.facts[name]))
        for name in ranks
        if name
    ]
    readers = [len(graph.store.readers(name)) for name in made]
    return hash((*nodes, *window, *readers)), hash((*nodes, *kept))


def _leaf(graph: Graph, name: str, otherwise: str | None = None) -> int:
    """Signature of a result without producer: an input, an outer result, an initializer.

    :param otherwise: stands for the name of what is not a constant
    """
    known = name in graph.constants.initializers
    unnamed = hash(name if known or otherwise is None else otherwise)
    shape = graph.facts[name].shape
    if not known or shape is None:
        return unnamed
    small = prod([d for d in shape if isinstance(d, int)]) <= _SMALL
    value = graph.constants.value(name) if small else None
    if value is None:
        return unnamed
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
