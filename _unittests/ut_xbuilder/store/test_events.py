"""The events of a store are enough to replay its changes on a copy."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto
from ut_xbuilder.store.test_graph_store import ACTIONS, Editor, chain, node, subgraph_node

from xbuilder.errors import InvalidModelError, PatternError
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.events import StoreEvent
from xbuilder.store.graph_store import GraphStore


class Replay:
    """A listener of a user: does on a copy what it is told of the original."""

    def __init__(self, store: GraphStore):
        self.copy = GraphStore(store.outputs)
        self.twins: dict[NodeRecord, NodeRecord] = {}
        for record in store.nodes:
            self.twins[record] = self.copy.append(self.proto(store, record))
        self.store = store
        self.events = 0
        store.subscribe(self)

    @staticmethod
    def proto(store: GraphStore, record: NodeRecord) -> NodeProto:
        copy = NodeProto()
        copy.CopyFrom(store.proto(record))
        return copy

    def store_changed(self, event: StoreEvent) -> None:
        self.events += 1
        copy, twins = self.copy, self.twins
        removed = [twins.pop(r) for r in event.removed]
        protos = [self.proto(self.store, r) for r in event.added]
        if event.renamed is not None:
            copy.rename_result(*event.renamed, *removed)
        elif event.redirected is not None:
            copy.redirect(*event.redirected, removed)
        elif event.outputs is not None:
            copy.keep_outputs(event.outputs)
        elif event.order is not None:
            copy.sort({twins[r]: i for i, r in enumerate(event.order)})
        elif not removed and event.anchor is None:
            added = [copy.append(p, event.position) for p in protos]
            twins.update(zip(event.added, added, strict=True))
        elif not protos and event.lost:
            for record in removed:
                copy.detach(record)
        else:
            gone = dict(zip(event.removed, removed, strict=True))
            anchor = event.anchor and (gone.get(event.anchor) or twins[event.anchor])
            added = copy.replace(removed, protos, anchor)
            twins.update(zip(event.added, added, strict=True))


def text(store: GraphStore) -> list[str]:
    """The nodes in graph order, subgraphs included, and the outputs."""
    rows = [store.proto(r).SerializeToString(deterministic=True).hex() for r in store.nodes]
    return [*rows, *store.outputs]


class Rewriter(Editor):
    """Random edits, those that take an Identity away at once among them."""

    def identity(self, output: str = "") -> NodeRecord:
        return self.store.append(node("Identity", [self.name()], [output or self.fresh()]))

    def bypass(self) -> None:
        record = self.identity()
        source, result = record.inputs[0], record.outputs[0]
        self.store.append(node("Neg", [result], [self.fresh()]))
        self.store.redirect(result, source, [record])

    def give_its_name(self) -> None:
        source = self.fresh()
        self.store.append(node("Neg", ["x"], [source]))
        record = self.store.append(node("Identity", [source], [self.fresh()]))
        self.store.rename_result(source, record.outputs[0], instead_of=record)

    def detach(self) -> None:
        self.store.detach(self.identity())

    def extend(self) -> None:
        self.store.extend(self.make(self.names(), self.fresh()) for _ in range(3))

    def outputs(self) -> None:
        self.store.add_outputs([self.identity().outputs[0]])

    def fewer_outputs(self) -> None:
        self.store.keep_outputs(["out"])


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**31),
    st.lists(
        st.sampled_from(
            [*ACTIONS, *["bypass", "give_its_name", "detach", "extend", "outputs", "fewer_outputs"]]
        ),
        max_size=25,
    ),
)
def test_replay_on_a_copy(seed: int, actions: list[str]) -> None:
    editor = Rewriter(seed)
    replay = Replay(editor.store)
    for action in actions:
        getattr(editor, action)()
        assert text(replay.copy) == text(editor.store)
    replay.copy.check()


class Recorder:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[StoreEvent] = []

    def store_changed(self, event: StoreEvent) -> None:
        self.events.append(event)


def test_each_change_is_told_once() -> None:
    store = chain(6)
    recorder = Recorder()
    store.subscribe(recorder)
    store.subscribe(recorder)

    def told() -> StoreEvent:
        (event,) = recorder.events
        recorder.events.clear()
        return event

    record = store.append(node("Neg", ["x"], ["a"]))
    assert told().added == (record,)
    records = store.extend([node("Neg", ["x"], ["b"]), node("Neg", ["b"], ["c"])])
    assert list(told().added) == records
    removed = [store.producers["r1"], store.producers["r2"]]
    added = store.replace(removed, [node("Abs", ["r0"], ["d"]), node("Exp", ["d"], ["r2"])])
    event = told()
    assert (event.removed, event.added) == (removed, added)
    assert (list(event.lost), event.anchor) == (["r1"], removed[1])
    store.detach(records[1])
    assert told().lost == ("c",)
    store.redirect("x", "y")
    assert told().redirected == ("x", "y")
    store.rename_result("r2", "e")
    event = told()
    assert event.renamed == ("r2", "e") and not event.lost
    store.add_outputs(["e"])
    assert told().outputs == ("r5", "e")
    store.keep_outputs(["r5"])
    assert told().outputs == ("r5",)
    store.unsubscribe(recorder)
    store.append(node("Neg", ["x"], ["z"]))
    assert not recorder.events


def test_what_changes_nothing_is_not_told() -> None:
    store = chain()
    recorder = Recorder()
    store.subscribe(recorder)
    store.redirect("nothing", "x")
    store.sort()
    with pytest.raises(PatternError):
        store.replace([store.producers["r1"]], [])
    with pytest.raises(InvalidModelError):
        store.append(node("Neg", ["x"], ["r1"]))
    with pytest.raises(PatternError, match="is produced"):
        store.rename_result("r1", "r2", instead_of=store.producers["r3"])
    assert not recorder.events and not store.extend([])
    store.check()


def test_a_listener_sees_the_new_graph() -> None:
    """The store is consistent again when it tells a change."""
    store = chain()

    class Checker:
        def store_changed(self, event: StoreEvent) -> None:
            store.check()
            assert all(name not in store.producers for name in event.lost)
            assert all(r.alive for r in event.added) and not any(r.alive for r in event.removed)

    store.subscribe(Checker())
    store.append(subgraph_node(["r1", "r2"], ["s"]))
    store.replace([store.producers["r1"]], [node("Abs", ["r0"], ["r1"])])
    store.rename_result("r1", "other")


def test_an_identity_gives_its_name() -> None:
    """The Identity goes, its name stays: it is not lost."""
    store = GraphStore(["y"])
    store.append(node("Neg", ["x"], ["a"]))
    record = store.append(node("Identity", ["a"], ["y"]))
    recorder = Recorder()
    store.subscribe(recorder)
    store.rename_result("a", "y", instead_of=record)
    (event,) = recorder.events
    assert event.removed == (record,) and event.lost == () and event.renamed == ("a", "y")
    assert [repr(r) for r in store.nodes] == ["Neg(x) -> y"]
    store.check()


def test_nodes_to_keep() -> None:
    """A name to keep follows its result, and goes with it."""
    store = chain()
    store.pinned.update(["r0", "r1"])
    store.rename_result("r0", "a")
    assert store.pinned == {"a", "r1"}
    store.replace([store.producers["r1"]], [node("Abs", ["a"], ["r1"])])
    assert store.pinned == {"a", "r1"}
    two = [store.producers["r1"], store.producers["r2"]]
    store.replace(two, [node("Abs", ["a"], ["r2"])])
    assert store.pinned == {"a"}


def test_a_sort_is_told() -> None:
    store = GraphStore(["b"])
    recorder = Recorder()
    store.append(node("Neg", ["a"], ["b"]))
    store.append(oh.make_node("Neg", ["x"], ["a"]))
    store.subscribe(recorder)
    names = [r.outputs[0] for r in store.nodes]
    (event,) = recorder.events
    assert event.order is not None
    assert [r.outputs[0] for r in event.order] == names == ["a", "b"]
