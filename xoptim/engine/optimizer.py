"""The optimizer: matches all patterns, applies disjoint matches, cleans, until a fixed point."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

from onnx import NodeProto

from xbuilder.builder.graph_builder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.graph.features import Feature, attached, callbacks_of, features_of
from xbuilder.graph.graph import Graph
from xbuilder.inference.graph_inference import infer_missing
from xbuilder.nested.bodies import children_of, write_back
from xbuilder.nodes.functions import FunctionKey
from xbuilder.nodes.record import NodeRecord
from xbuilder.passes import complete_rows
from xbuilder.passes.patterns import with_validation
from xbuilder.runtimes.processors import check_processor
from xbuilder.store.events import StoreEvent
from xbuilder.support.argument_types import PATH, check_type
from xbuilder.support.gc_pause import without_gc
from xbuilder.support.user_warnings import warn_user

from ..authoring.patterns import MatchResult, PatternOptimization
from ..authoring.roots import Sweep
from ..authoring.seed_queries import NodeFactory
from ..catalogue.selection import single_pattern
from .applying import Applier
from .cleaning import Cleaning
from .dispatch import Plan, dispatch_of, has_listeners
from .endless import undo_if_endless
from .engine import Engine
from .failures import OnFailure, failure_callback
from .graph_rewriters import Rewriter, RewriterRunner
from .guards.mutation_guard import MutationGuard, mutation_message
from .intermediate_functions import inline_back
from .matching import Claims, match_pattern
from .observers import (
    Applied,
    Dump,
    Observer,
    Row,
    Statistics,
    Verbose,
    Verify,
    observes_steps,
)
from .oscillation import (
    UseDetector,
    endless_detectors,
    raise_if_endless,
    report_no_fixed_point,
)
from .outcomes import (
    Application,
    count_applied,
    count_instances,
    names_of_applied,
    refusal_key,
    refuse,
    still_allowed,
)
from .schedule import Schedule
from .worklist import Worklist

T = TypeVar("T")

#: iterations allowed whatever the size of the graph, when the user gives no limit
FREE_ITERATIONS = 100


class GraphBuilderPatternOptimization(Engine):
    """Rewrites the graph of a builder with patterns.

    An iteration costs O(sum of the buckets of the roots + edits + N). After a full sweep, only the
    roots near a change are tried again, and a full sweep confirms the fixed point. It ends: the
    number of iterations is bounded and an oscillation is detected.

    :param builder: holds the graph, or is the graph itself; it is changed in place
    :param patterns: a selection, see `get_pattern_list`, or its plan; those of the builder's
        options if None
    :param recursive: rewrites subgraphs as well
    :param verifies: runs the nodes each rewrite removes and writes, checks every invariant after
        each iteration, and each call of a pattern
    :param verbose: verbosity
    :param dump_applied_patterns: folder where each applied match is written
    :param processor: processors the result runs on, see `OptimizationOptions`
    :param features: notified of every change of the graph while it is rewritten, and of the steps
        of the engine if they are :class:`.observers.Observer`; their checks run after each rewrite
    :param on_failure: policy for a rewrite that fails: `"raise"`, `"warn"`, `"ignore"`, or a
        function of the error and of the rewrite
    :param final: rewriters of whole graphs that run once no pattern matches
    :param cleanup: rewriters of whole graphs that run after each change
    :param max_use_ratio: stops when one rewrite was applied more than this number of times the
        number of nodes
    :param checks: detects a pattern that modifies nodes in place or writes invalid nodes

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
        dump_applied_patterns: str | os.PathLike[str] | None = None,
        processor: str = "CPU",
        features: Sequence[Feature] = (),
        on_failure: str | OnFailure = "raise",
        final: Sequence[Rewriter] = (),
        cleanup: Sequence[Rewriter] = (),
        max_use_ratio: float | None = None,
        checks: bool = True,
    ):
        check_type("builder", builder, (GraphBuilder, Graph))
        check_type("features", features, (list, tuple))
        check_type("dump_applied_patterns", dump_applied_patterns, PATH, "a folder", optional=True)
        check_processor(processor)
        graph = self.graph = builder.graph if isinstance(builder, GraphBuilder) else builder
        if patterns is None:
            patterns = graph.scope.options.patterns
        infer_missing(graph)
        self.store, self.facts = graph.store, graph.facts
        self.processor = processor
        self.shared = {GraphBuilder: builder} if isinstance(builder, GraphBuilder) else {}
        self.verbose = verbose
        self.recursive, self.verifies, self.checks = recursive, verifies, checks or verifies
        plan = patterns if isinstance(patterns, Plan) else Plan(patterns, graph.main_opset)
        self._selection, self._dispatch, self._running = plan.selection, plan.dispatch, plan.running
        # between two graphs of an optimization, only an observer could listen to the patterns
        observed = verbose or observes_steps((*features, *features_of(graph)))
        self._shared_plan = plan if plan is patterns and not observed else None
        self.patterns = plan.patterns
        self.rewriters = [r for r in plan.others if isinstance(r, Rewriter)]
        self.final, self.cleanup, self.max_use_ratio = final, cleanup, max_use_ratio
        self.on_failure = failure_callback(on_failure)
        self.left, self._failures = -1, 0
        self.refused = set()
        self.guard = MutationGuard()
        self.worklist = Worklist(self.store)
        self._runner = RewriterRunner(self, self.worklist)
        self.statistics = Statistics()
        self.users = tuple(with_validation(features) if verifies else features)
        self.features: list[Feature] = [self.statistics, *endless_detectors()]
        if verbose:
            self.features.append(Verbose(verbose))
        if verifies:
            self.features.append(Verify())
        if dump_applied_patterns:
            self.features.append(Dump(dump_applied_patterns))
        if max_use_ratio is not None:
            self.features.append(UseDetector(max_use_ratio))
        self.features.extend(self.users)
        self._known_callbacks: dict[str, list[Callable[..., Any]]] = {}
        #: keeps the intermediate functions that patterns make for other patterns, to inspect them
        self.keeps_functions = False
        self.cleaning = Cleaning()
        self.op = self.anyop = NodeFactory(self)

    def explain(self, pattern: PatternOptimization | str, node: NodeProto) -> str:
        """The reason why a pattern does not match a node: the first condition that failed.

        :param pattern: a pattern or its name
        :param node: a node of the graph
        :return: a reason, or the match as text
        """
        pattern = single_pattern(pattern)
        record = self.record(node)
        if record not in Sweep(self.store).of(pattern.roots):
            return f"{node.op_type} is not a root of {pattern.name}: {list(pattern.roots)}"
        if pattern.min_opset > self.main_opset:
            return (
                f"{pattern.name} needs opset {pattern.min_opset}, the graph has {self.main_opset}"
            )
        attempt = pattern.attempt(self, node)
        return attempt.reason if attempt.match is None else attempt.match.to_string(short=False)

    def possible_patterns(self) -> list[PatternOptimization]:
        """The patterns that may match the graph: it has their roots, and the other operators they
        need."""
        dispatch, patterns = self._dispatch, self._running
        ranks = dispatch.starting_from(Sweep(self.store), every_reason=False)
        possible = dispatch.possible(ranks, patterns, self.store, self.facts)
        return [patterns[rank] for rank in possible]

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
        :param remove_unused: removes dead nodes after each iteration
        :param remove_duplicated_shape: merges equal Shape nodes after each iteration
        :param stop_after: stops after this number of applications, -1 for no limit
        :param recursive: rewrites subgraphs first, when the optimizer was made recursive
        :param events: changes since the last fixed point: patterns visit the nodes near these
            changes, then near their own, and no other
        :return: rows of statistics
        """
        check_type("max_iter", max_iter, int)
        check_type("stop_after", stop_after, int)
        self.cleaning = Cleaning(remove_identity, remove_unused, remove_duplicated_shape)
        rows: list[Row] = []
        if recursive and self.recursive:
            rows.extend(self._optimize_subgraphs(max_iter, stop_after))
            stop_after = still_allowed(stop_after, count_instances(rows))
        steps = remove_identity, remove_unused, remove_duplicated_shape
        found = undo_if_endless(
            self,
            lambda: self._run(max_iter, stop_after, events),
            lambda names: self._on(self.graph, names).optimize(max_iter, *steps, stop_after, False),
        )
        return complete_rows(rows + (found or self.statistics.rows))

    def _run(self, max_iter: int, stop_after: int, events: Sequence[StoreEvent] | None) -> None:
        """Runs the loop on this graph, between both notifications."""
        with attached(self.graph, self.features):
            self._known_callbacks = {}
            self.notify("begin", self)
            self.cleaning.before(self.graph)
            known = list(self.graph.functions)
            with self._runner.following():
                message = self._loop(max_iter, stop_after, events)
            if not self.keeps_functions:
                self._inline_back(known, max_iter, stop_after)
            self._check_nodes()
            self.store.compact()
            self.notify("end", self, message)

    def run_once(self, rewriters: Sequence[Rewriter]) -> list[Row]:
        """Runs rewriters of whole graphs once, in their order, without looking for a fixed point.

        :return: rows of statistics
        """
        with attached(self.graph, self.features):
            self._known_callbacks = {}
            self.notify("begin", self)
            done = self._runner.run_all(0, rewriters)
            self.notify("end", self, f"{count_applied(done)} rewrites")
        return complete_rows(self.statistics.rows)

    def run_within(
        self, engine: Engine, events: Sequence[StoreEvent] | None = None
    ) -> list[Application]:
        """Runs the loop inside the run of another engine on the same graph. The features attached
        to the graph are notified of this run as well.

        :param engine: the other engine
        :param events: changes since the last fixed point, see :meth:`optimize`
        :return: the applications
        """
        self.cleaning = engine.cleaning
        applied = Applied()
        uses = [f for f in self.features if isinstance(f, UseDetector)]
        with attached(self.graph, [applied, *uses]):
            self._known_callbacks = {}
            for detector in uses:
                detector.begin(self)
            with self._runner.following():
                self._loop(-1, engine.left, events)
        self.store.compact()
        return applied.done

    def _inline_back(self, known: Collection[FunctionKey], max_iter: int, stop_after: int) -> None:
        """Inlines back the intermediate functions no pattern took, then runs the patterns again."""
        changes = Worklist(self.store)
        begin, size = time.perf_counter(), len(self.store)
        with changes:
            calls = inline_back(self.graph, known)
        if calls:
            added = len(self.store) - size + calls
            self.statistics.inlined_back(calls, added, time.perf_counter() - begin)
        if calls and stop_after < 0:
            self._loop(max_iter, -1, changes.events)

    def _optimize_subgraphs(self, max_iter: int, stop_after: int) -> list[Row]:
        rows: list[Row] = []
        for record in list(self.store.nodes):
            for child in children_of(self.graph, record).values() if record.captured else ():
                inner = self._on(child)
                before = child.store.generation
                left = still_allowed(stop_after, count_instances(rows))
                rows.extend(inner.optimize(max_iter, stop_after=left))
                if record.alive and child.store.generation != before:
                    record = write_back(self.graph, record)
        return rows

    def _callbacks(self, event: str) -> list[Callable[..., Any]]:
        """The callbacks of the attached features for an event."""
        if event not in self._known_callbacks:
            self._known_callbacks[event] = callbacks_of(features_of(self.graph), Observer, event)
        return self._known_callbacks[event]

    def notify(self, event: str, *args: Any) -> None:
        """See :class:`Engine`."""
        for callback in self._callbacks(event):
            callback(*args)

    def _on(self, child: Graph, without: Collection[str] = ()) -> GraphBuilderPatternOptimization:
        """The same optimizer for a subgraph, without some rewrites."""
        return GraphBuilderPatternOptimization(
            child,
            [r for r in self._selection if r.name not in without] if without else self._selection,
            True,
            processor=self.processor,
            features=self.users,
            on_failure=self.on_failure,
            final=self.final,
            cleanup=self.cleanup,
            max_use_ratio=self.max_use_ratio,
            checks=self.checks,
        )

    # -- the loop

    def _loop(self, max_iter: int, stop_after: int, events: Sequence[StoreEvent] | None) -> str:
        dispatch, patterns = self._dispatch, self._running
        if not dispatch.is_for(self.main_opset, self.keeps_functions):
            dispatch = dispatch_of(self._selection, self.main_opset, self.keeps_functions)
            patterns = self.patterns.part(dispatch.running)
        if not patterns and not self.rewriters and not self.final:
            return "no pattern"
        near = None if events is None else self.worklist.neighbourhood(events)
        shared = self._shared_plan
        every_reason = has_listeners(patterns) if shared is None else shared.is_listened
        schedule = Schedule(self.store, dispatch, patterns, near, every_reason, self.facts)
        limit = max_iter if max_iter >= 0 else FREE_ITERATIONS + 2 * len(self.store)
        self.left, size = stop_after, len(self.store)
        done = self._runner.run_all(0, self.rewriters, self.cleanup) if events is None else []
        applied, last = count_applied(done), names_of_applied(done)
        del done
        for i in range(limit):
            self.notify("iteration", self, i, schedule.priority)
            new = self._iterate(i, schedule)
            if new is None:
                return f"fixed point after {i + 1} iterations, {applied} rewrites"
            applied += count_applied(new)
            if stop_after >= 0 and applied >= stop_after:
                return f"stopped after {applied} rewrites"
            if not new:
                continue
            last = names_of_applied(new)
            for stops in self._callbacks("stops"):
                reason: str = stops(self.graph, new)
                if reason:
                    raise_if_endless(stops, reason)
                    warn_user(reason)
                    return reason
            del new  # its matches hold as much memory as the nodes they changed
        if max_iter < 0:
            report_no_fixed_point(limit, last, len(self.store) > size)
        return f"stopped after {limit} iterations, {applied} rewrites"

    def _iterate(self, i: int, schedule: Schedule) -> list[Application] | None:
        """Runs one iteration: the patterns, or the rewriters of whole graphs if no pattern matches.
        Returns None at the fixed point."""
        matches = self._match(i, schedule)
        if matches:
            schedule.found()
            done = self._apply(i, matches if self.left < 0 else matches[: self.left])
            schedule.changed(len(done), self.worklist)
            more = self._runner.run_all(i, self.cleanup)
            if more:
                schedule.restart()
            return [*done, *more]
        if schedule.found_nothing():
            return []
        return None if schedule.is_confirmed else self._run_rewriters(i, schedule)

    def _run_rewriters(self, i: int, schedule: Schedule) -> list[Application] | None:
        """Runs the rewriters of whole graphs when no pattern matches. Returns None when they change
        nothing either."""
        with Worklist(self.store) as changes:
            done = self._runner.run_all(i, self.final, self.cleanup)
            done += self._runner.run_all(i, self.rewriters, self.cleanup)
            if not done:
                done = self._runner.confirm(i, [*self.final, *self.rewriters], self.cleanup)
        if done:
            schedule.resume(changes)
            return done
        return [] if schedule.confirm() else None

    def _match(self, i: int, schedule: Schedule) -> list[MatchResult]:
        self.store.settle()
        matched = self._look(i, schedule)
        changed = self.guard.changed(schedule.records()) if matched and self.checks else []
        if changed:
            return self._find_mutating_pattern(
                changed, partial(self._look, i, schedule, is_guarded=True)
            )
        return matched

    def _look(self, i: int, schedule: Schedule, is_guarded: bool = False) -> list[MatchResult]:
        claims = Claims()
        matched: list[MatchResult] = []
        callbacks = self._callbacks("matched")
        looking = schedule.looking()
        watched = self._dispatch.watched if self.checks else set()
        if watched and any(type(pattern) in watched for pattern, _ in looking):
            self.guard.note(schedule.records(), self.store.producers)
        for pattern, roots in looking:
            run = match_pattern(self, pattern, roots, claims, matched, is_guarded)
            self._failures += run.failures
            for callback in callbacks:
                callback(i, run)
        return matched

    def _find_mutating_pattern(self, changed: list[NodeRecord], again: Callable[[], T]) -> T:
        """Finds the pattern that modified nodes in place, once they are restored. It calls the
        patterns again and checks the nodes after each call.

        :param changed: the nodes
        :param again: calls the patterns
        :return: the result of *again*
        """
        before = self._failures
        result = again()
        if self._failures == before:
            names = ", ".join(p.name for p in self.patterns)
            self.fail(self.patterns[0], mutation_message(f"one of {names}", changed[0]))
        return result

    def _check_nodes(self) -> None:
        """Checks once more, at the end, that patterns did not modify nodes."""

        def again() -> None:
            whole = Sweep(self.store)
            for pattern in self.patterns:
                run = match_pattern(self, pattern, whole, Claims(), [], is_guarded=True)
                self._failures += run.failures

        changed = self.guard.changed()
        if changed:
            self._find_mutating_pattern(changed, again)

    def _apply(self, i: int, matches: list[MatchResult]) -> list[Application]:
        applier = Applier(self)
        done: list[Application] = []
        callbacks = self._callbacks("applied")
        with self.worklist:
            for index, match in enumerate(matches):
                try:
                    application = applier.apply(match)
                except PatternError as e:
                    self.on_failure(e, match.pattern)
                    self.refused.add(refusal_key(match))
                    application = Application(match, refusal=str(e))
                done.append(application)
                for callback in callbacks:
                    callback(self, i, index, application)
            applier.check_order(done)
            for application in done:
                if application.refusal:
                    refuse(self.refused, application)
            begin = time.perf_counter()
            removed = self.cleaning.after(self.graph, done)
        if self.left > 0:
            self.left -= count_applied(done)
        self.store.settle()
        self.notify("cleaned", self, i, removed, time.perf_counter() - begin)
        return done
