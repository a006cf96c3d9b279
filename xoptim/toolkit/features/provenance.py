"""Records the origin of the nodes of an optimized model: rewrites and first nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx.helper as oh
from onnx import ModelProto, NodeProto

from xbuilder.graph.graph import Graph
from xbuilder.nodes.functions import all_nodes
from xbuilder.nodes.record import NodeRecord

from ...engine.engine import Engine
from ...engine.node_metadata import CHECKS, REWRITES, SOURCES
from ...engine.observers import Observer
from ...engine.outcomes import Application


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a node.

    :param rewrites: names of the rewrites, the first one first
    :param sources: results of the nodes of the first model it replaces
    :param checks: certificates of these rewrites, if they were checked
    """

    rewrites: tuple[str, ...]
    sources: tuple[str, ...]
    checks: tuple[str, ...] = ()


class Provenance(Observer):
    """Records, for each node a rewrite writes, the rewrites and the nodes it replaces.

    Changes of passes (folding, merging of equal nodes) are not recorded. Cost: the nodes of the
    rewrites.

    ::

        provenance = Provenance()
        options = OptimizationOptions(patterns="default", features=[provenance])
        optimized = GraphBuilder(model, optimization_options=options).to_onnx()
        provenance.annotate(optimized)
    """

    def __init__(self) -> None:
        self.origins: dict[str, Origin] = {}

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Gives an origin to every result a rewrite writes, except those of the nodes it keeps."""
        if done.refusal:
            return
        stays = {_signature(r) for r in done.removed}
        removed = [name for r in done.removed if (name := _first(r.outputs))]
        known = [self.origins.get(name) or Origin((), (name,)) for name in removed]
        rewrites = [name for o in known for name in o.rewrites]
        origin = Origin(
            tuple(dict.fromkeys([*rewrites, done.match.pattern.name])),
            tuple(dict.fromkeys(name for o in known for name in o.sources)),
            tuple(dict.fromkeys([*(c for o in known for c in o.checks), *_checks(done)])),
        )
        for record in done.added:
            if _signature(record) not in stays:
                self.origins.update(dict.fromkeys(filter(None, record.outputs), origin))

    def on_rename(self, graph: Graph, old: str, new: str) -> None:
        """Moves the origin to the new name."""
        if old in self.origins:
            self.origins[new] = self.origins.pop(old)

    def origin_of(self, node: NodeProto) -> Origin | None:
        """The origin of a node of the optimized model, None if no rewrite wrote it."""
        found = (self.origins.get(name) for name in node.output if name)
        return next((o for o in found if o is not None), None)

    def rows(self, model: ModelProto) -> list[dict[str, Any]]:
        """A row for each node that a rewrite wrote: `result`, `operator`, `rewrites`, `sources`,
        and `checks` if they were checked.

        :param model: the optimized model
        """
        return [
            {
                "result": _first(node.output),
                "operator": node.op_type,
                "rewrites": list(origin.rewrites),
                "sources": list(origin.sources),
                **({"checks": list(origin.checks)} if origin.checks else {}),
            }
            for node in _nodes(model)
            if (origin := self.origin_of(node)) is not None
        ]

    def annotate(self, model: ModelProto) -> int:
        """Writes the origins in the metadata of the nodes, `xoptim.rewrites`, `xoptim.sources`, and
        `xoptim.checks` if the rewrites were checked.

        :param model: the optimized model, its nodes are changed
        :return: number of nodes
        """
        count = 0
        for node in _nodes(model):
            origin = self.origin_of(node)
            if origin is None:
                continue
            metadata = {p.key: p.value for p in node.metadata_props}
            metadata |= {REWRITES: ", ".join(origin.rewrites), SOURCES: ", ".join(origin.sources)}
            if origin.checks:
                metadata[CHECKS] = "\n".join(origin.checks)
            oh.set_metadata_props(node, metadata)
            count += 1
        return count


def _nodes(model: ModelProto) -> list[NodeProto]:
    """Nodes of the graph, of its subgraphs and of the functions."""
    return all_nodes([*model.graph.node, *(n for f in model.functions for n in f.node)])


def _first(names: Any) -> str:
    return next((str(name) for name in names if name), "")


def _checks(done: Application) -> list[str]:
    """The certificate of a rewrite, nothing if it was not checked."""
    text = done.certificate.get("certificate", "")
    return [f"{done.match.pattern.name}: {text}"] if text else []


def _signature(record: NodeRecord) -> tuple[Any, ...]:
    return record.domain, record.op_type, tuple(record.inputs), tuple(record.outputs)
