"""Nodes near the last changes."""

from __future__ import annotations

import onnx.helper as oh

from xbuilder.store.graph_store import GraphStore
from xoptim.engine.worklist import FAN_OUT, RADIUS, Worklist


def chain(n: int) -> GraphStore:
    store = GraphStore([f"r{n - 1}"])
    for i in range(n):
        store.append(oh.make_node("Neg", [f"r{i - 1}" if i else "x"], [f"r{i}"]))
    return store


def near(worklist: Worklist) -> set[str]:
    return {r.outputs[0] for r in worklist.neighbourhood()}


def test_neighbours_of_a_change() -> None:
    store = chain(20)
    worklist = Worklist(store)
    with worklist:
        store.replace([store.producers["r10"]], [oh.make_node("Abs", ["r9"], ["r10"])])
    assert near(worklist) == {f"r{i}" for i in range(10 - RADIUS, 11 + RADIUS)}


def test_it_listens_inside_the_context_only() -> None:
    store = chain(20)
    worklist = Worklist(store)
    store.append(oh.make_node("Neg", ["r5"], ["before"]))
    with worklist:
        pass
    store.append(oh.make_node("Neg", ["r5"], ["after"]))
    assert not near(worklist)
    with worklist:
        store.append(oh.make_node("Neg", ["x"], ["first"]))
    with worklist:
        store.append(oh.make_node("Neg", ["x"], ["second"]))
    assert "second" in near(worklist)


def test_a_removed_node_leaves_its_neighbours() -> None:
    store = chain(20)
    dead = store.append(oh.make_node("Neg", ["r10"], ["dead"]))
    worklist = Worklist(store)
    with worklist:
        store.detach(dead)
    assert near(worklist) >= {"r9", "r10", "r11"} and "dead" not in near(worklist)


def test_a_result_read_everywhere_is_not_followed() -> None:
    store = chain(2)
    for i in range(FAN_OUT + 1):
        store.append(oh.make_node("Neg", ["r0"], [f"s{i}"]))
    worklist = Worklist(store)
    with worklist:
        store.replace([store.producers["r1"]], [oh.make_node("Abs", ["r0"], ["r1"])])
    assert near(worklist) == {"r0", "r1"}


def test_readers_that_moved() -> None:
    """The node in between went: its neighbours are near the change."""
    store = chain(20)
    worklist = Worklist(store)
    with worklist:
        store.redirect("r10", "r9", [store.producers["r10"]])
    assert near(worklist) >= {"r8", "r9", "r11", "r12"} and "r10" not in near(worklist)
