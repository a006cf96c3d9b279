"""Copies the graph of the engine to `onnx_ir`, for the rules written for that library."""

from __future__ import annotations

from typing import Any

from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.value_infos import value_info
from xbuilder.protos.exporting import export_container

from ..authoring.queries import GraphQueries

#: larger initializers are only read when a rule needs them
READ_LATER = 1024


class IrMirror:
    """A copy of a graph as an `onnx_ir.Model`, made when the graph changed since the last copy.

    Known types and shapes are written in it. The results that a body reads from
    outside are inputs. Cost: O(N), once in an iteration, however many rules there are.

    :raises ImportError: onnxscript is not installed
    """

    def __init__(self, graph: Graph):
        self.generation = graph.store.generation
        container = export_container(graph, READ_LATER)
        proto = container.proto.graph
        described = {i.name for i in (*proto.value_info, *proto.input, *proto.output)}
        described.update(i.name for i in proto.initializer)
        for name in graph.store.producers:
            if name not in described:
                _describe(graph, name, proto.value_info)
        for name in _names_from_outside(graph, described):
            _describe(graph, name, proto.input)
        self.model = container.to_ir()
        _fold_constants(self.model)
        self._nodes = {o.name: node for node in self.model.graph for o in node.outputs if o.name}

    @classmethod
    def of(cls, g: GraphQueries) -> IrMirror:
        """The mirror of the graph in its current state."""
        mirror = g.shared.get(cls)
        if not isinstance(mirror, IrMirror) or mirror.generation != g.store.generation:
            mirror = g.shared[cls] = cls(g.graph)
        return mirror

    def node(self, record: NodeRecord) -> Any:
        """The `onnx_ir.Node` of a node, None if none of its results has a name."""
        return next((self._nodes[o] for o in record.outputs if o in self._nodes), None)


def _describe(graph: Graph, name: str, where: Any) -> None:
    info = value_info(name, graph.facts[name], graph.dimensions.is_written)
    if info is not None:
        where.append(info)


def _names_from_outside(graph: Graph, described: set[str]) -> list[str]:
    """Names of the results that a body reads from outside."""
    if graph.parent is None:
        return []
    known = described | set(graph.store.producers)
    read = dict.fromkeys(n for record in graph.store.nodes for n in record.reads())
    return [n for n in read if n and n not in known]


def _fold_constants(model: Any) -> None:
    """Lets rules see the values of Constant nodes."""
    from onnxscript.optimizer import basic_constant_propagation

    basic_constant_propagation(model.graph)
