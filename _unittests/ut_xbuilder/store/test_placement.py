"""Where new nodes go."""

from __future__ import annotations

import pytest
from ut_xbuilder.store.test_graph_store import chain, node

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.placement import choose_anchor, fits, is_out_of_order


def records(*rows: tuple[list[str], str]) -> list[NodeRecord]:
    return [NodeRecord(node("Sum", inputs, [output]), 0, 0) for inputs, output in rows]


def gone_of(store: GraphStore, *names: str) -> set[NodeRecord]:
    return {store.producers[n] for n in names}


@pytest.mark.parametrize(
    "inputs,place,expected",
    [
        (["r0"], "r1", True),
        (["r0"], "r2", True),
        (["r3"], "r2", False),  # it reads what comes later
        (["r0"], "r4", False),  # its reader, r3, comes before
        (["r2", "r0"], "r2", False),  # it reads its own result
    ],
)
def test_fits(inputs: list[str], place: str, expected: bool) -> None:
    store = chain(6)
    gone = gone_of(store, "r1", "r2")
    new = records((inputs, "r2"))
    order = store.producers[place].order
    assert fits(order, gone, new, store.producers, store.consumers) is expected


@pytest.mark.parametrize(
    "gone,inputs,output,expected",
    [
        (["r1", "r2"], ["r0"], "r2", "r2"),
        (["r2", "r4"], ["r1"], "r2", "r2"),  # r4 stands after a reader of r2
        (["r1", "r2"], ["r5"], "other", "r5"),  # after what it reads, which stays
        ([], [], "other", None),
    ],
)
def test_choose_anchor(
    gone: list[str], inputs: list[str], output: str, expected: str | None
) -> None:
    store = chain(6)
    new = records((inputs, output))
    anchor = choose_anchor(gone_of(store, *gone), new, store.producers, store.consumers)
    assert (None if anchor is None else anchor.outputs[0]) == expected


def test_is_out_of_order() -> None:
    store = chain(4)
    first, last = store.producers["r1"], store.producers["r2"]
    assert not is_out_of_order(store.nodes, store.producers, store.consumers)
    first.order, last.order = last.order, first.order
    assert is_out_of_order([first], store.producers, store.consumers)
    assert is_out_of_order([last], store.producers, store.consumers)
    assert not is_out_of_order([], store.producers, store.consumers)
