"""A stable topological sort."""

from __future__ import annotations

import random

import pytest
from ut_xbuilder.store.test_graph_store import chain, node

from xbuilder.store.cycles import CycleError
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.sorting import sorted_nodes


def test_sorted_nodes_stay() -> None:
    store = chain(8)
    assert sorted_nodes(store.nodes, store.producers, store.consumers) == store.nodes


@pytest.mark.parametrize("seed", range(5))
def test_any_order_becomes_topological(seed: int) -> None:
    store = chain(8)
    for i in range(4):
        store.append(node("Neg", [f"r{i}"], [f"s{i}"]))
    nodes = list(store.nodes)
    random.Random(seed).shuffle(nodes)
    ordered = sorted_nodes(nodes, store.producers, store.consumers)
    place = {r: i for i, r in enumerate(ordered)}
    assert set(place) == set(nodes)
    for record in ordered:
        for name in record.reads():
            assert name == "x" or place[store.producers[name]] < place[record]


def test_weights() -> None:
    store = GraphStore(["c"])
    a, b, c = (store.append(node("Neg", ["x"], [name])) for name in "abc")
    assert sorted_nodes([a, b, c], store.producers, store.consumers, {c: -1, a: 1}) == [c, b, a]


def test_a_cycle() -> None:
    store = GraphStore(["b"])
    records = [store.append(node("Neg", ["b"], ["a"])), store.append(node("Neg", ["a"], ["b"]))]
    with pytest.raises(CycleError) as e:
        sorted_nodes(records, store.producers, store.consumers)
    assert set(e.value.records) == set(records)
