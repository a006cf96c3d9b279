"""Subscribers of the engine: statistics, verbosity, checks, dumps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from sys import intern
from typing import Any

import onnx
import onnx.helper as oh

from xbuilder.graph.features import Feature, overrides
from xbuilder.graph.graph import Graph
from xbuilder.graph.graph_check import check_graph
from xbuilder.nodes.subgraphs import node_captures
from xbuilder.nodes.value_infos import value_info
from xbuilder.protos.pretty import pretty_graph, pretty_node

from ..authoring.patterns import Reason
from ..authoring.rewriters import Member
from .engine import Engine
from .outcomes import Application, PatternRun

Row = dict[str, Any]


class Observer(Feature):
    """A feature that is also notified of the steps of the engine; does nothing by itself.

    The statistics, the checks and the detectors of endless runs are observers, as those of a user
    are: `GraphBuilderPatternOptimization(..., features=[...])`.
    """

    def begin(self, engine: Engine) -> None:
        """The optimization starts."""

    def iteration(self, engine: Engine, i: int, priority: int) -> None:
        """An iteration starts."""

    def matched(self, i: int, run: PatternRun) -> None:
        """A pattern visited its roots."""

    def running(self, engine: Engine, i: int, rewriter: Member) -> None:
        """A rewriter of whole graphs starts."""

    def ran(self, engine: Engine, i: int, rewriter: Member, changed: bool) -> None:
        """A rewriter of whole graphs ends, and has changed the graph or not."""

    def replaced(self, engine: Engine, done: Application) -> None:
        """A rewrite took its place in the graph. The observer may refuse it.

        :param engine: the engine
        :param done: the rewrite; its certificate is empty, unless an observer writes one
        :raises PatternError: the rewrite is wrong: it is undone, its pattern is reported
        """

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """A match was applied, or refused."""

    def cleaned(self, engine: Engine, i: int, removed: int, time_in: float) -> None:
        """An iteration ends."""

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        """The reason to stop the optimization after an iteration, empty to continue."""
        return ""

    def end(self, engine: Engine, message: str) -> None:
        """The optimization ends."""


#: steps that an engine takes even if no rewrite applies
_STEPS = ("begin", "iteration", "matched", "running", "ran", "end")


def observes_steps(features: Iterable[Feature]) -> bool:
    """Whether some features are notified of an engine even if no rewrite applies."""
    return any(isinstance(f, Observer) and overrides(f, Observer, *_STEPS) for f in features)


class _AppliedRow:
    """The columns of the row of one application. As attributes, they share their keys with those of
    the other ones: a chain of 100,000 nodes has 45,000 rows.

    :param i: the iteration
    :param index: place of the match in it
    :param done: the application
    """

    def __init__(self, i: int, index: int, done: Application):
        changed = 0 if done.refusal else 1
        self.pattern = intern(f"apply_{done.match.pattern.name}")  # one string for all its rows
        setattr(self, "class", type(done.match.pattern).__name__)
        self.iteration, self.match_index, self.instances = i, index, changed
        self.added, self.removed = len(done.added), len(done.removed)
        self.time_in, self.changed = done.time_in, changed


class Statistics(Observer):
    """Collects rows: one per pattern and iteration, one per application, one per cleaning."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def begin(self, engine: Engine) -> None:
        """Resets the rows."""
        self.rows = []

    def matched(self, i: int, run: PatternRun) -> None:
        """One row `match_<name>`."""
        self.rows.append(
            {
                "pattern": f"match_{run.pattern.name}",
                "iteration": i,
                "instances": len(run.found),
                "visited": run.visited,
                "time_in": run.time_in,
            }
        )

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """One row `apply_<name>`."""
        row: Row = vars(_AppliedRow(i, index, done))
        if done.refusal:
            row["refusal"] = done.refusal
        row.update(done.certificate)
        self.rows.append(row)

    def cleaned(self, engine: Engine, i: int, removed: int, time_in: float) -> None:
        """One row for the cleaning of an iteration."""
        self.rows.append(
            {
                "pattern": "clean_after_patterns",
                "iteration": i,
                "removed": removed,
                "added": 0,
                "time_in": time_in,
            }
        )

    def end(self, engine: Engine, message: str) -> None:
        """Writes in the last row, column `exit_point`, why the run ends."""
        if self.rows:
            self.rows[-1]["exit_point"] = message

    def inlined_back(self, calls: int, nodes: int, time_in: float) -> None:
        """One row for the intermediate functions inlined back after the iterations."""
        self.rows.append(
            {
                "pattern": "inline_back_functions",
                "iteration": max((r["iteration"] for r in self.rows), default=0),
                "instances": calls,
                "removed": calls,
                "added": nodes,
                "time_in": time_in,
                "changed": calls,
            }
        )


