"""Nodes that wait for each other."""

from __future__ import annotations

import pytest
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder
from xbuilder.store.cycles import CycleError, ancestors, find_cycle


def _records(body: str):
    graph = GraphBuilder(parse(f"agraph (float[a] x) => (float[a] y) {{ {body} }}")).graph
    return graph.store.producers


def test_ancestors() -> None:
    producers = _records("a = Neg(x) b = Abs(a) c = Exp(x) y = Add(b, b)")
    found = ancestors(producers, producers["y"])
    assert {r.op_type for r in found} == {"Neg", "Abs", "Add"}
    assert {r.op_type for r in ancestors(producers, producers["a"])} == {"Neg"}


def test_one_cycle_is_named() -> None:
    producers = dict(_records("a = Neg(x) b = Abs(a) c = Exp(b) y = Add(b, c)"))
    # what gives x is b: a and b wait for each other, the others for them
    producers["x"] = producers["b"]
    stuck = set(producers.values())
    assert [r.op_type for r in find_cycle(producers, stuck)] == ["Neg", "Abs"]
    producers["x"] = producers["c"]
    found = find_cycle(producers, stuck)
    assert [r.op_type for r in found] == ["Neg", "Exp", "Abs"], "each one reads the next one"


def test_a_long_cycle_is_cut() -> None:
    records = list(_records("a = Neg(x) b = Abs(a) y = Exp(b)").values())
    assert "Neg" in str(CycleError(records)) and "more" not in str(CycleError(records))
    with pytest.raises(CycleError, match=r"wait for each other's results: .*; 3 more$") as error:
        raise CycleError(records * 3)
    assert len(error.value.records) == 9
