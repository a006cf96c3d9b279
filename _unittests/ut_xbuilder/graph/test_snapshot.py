"""A graph comes back to what it was, byte for byte."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh

from xbuilder import GraphBuilder
from xbuilder.graph.graph import Graph
from xbuilder.graph.graph_check import check_graph
from xbuilder.graph.snapshot import Snapshot
from xbuilder.protos.exporting import export_graph
from xbuilder.store.events import StoreEvent
from xoptim.testing import model_from_text

TEXT = """agraph (float[a, 4] X) => (float[a, 4] Y, float[4] W) <float[4] w = {1, 2, 3, 4}> {
    i = Identity(X) two = Add(w, w) n = Mul(i, two) u = Neg(n) v = Neg(u) W = Identity(two)
    Y = Add(v, w) }"""


def state(graph: Graph) -> list[object]:
    """Everything that is known of a graph."""
    constants = graph.constants
    return [
        export_graph(graph).SerializeToString(deterministic=True),
        dict(graph.facts),
        dict(graph.facts.origins),
        list(graph.facts.constraints.items()),
        sorted(graph.opsets.items()),
        set(graph.store.pinned),
        list(constants.initializers),
        {name: repr(record) for name, record in constants.computed.items()},
        {name: constants.value(name) is None for name in constants.computed},
    ]


def test_constants_come_back() -> None:
    builder = GraphBuilder(model_from_text(TEXT))
    graph, constants = builder.graph, builder.graph.constants
    assert constants.value("two") is not None
    before, snapshot = state(graph), Snapshot(graph)
    constants.change_initializer("w", np.array([1.0, 1.0], np.float32))
    shared = graph.make_initializer("", np.array([7], np.int64))
    constants.sources[shared] = "test"
    graph.add_domain("new.domain")
    graph.facts.constraints.add_equal("a", "b", "test")
    graph.store.pinned.add("n")
    snapshot.restore()
    assert state(graph) == before
    value = constants.value("two")
    assert value is not None and value.tolist() == [2, 4, 6, 8]
    assert constants.shared_name(np.array([7], np.int64)) == "", "it is not there any more"
    check_graph(graph)


def test_inputs_and_outputs_come_back() -> None:
    builder = GraphBuilder(model_from_text(TEXT))
    graph = builder.graph
    before, snapshot = state(graph), Snapshot(graph)
    builder.select_outputs([False, True])
    graph.output_specs[0].name = "other"
    graph.input_specs[0].doc_string = "changed"
    builder.remove_unused()
    snapshot.restore()
    assert state(graph) == before
    assert builder.output_names == ["Y", "W"]


def test_nodes_that_did_not_change_stay() -> None:
    """One event tells the rest, the order is that of before."""
    builder = GraphBuilder(model_from_text(TEXT))
    store, events = builder.store, []

    class Recorder:
        def store_changed(self, event: StoreEvent) -> None:
            events.append(event)

    snapshot, records = Snapshot(builder.graph), list(store.nodes)
    store.replace([store.producers["u"]], [oh.make_node("Abs", ["n"], ["u"])])
    store.append(oh.make_node("Exp", ["X"], ["late"]), 0)
    store.subscribe(Recorder())
    snapshot.restore()
    (event,) = [e for e in events if e.order is None]
    assert [r.op_type for r in event.removed] == ["Abs", "Exp"]
    assert [r.op_type for r in event.added] == ["Neg"]
    assert [a is b for a, b in zip(store.nodes, records, strict=True)].count(False) == 1
    events.clear()
    snapshot.restore()
    assert events == [], "nothing changed since"