class Applied(Observer):
    """Collects the applications."""

    def __init__(self) -> None:
        self.done: list[Application] = []

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Keeps the application unless it was refused."""
        if not done.refusal:
            self.done.append(done)


class Verbose(Observer):
    """Prints the optimization. 1: a line per iteration and the patterns that matched; 10: every
    match, every rejection and the graph before and after."""

    def __init__(self, verbose: int):
        self.verbose = verbose
        self.prefix = "[GraphBuilderPatternOptimization]"

    def begin(self, engine: Engine) -> None:
        """Prints the size of the problem, subscribes to rejections."""
        print(
            f"{self.prefix} start with {len(engine.store)} nodes, "
            f"{len(engine.graph.constants.initializers)} initializers, "
            f"{len(engine.patterns)} patterns"
        )
        if self.verbose >= 10:
            print(pretty_graph(engine.graph))
            for pattern in engine.patterns:
                pattern.listener = self.reject

    def reject(self, reason: Reason) -> None:
        """Prints a rejection."""
        pattern, node, lineno, text = reason
        where = "" if node is None else f" {pretty_node(node)}"
        print(f"{self.prefix}   {pattern.name} refuses{where}: {text} ({pattern.place(lineno)})")

    def iteration(self, engine: Engine, i: int, priority: int) -> None:
        """Prints the iteration."""
        print(f"{self.prefix} iteration {i}: {len(engine.store)} nodes, priority {priority}")

    def matched(self, i: int, run: PatternRun) -> None:
        """Prints the pattern if it matched."""
        if run.found:
            what = "match" if len(run.found) == 1 else "matches"
            print(f"{self.prefix}   {run.pattern.name}: {len(run.found)} {what}")
        if self.verbose >= 10:
            for match in run.found:
                print(f"{self.prefix}     {match.to_string(short=False)}")

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Prints the removed and the new nodes."""
        if self.verbose < 10:
            return
        if done.refusal:
            print(f"{self.prefix}   skip {done.match.to_string()}: {done.refusal}")
            return
        print(f"{self.prefix}   apply {done.match.to_string()}")
        for sign, records in (("-", done.removed), ("+", done.written())):
            for record in records:
                print(f"{self.prefix}     {sign} {record!r}")

    def end(self, engine: Engine, message: str) -> None:
        """Prints the result."""
        print(f"{self.prefix} end with {len(engine.store)} nodes, {message}")
        if self.verbose >= 10:
            print(pretty_graph(engine.graph))
            for pattern in engine.patterns:
                pattern.listener = None


class Verify(Observer):
    """Checks every invariant of the graph and of its facts after each iteration."""

    def cleaned(self, engine: Engine, i: int, removed: int, time_in: float) -> None:
        """Rebuilds the store and compares; tables must only hold live names."""
        check_graph(engine.graph)


class Dump(Observer):
    """Writes each applied match as two small models, before and after.

    :param folder: destination, created if it does not exist
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Writes `<pattern>_<iteration>_<index>_before.onnx` and `_after.onnx`."""
        if done.refusal:
            return
        stem = f"{done.match.pattern.name}_{i:03d}_{index:04d}"
        for suffix, records in (("before", done.removed), ("after", done.written())):
            model = small_model(engine.graph, [r._proto for r in records], f"{stem}_{suffix}")
            onnx.save(model, self.folder / f"{stem}_{suffix}.onnx")


def small_model(graph: Graph, nodes: list[onnx.NodeProto], name: str) -> onnx.ModelProto:
    """A model made of a few nodes. Their outer inputs and their outputs are its own."""
    made = {o for n in nodes for o in n.output if o}
    read = [i for n in nodes for i in (*n.input, *node_captures(n)) if i]
    inputs = [n for n in dict.fromkeys(read) if n not in made]
    infos: dict[str, onnx.ValueInfoProto] = {}
    for n in (*inputs, *made):
        info = value_info(n, graph.facts[n], lambda d: True)
        infos[n] = oh.make_empty_tensor_value_info(n) if info is None else info
    outputs = [n for n in made if n not in read] or list(made)
    proto = oh.make_graph(nodes, name, [infos[n] for n in inputs], [infos[n] for n in outputs])
    opsets = [oh.make_opsetid(d, v) for d, v in graph.opsets.items()]
    return oh.make_model(proto, opset_imports=opsets, ir_version=graph.ir_version)
