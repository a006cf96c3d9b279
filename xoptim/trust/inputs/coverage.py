"""The bodies of a model that run on some inputs: branches of If, bodies of loops, functions.

Their nodes are given names of their own, and onnxruntime writes in a profile those it runs.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx.helper as oh
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from xbuilder.errors import XoptimError
from xbuilder.files.writing.temporary_files import temporary_folder
from xbuilder.nodes.functions import all_nodes
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.operators.opsets import opsets_of

from ..sessions.runtime import Model, Opener, VerificationError, container_of

#: opset of the marks of a model that has no operator of onnx
_OPSET = 18
_MARK = re.compile(r"xoptim_body_(\d+)_")


@dataclass(frozen=True)
class Body:
    """A subgraph or a local function.

    :param number: its position in the model, outer ones first
    :param name: `then_branch of If_0`, `function domain.name`
    :param parent: number of the body it is in, -1 for none
    :param in_function: it is in a local function, or is one: results may have other names elsewhere
    :param results: the results its nodes compute, at any depth
    :param nodes: number of its nodes, at any depth
    """

    number: int
    name: str
    parent: int
    in_function: bool
    results: frozenset[str] = field(repr=False)
    nodes: int


def mark_bodies(model: ModelProto) -> tuple[ModelProto, list[Body]]:
    """Copies a model and names the nodes of its bodies after the body.

    :return: the copy, the bodies
    """
    marked = ModelProto()
    marked.CopyFrom(model)
    bodies: list[Body] = []
    _mark_nodes(marked.graph.node, -1, bodies)
    main = {o.domain for o in marked.opset_import}
    if bodies and main.isdisjoint({"", "ai.onnx"}):
        marked.opset_import.append(oh.make_opsetid("", _OPSET))
    for function in marked.functions:
        if all(o.domain not in ("", "ai.onnx") for o in function.opset_import):
            function.opset_import.append(oh.make_opsetid("", opsets_of(marked).get("", _OPSET)))
        name = f"function {function.domain}.{function.name}"
        _mark_body(function.node, name, -1, bodies)
    return marked, bodies


def bodies_of(model: ModelProto) -> bool:
    """Whether a model has subgraphs or local functions."""
    return bool(model.functions) or any(any(subgraphs_of(node)) for node in model.graph.node)


def _mark_nodes(nodes: Iterable[NodeProto], parent: int, bodies: list[Body]) -> None:
    for node in nodes:
        owner = node.name or next(filter(None, node.output), node.op_type)
        for attribute in node.attribute:
            graphs: list[GraphProto] = [*attribute.graphs]
            if attribute.HasField("g"):
                graphs.append(attribute.g)
            for graph in graphs:
                _mark_body(graph.node, f"{attribute.name} of {owner}", parent, bodies)


def _mark_body(nodes: Any, name: str, parent: int, bodies: list[Body]) -> None:
    inside = all_nodes(nodes)
    results = frozenset(name for node in inside for name in node.output if name)
    number = len(bodies)
    inner = bodies[parent].in_function if parent >= 0 else name.startswith("function ")
    bodies.append(Body(number, name, parent, inner, results, len(inside)))
    _mark_nodes(nodes, number, bodies)
    for i, node in enumerate(nodes):
        node.name = f"xoptim_body_{number}_{i}_"
    # a node that always runs: calls of functions are inlined, constants are not in a profile
    mark = f"xoptim_mark_{number}"
    value = oh.make_tensor(mark, TensorProto.BOOL, [1], [True])
    made = oh.make_node("Constant", [], [f"{mark}_value"], value=value)
    nodes.extend([made, oh.make_node("Identity", [f"{mark}_value"], [mark])])
    nodes[-1].name = f"xoptim_body_{number}_mark_"


class Coverage:
    """The bodies of a model that ran, and those that did not.

    A body that only holds constants has nothing to run.

    :param opener: opens the sessions
    :param model: the model

    ::

        coverage = Coverage(opener, model)
        coverage.measure([feeds])
        print([body.name for body in coverage.never_ran()])
    """

    def __init__(self, opener: Opener, model: Model):
        self._opener = opener
        self._model = copy.copy(container_of(model))  # the same weights
        self.marked, self.bodies = mark_bodies(self._model.proto)
        self._model.proto = self.marked
        self.ran: set[int] = set()
        self._awaited = {n for n in _marks(self.marked) if n >= 0}

    @property
    def is_complete(self) -> bool:
        """Whether every body ran."""
        return self._awaited <= self.ran

    def measure(self, sets: Sequence[Mapping[str, Any]]) -> list[set[int]]:
        """Runs the model and records the bodies that run.

        :param sets: inputs the model accepts, otherwise nothing is recorded
        :return: for each set, the numbers of the bodies
        """
        found: list[set[int]] = [set() for _ in sets]
        if not sets:
            return found
        with temporary_folder(tempfile.gettempdir(), "xoptim") as folder:
            prefix = str(Path(folder) / "profile")
            with contextlib.suppress(OSError, ValueError, VerificationError):
                session = self._opener.open(self._model, "first", profile=prefix)
                for feeds in sets:
                    session.run(feeds)
                events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
                for i, numbers in enumerate(_numbers(events)):
                    found[i] = numbers
                session.close()
        self.ran.update(*found)
        return found

    def never_ran(self) -> list[Body]:
        """The outermost bodies that did not run, except those the passes alone remove: their
        conditions are known, they cannot run."""
        missing = self._awaited - self.ran
        if missing:
            missing &= self._alive()
        return [b for b in self.bodies if b.number in missing and b.parent not in missing]

    def _alive(self) -> set[int]:
        """The bodies that are left when the model is optimized without any pattern."""
        from xbuilder import GraphBuilder, OptimizationOptions  # every body runs, most often

        try:
            options = OptimizationOptions(patterns=None)
            builder = GraphBuilder(
                self.marked, infer_shapes_options=True, optimization_options=options
            )
            return _marks(builder.to_onnx(inline=False))
        except XoptimError:
            return set(self._awaited)


@dataclass(frozen=True)
class Unverified:
    """A body that no set of inputs runs.

    :param body: its name
    :param rewrites: number of rewrites in it, None if they were not recorded
    :param right: number of these rewrites that are right in their own window
    """

    body: str
    rewrites: int | None = None
    right: int = 0

    def __str__(self) -> str:
        if self.rewrites is None:
            return f"{self.body} never ran: nothing in it is verified"
        if not self.rewrites:
            return f"{self.body} never ran: no rewrite is in it"
        if self.rewrites == 1:
            text = f"{self.body} never ran: 1 rewrite in it is not verified"
            return text + (" by a run, it is right in its own window" if self.right else "")
        text = f"{self.body} never ran: {self.rewrites} rewrites in it are not verified"
        if not self.right:
            return text
        if self.right == self.rewrites:
            return f"{text} by a run, each is right in its own window"
        return f"{text} by a run, {self.right} of them are right in their own window"


def unverified(
    bodies: Iterable[Body],
    rewrites: Iterable[Collection[str]] | None = None,
    right: Sequence[bool] = (),
) -> list[Unverified]:
    """Counts the rewrites in the bodies that never ran.

    :param bodies: the bodies
    :param rewrites: for each rewrite, the results of the nodes it removes and writes
    :param right: whether each of them is right in its own window, none is if it is empty
    """
    known = None if rewrites is None else list(rewrites)
    found = []
    for body in bodies:
        inside = [i for i, names in enumerate(known or ()) if not body.results.isdisjoint(names)]
        unknown = known is None or (known and not inside and body.in_function)
        checked = sum(right[i] for i in inside) if right else 0
        found.append(Unverified(body.name, None if unknown else len(inside), checked))
    return found


def _numbers(events: Iterable[Mapping[str, Any]]) -> Iterator[set[int]]:
    """The bodies each run went through, from the events of a profile."""
    nodes = []
    runs = []
    for event in events:
        if event.get("name") == "model_run":
            runs.append((event["ts"], event["ts"] + event["dur"]))
        elif event.get("cat") == "Node":
            nodes += [(event["ts"], int(n)) for n in _MARK.findall(event["name"])]
    for begin, end in sorted(runs):
        yield {number for time, number in nodes if begin <= time <= end}


def _marks(model: ModelProto) -> set[int]:
    """The numbers of the bodies that have a node to run."""
    nodes = all_nodes([*model.graph.node, *(n for f in model.functions for n in f.node)])
    return {
        int(number)
        for node in nodes
        if node.op_type != "Constant" and not node.name.endswith("mark_")
        for number in _MARK.findall(node.name)
    }
