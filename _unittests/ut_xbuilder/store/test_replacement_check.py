"""Rules a change of the store must respect."""

from __future__ import annotations

import pytest
from onnx import NodeProto
from ut_xbuilder.store.test_graph_store import chain, node

from xbuilder.errors import InvalidModelError, PatternError
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.replacement_check import check_new_results, check_replacement


def lost(gone: list[str], *added: NodeProto) -> set[str]:
    store = chain(4)
    records = [NodeRecord(proto, 0, 0) for proto in added]
    leaving = {store.producers[n] for n in gone}
    names = check_replacement(leaving, records, store.producers, store.consumers, store.outputs)
    return set(names)


def test_results_that_are_lost() -> None:
    assert lost(["r1"], node("Abs", ["r0"], ["r1"])) == set()
    assert lost(["r1", "r2"], node("Abs", ["r0"], ["r2"])) == {"r1"}
    assert lost(["r2", "r3"], node("Abs", ["r1"], ["r3"]), node("Neg", ["x"], ["z"])) == {"r2"}


@pytest.mark.parametrize(
    "gone,added,reason",
    [
        (["r1"], [], "'r1' is still needed by .* -> r2"),
        (["r3"], [], "'r3' is an output"),
        (["r1"], [("x", "r2"), ("x", "r1")], "'r2' of .* already has a producer"),
        (["r1"], [("x", "r1"), ("x", "r1")], "'r1' of .* already has a producer"),
        (["r1", "r2"], [("r1", "r2")], "reads 'r1' whose producer is removed"),
    ],
)
def test_refused(gone: list[str], added: list[tuple[str, str]], reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        lost(gone, *(node("Abs", [i], [o]) for i, o in added))


def test_new_results() -> None:
    store = chain(2)
    check_new_results(NodeRecord(node("Split", ["x"], ["a", "", "", "b"]), 0, 0), store.producers)
    for names in (["r1"], ["a", "a"]):
        record = NodeRecord(node("Split", ["x"], names), 0, 0)
        with pytest.raises(InvalidModelError, match="produced twice"):
            check_new_results(record, store.producers)
