"""Findings about a model, the table of their codes, and the checks that give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from onnx import NodeProto, TensorProto

from xbuilder.files.model_container import ModelContainer
from xbuilder.files.tensor_sites import describe_tensor
from xbuilder.graph.graph import Graph
from xbuilder.nested.bodies import children_of
from xbuilder.nodes.record import NodeRecord

from ..reports.node_matching import operator_of

#: severities, worst first
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Code:
    """A kind of finding.

    :param name: its code, `X101`
    :param severity: `error`: the model does not run as it is; `warning`: something costs or
        surprises; `note`: good to know
    :param title: the kind in a few words
    :param patterns: names of the rewrites, or sets of them, that mend it
    :param cleaned: whether importing and exporting the model mends it

    Example::

        >>> CODES["X103"].title, CODES["X103"].patterns, CODES["X103"].is_mended
        ('a chain of Cast', ('CastCast',), True)
    """

    name: str
    severity: str
    title: str
    patterns: tuple[str, ...] = ()
    cleaned: bool = False

    @property
    def is_mended(self) -> bool:
        """Whether ``--fix`` may mend it."""
        return self.cleaned or bool(self.patterns)


#: the rewrites that write operators with a kernel instead of others
LOWERING = "fix"
#: codes of nodes that do not run
NO_KERNEL = frozenset({"X002", "X003", "X006", "X008"})
#: every kind of finding by code
CODES = {
    code.name: code
    for code in (
        Code("X000", "error", "the model cannot be imported"),
        Code("X001", "error", "onnx.checker refuses the model"),
        Code("X002", "error", "no kernel"),
        Code("X003", "error", "unknown operator"),
        Code("X004", "note", "an operator runs as its definition"),
        Code("X005", "note", "an operator runs in float between casts"),
        Code("X006", "error", "no kernel, a rewrite writes operators that have one", (LOWERING,)),
        Code("X007", "error", "an unknown element type"),
        Code("X008", "error", "an operator refuses its inputs or its attributes", (LOWERING,)),
        Code("X009", "error", "a declared type is wrong", cleaned=True),
        Code("X010", "error", "the runtime does not support an opset"),
        Code("X101", "warning", "a size is frozen"),
        Code("X102", "warning", "a weight is there twice", cleaned=True),
        Code("X103", "warning", "a chain of Cast", ("CastCast",)),
        Code("X104", "note", "a constant float16 cannot hold"),
        Code("X105", "note", "int64 where int32 is enough"),
        Code("X106", "warning", "something unused", cleaned=True),
        Code("X107", "warning", "a declared shape is wrong", cleaned=True),
        Code("X108", "warning", "a locale has to be installed"),
        Code("X109", "warning", "a reduction may lose updates"),
    )
}


@dataclass(frozen=True)
class Finding:
    """One finding.

    :param code: its code, a key of :data:`CODES`
    :param where: the node, weight, input it is about, empty for the whole model
    :param message: what was found
    :param advice: what to do, empty if there is nothing to do
    :param fixable: whether ``--fix`` mends it, which was tried

    Example::

        >>> finding = Finding("X106", "weight 'w'", "nothing reads it", fixable=True)
        >>> finding.severity, finding.to_row()["fixable"]
        ('warning', True)
    """

    code: str
    where: str
    message: str
    advice: str = ""
    fixable: bool = False

    @property
    def severity(self) -> str:
        """The severity of its code."""
        return CODES[self.code].severity

    def to_row(self) -> dict[str, Any]:
        """The finding as a dictionary, with its severity."""
        return {**asdict(self), "severity": self.severity}


@dataclass
class CheckedModel:
    """A model under examination.

    :param container: the model as it is in its file
    :param graph: the same with its types and shapes, functions inlined; None if it is refused
    :param processors: processors the model is meant for
    :param path: its file, None for a model in memory
    :param warnings: what the import said about it
    """

    container: ModelContainer
    graph: Graph | None
    processors: tuple[str, ...]
    path: str | None = None
    warnings: tuple[str, ...] = ()

    @cached_property
    def nodes(self) -> list[tuple[Graph, NodeRecord, NodeProto]]:
        """Every node, those of bodies included, with the graph it is in."""
        return [] if self.graph is None else list(nodes_of(self.graph))


def nodes_of(graph: Graph) -> Iterator[tuple[Graph, NodeRecord, NodeProto]]:
    """Every node of a graph, those of bodies included, with the graph it is in."""
    for record in graph.store.nodes:
        yield graph, record, graph.store.proto(record)
        for child in children_of(graph, record).values():
            yield from nodes_of(child)


#: looks for some kinds of findings
Check = Callable[[CheckedModel], Iterator[Finding]]
#: every check, in the order of the report
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Adds a check to those of :func:`xoptim.linting.model_check.check_model`."""
    CHECKS.append(function)
    return function


def node_title(node: NodeProto) -> str:
    """A node as a reader finds it in the file: operator and name, or first result."""
    result = next((name for name in node.output if name), "")
    return f"{operator_of(node)} {node.name or result!r}"


def weight_name(tensor: TensorProto) -> str:
    """A weight as a reader finds it in the file."""
    return describe_tensor(tensor)
