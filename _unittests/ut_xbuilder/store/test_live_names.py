"""Names of results that are remembered as long as a node gives them."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.graph.graph_check import check_graph
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.live_names import LiveNames


def store_of(*names: str) -> GraphStore:
    """x -> the first name -> the second one ..."""
    store = GraphStore([names[-1]])
    for source, result in zip(("x", *names), names, strict=False):
        store.append(oh.make_node("Neg", [source], [result]))
    return store


def test_a_result_goes() -> None:
    store, names = store_of("a", "b", "c", "d"), LiveNames(["a", "b", "c"])
    store.subscribe(names)
    store.redirect("b", "a", [store.producers["b"]])
    assert names == {"a", "c"}
    store.replace([store.producers[n] for n in "ac"], [oh.make_node("Abs", ["x"], ["c"])])
    assert names == {"c"}


def test_a_result_is_renamed() -> None:
    store, names = store_of("a", "b"), LiveNames(["a"])
    store.subscribe(names)
    store.rename_result("a", "z")
    assert names == {"z"}
    store.rename_result("b", "y")
    assert names == {"z"}


def test_what_does_not_listen_is_seen() -> None:
    builder = GraphBuilder(parse("g (float[N] x) => (float[N] y) { a = Neg(x) y = Neg(a) }"))
    builder.graph.notes[LiveNames].update("a")
    check_graph(builder.graph)
    builder.store.redirect("a", "x", [builder.store.producers["a"]])
    with pytest.raises(PatternError, match="the LiveNames"):
        check_graph(builder.graph)
