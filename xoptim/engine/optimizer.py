"""The engine: match all, apply those that do not overlap, clean, again until nothing changes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from onnx import NodeProto

from xbuilder.errors import UnknownAttributeError
from xbuilder.features import Feature, attached, features_of, heard_by
from xbuilder.gc_pause import without_gc
from xbuilder.graph import Graph
from xbuilder.graph_builder import GraphBuilder
from xbuilder.nested.bodies import children_of, write_back
from xbuilder.nodes.record import NodeRecord
from xbuilder.passes import complete_rows
from xbuilder.passes.duplicates import remove_duplicated_shape
from xbuilder.passes.identity import remove_identity
from xbuilder.passes.unused import remove_unused
from xbuilder.store.events import StoreEvent

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import NodeFactory
from ..api.roots import Candidates, Roots, Sweep
from ..api.selection import get_pattern_list
from .applying import Applier
from .cleaning import clean
from .matching import match_pattern
from .observers import Dump, Observer, Row, Statistics, Verbose, Verify
from .oscillation import GrowthDetector, OscillationDetector
from .outcomes import Application, refusal_key
from .state import EngineState
from .worklist import Worklist

#: a sweep of the whole graph is cheaper than its neighbourhoods when one node in so many changed
SWEEP_SHARE = 32
#: iterations allowed whatever the size of the graph, when the user gives no limit
FREE_ITERATIONS = 100


class GraphBuilderPatternOptimization(EngineState):
    """Rewrites the graph of a builder with patterns.

    An iteration costs O(sum of the buckets of the roots + edits + N). After a full sweep, only the
    roots near a change are tried again, and a full sweep confirms the fixed point. It ends: the
    number of iterations is bounded and an oscillation is detected.

    :param builder: holds the graph, or is the graph itself; it is changed in place
    :param patterns: a selection, see `get_pattern_list`; those of the builder's options if None
    :param recursive: rewrites subgraphs as well
    :param verifies: checks every invariant after each iteration, and each call of a pattern; what
        a rewrite gives is always checked
    :param verbose: verbosity
    :param dump_applied_patterns: folder where each applied match is written
    :param processor: `"CPU"`, `"CUDA"` or both, what the result runs on
    :param features: told of every change of the graph while it is rewritten, and of what the engine
        does if they are :class:`.observers.Observer`; their checks are asked after each rewrite

    ::

        optimizer = GraphBuilderPatternOptimization(builder, "default")
        rows = optimizer.optimize()
    """

    def __init__(
        self,
        builder: GraphBuilder | Graph,
        patterns: Any = None,
        recursive: bool = False,
        verifies: bool = False,
        verbose: int = 0,
        dump_applied_patterns: str | None = None,
        processor: str = "CPU",
        features: Sequence[Feature] = (),
    ):
        graph = builder.graph if isinstance(builder, GraphBuilder) else builder
        if patterns is None:
            patterns = graph.scope.options.patterns
        self.graph = graph
        self.store, self.facts = graph.store, graph.facts
        self.processor = processor
        self.shared = {GraphBuilder: builder} if isinstance(builder, GraphBuilder) else {}
        self.verbose = verbose
        self.recursive, self.verifies = recursive, verifies
        self.patterns = sorted(get_pattern_list(patterns), key=lambda p: p.priority)
        self.refused = set()
        self.calls_to_watch = {}
        self.worklist = Worklist(self.store)
        self.statistics = Statistics()
        self.users = tuple(features)
        self.features: list[Feature] = [self.statistics, OscillationDetector(), GrowthDetector()]
        if verbose:
            self.features.append(Verbose(verbose))
        if verifies:
            self.features.append(Verify())
        if dump_applied_patterns:
            self.features.append(Dump(dump_applied_patterns))
        self.features.extend(self.users)
        self._hearers: dict[str, list[Callable[..., Any]]] = {}
        self.remove_identity = self.remove_unused = self.remove_duplicated_shape = True
        self.op = NodeFactory(self)
        self.anyop = self.op

    def explain(self, pattern: PatternOptimization | str, node: NodeProto) -> str:
        """Tells why a pattern does not match a node: the first condition that failed.

        :param pattern: a pattern or its name
        :param node: a node of the graph
        :return: a reason, or the match as text
        """
        pattern = get_pattern_list([pattern])[0]
        record = self.record(node)
        if record not in Sweep(self.store).of(pattern.roots):
            return f"{node.op_type} is not a root of {pattern.name}: {list(pattern.roots)}"
        if pattern.min_opset > self.main_opset:
            return (
                f"{pattern.name} needs opset {pattern.min_opset}, the graph has {self.main_opset}"
            )
        reasons: list[str] = []
        previous, pattern.listener = (
            pattern.listener,
            lambda r: reasons.append(f"{r[3]} (line {r[2]})"),
        )
        try:
            result = pattern.match(self, node, [])
        except UnknownAttributeError as e:
            return str(e)
        finally:
            pattern.listener = previous
        if result is not None:
            return result.to_string(short=False)
        return reasons[-1] if reasons else f"{pattern.name} does not match and gives no reason"

    @without_gc
    def optimize(
        self,
        max_iter: int = -1,
        remove_identity: bool = True,
        remove_unused: bool = True,
        remove_duplicated_shape: bool = True,
        stop_after: int = -1,
        recursive: bool = True,
        events: Sequence[StoreEvent] | None = None,
    ) -> list[Row]:
        """Runs the loop.

        :param max_iter: maximum number of iterations, -1 for a bound that depends on the graph
        :param remove_identity: removes Identity nodes after each iteration
        :param remove_unused: removes nodes that became useless after each iteration
        :param remove_duplicated_shape: merges equal Shape nodes after each iteration
        :param stop_after: stops after this number of applications, -1 for no limit
        :param recursive: rewrites subgraphs first, when the optimizer was made recursive
        :param events: what changed since the last fixed point: patterns look near these changes,
            then near their own, nowhere else
        :return: rows of statistics
        """
        self.remove_identity, self.remove_unused = remove_identity, remove_unused
        self.remove_duplicated_shape = remove_duplicated_shape
        rows: list[Row] = []
        if recursive and self.recursive:
            rows.extend(self._optimize_subgraphs(max_iter, stop_after))
            stop_after = _left(stop_after, _applications(rows))
        with attached(self.graph, self.features):
            self._hearers = {}
            self._tell("begin", self)
            self._clean_first()
            message = self._loop(max_iter, stop_after, events)
            self.store.compact()
            self._tell("end", self, message)
        return complete_rows(rows + self.statistics.rows)

    def _optimize_subgraphs(self, max_iter: int, stop_after: int) -> list[Row]:
        rows: list[Row] = []
        for record in list(self.store.nodes):
            for child in children_of(self.graph, record).values() if record.captured else ():
                inner = GraphBuilderPatternOptimization(
                    child, self.patterns, True, processor=self.processor, features=self.users
                )
                before = child.store.generation
                left = _left(stop_after, _applications(rows))
                rows.extend(inner.optimize(max_iter, stop_after=left))
                if record.alive and child.store.generation != before:
                    record = write_back(self.graph, record)
        return rows

    def _heard(self, event: str) -> list[Callable[..., Any]]:
        """What the features attached to the graph do when they are told something."""
        if event not in self._hearers:
            self._hearers[event] = heard_by(features_of(self.graph), Observer, event)
        return self._hearers[event]

    def _tell(self, event: str, *args: Any) -> None:
        for tell in self._heard(event):
            tell(*args)

    def _clean_first(self) -> None:
        if self.remove_identity:
            remove_identity(self.graph)
        if self.remove_unused:
            remove_unused(self.graph)
        if self.remove_duplicated_shape:
            remove_duplicated_shape(self.graph)

    # -- the loop

    def _loop(self, max_iter: int, stop_after: int, events: Sequence[StoreEvent] | None) -> str:
        patterns = [p for p in self.patterns if p.min_opset <= self.main_opset]
        levels = sorted({p.priority for p in patterns})
        limit = max_iter if max_iter >= 0 else FREE_ITERATIONS + 2 * len(self.store)
        level, applied = 0, 0
        done: list[Application] = []
        sweep, settled = set(patterns), set[PatternOptimization]()
        near = Candidates(self.store, [])
        if not levels:
            return "no pattern"
        if events is not None:
            levels = levels[-1:]
            settled, sweep = sweep, set()
            near = Candidates(self.store, self.worklist.neighbourhood(events))
        for i in range(limit):
            active = [p for p in patterns if p.priority <= levels[level]]
            self._tell("iteration", self, i, levels[level])
            matches = self._match(i, active, sweep, near)
            if not matches:
                settled.update(p for p in active if p in sweep)
                sweep = {p for p in active if p not in settled}
                near = Candidates(self.store, [])
                if not sweep and level + 1 < len(levels):
                    level += 1
                    sweep = {p for p in patterns if p.priority == levels[level]}
                elif not sweep:
                    return f"fixed point after {i + 1} iterations, {applied} rewrites"
                continue
            if events is None:
                settled.clear()
            sweep.difference_update(active)
            if stop_after >= 0:
                matches = matches[: stop_after - applied]
            done = self._apply(i, matches)
            applied += sum(not a.refusal for a in done)
            if stop_after >= 0 and applied >= stop_after:
                return f"stopped after {applied} rewrites"
            if len(done) * SWEEP_SHARE > len(self.store):
                sweep.update(active)
            else:
                near = Candidates(self.store, self.worklist.neighbourhood())
            for stops in self._heard("stops"):
                reason: str = stops(self.graph, done)
                if reason:
                    warnings.warn(reason, stacklevel=2)
                    return reason
        if max_iter < 0:
            names = sorted({a.match.pattern.name for a in done if not a.refusal})
            last = f"the last one applied {', '.join(names) or 'nothing'}"
            warnings.warn(f"No fixed point after {limit} iterations, {last}.", stacklevel=2)
        return f"stopped after {limit} iterations, {applied} rewrites"

    def _match(
        self,
        i: int,
        active: list[PatternOptimization],
        sweep: set[PatternOptimization],
        near: Candidates,
    ) -> list[MatchResult]:
        self.store.compact()
        claimed: set[NodeRecord] = set()
        matched: list[MatchResult] = []
        whole = Sweep(self.store)
        for pattern in active:
            roots: Roots = whole if pattern in sweep else near
            if roots.of(pattern.roots):
                self._tell("matched", i, match_pattern(self, pattern, roots, claimed, matched))
        return matched

    def _apply(self, i: int, matches: list[MatchResult]) -> list[Application]:
        applier = Applier(self)
        done: list[Application] = []
        tells = self._heard("applied")
        with self.worklist:
            for index, match in enumerate(matches):
                application = applier.apply(match)
                done.append(application)
                for tell in tells:
                    tell(self, i, index, application)
            applier.check_order(done)
            for application in done:
                if application.is_final:
                    self._refuse(application)
            begin = time.perf_counter()
            removed = clean(self, done)
        self.store.compact()
        self._tell("cleaned", self, i, removed, time.perf_counter() - begin)
        return done

    def _refuse(self, application: Application) -> None:
        self.refused.add(refusal_key(application.match))
        warnings.warn(
            f"A match of pattern {application.match.pattern.name} was not applied: "
            f"{application.refusal}.",
            stacklevel=2,
        )


def optimize_with_patterns(graph: Graph, events: Sequence[StoreEvent] | None = None) -> list[Row]:
    """Runs the patterns of the options on a graph, not on its subgraphs.

    :param graph: the graph
    :param events: see :meth:`GraphBuilderPatternOptimization.optimize`
    """
    options = graph.scope.options
    optimizer = GraphBuilderPatternOptimization(
        graph,
        options.patterns,
        verifies=options.verifies,
        verbose=max(options.verbose, graph.scope.verbose),
        dump_applied_patterns=options.dump_applied_patterns,
        processor=options.processor,
        features=options.features,
    )
    rows = optimizer.optimize(
        max_iter=options.max_iter,
        remove_identity=options.remove_identity,
        remove_unused=options.remove_unused,
        remove_duplicated_shape=options.remove_duplicated_shape,
        stop_after=_left(options.stop_after, graph.scope.totals.rewrites),
        events=events,
    )
    graph.scope.totals.rewrites += _applications(rows)
    return rows


def _applications(rows: list[Row]) -> int:
    return sum(r["instances"] for r in rows if r["pattern"].startswith("apply_"))


def _left(stop_after: int, applied: int) -> int:
    """Number of applications still allowed after some, -1 if there is no limit."""
    return -1 if stop_after < 0 else max(0, stop_after - applied)
