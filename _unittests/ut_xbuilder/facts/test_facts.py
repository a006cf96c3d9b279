"""Facts only refine."""

from __future__ import annotations

import pytest

from xbuilder.dims import Constraints
from xbuilder.errors import FactError
from xbuilder.facts.facts import DECLARED, UNKNOWN, FactTable, ResultFacts


def table(parent=None, told=None):
    tell = None if told is None else lambda name, reason: told.append((name, reason))
    return FactTable(Constraints(), lambda d: d.startswith("unk"), parent, tell)


def test_unknown_is_not_an_error():
    facts = table()
    assert facts["x"] is UNKNOWN
    assert "x" not in facts and not facts.is_local("x")
    assert facts["x"].known_rank() is None
    assert facts.contradicts("x", ResultFacts(1, (2,))) == ""


def test_types():
    """Those of results that are gone, and of the outer graph, are kept."""
    outer = table()
    inner = table(outer)
    outer.refine("x", ResultFacts(1))
    inner.refine("y", ResultFacts(0, (2,)))
    inner.refine("y", ResultFacts(7))
    inner.forget("y")
    assert outer.all_types() == {1} and inner.all_types() == {0, 1, 7}


def test_refining():
    facts = table()
    facts.refine("x", ResultFacts(1))
    facts.refine("x", ResultFacts(0, None, 2))
    assert facts["x"].known_rank() == 2
    facts.refine("x", ResultFacts(0, ("unk0", "unk1")))
    facts.refine("x", ResultFacts(1, ("batch", 3)))
    assert facts["x"] == ResultFacts(1, ("batch", 3), 2)
    facts.refine("x", ResultFacts(1, ("unk5", 3)))
    assert facts["x"].shape == ("batch", 3)
    facts.refine("x", ResultFacts(1, (7, 3)))
    assert facts["x"].shape == (7, 3)
    facts.refine("x", ResultFacts(1, ("batch", 3)))
    assert facts["x"].shape == (7, 3)


@pytest.mark.parametrize(
    "new",
    [ResultFacts(7), ResultFacts(1, (3,)), ResultFacts(0, None, 3), ResultFacts(1, (2, 4))],
)
def test_contradictions_name_both_origins(new):
    facts = table()
    facts.refine("x", ResultFacts(1, (2, 3)), "the first one")
    before = facts["x"]
    assert facts.contradicts("x", new)
    with pytest.raises(FactError, match=r"'x'.*the first one.*the second one"):
        facts.refine("x", new, "the second one")
    assert facts["x"] is before


def test_inference_wins_over_what_a_file_declares():
    told = []
    facts = table(told=told)
    facts.refine("x", ResultFacts(1, (2, 3)), DECLARED)
    facts.refine("x", ResultFacts(1, (4, 3)), "an inference")
    assert facts["x"].shape == (4, 3)
    assert [name for name, _ in told] == ["x"]
    with pytest.raises(FactError):
        facts.refine("x", ResultFacts(1, (5, 3)), "another inference")


def test_content():
    facts = table()
    facts.refine("x", ResultFacts(7, (2,), None, ("batch", 3)))
    facts.refine("x", ResultFacts(7, (2,), None, (5, 3)))
    assert facts["x"].value == (5, 3)
    facts.refine("x", ResultFacts(7, (2,), None, ("batch", 3)))
    assert facts["x"].value == (5, 3)


def test_outer_graph():
    outer = table()
    outer.refine("x", ResultFacts(1, (2,)))
    inner = table(outer)
    assert inner["x"].type == 1 and "x" in inner and not inner.is_local("x")
    inner.refine("x", UNKNOWN)  # a local result hides the outer one
    assert inner["x"].type == 0
    inner.refine("x", ResultFacts(7))
    assert inner["x"].type == 7 and outer["x"].type == 1
    inner.forget("x")
    assert inner["x"].type == 1
    assert list(inner) == []


def test_sequences():
    facts = table()
    facts.refine("s", ResultFacts(sequence=ResultFacts(1)))
    facts.refine("s", ResultFacts(sequence=ResultFacts(1, (2,))))
    assert facts["s"].sequence.type == 1


class Node:
    """A node, as far as facts go."""

    def __init__(self, *outputs):
        self.outputs = outputs


class Change:
    """The changes a table is notified of."""

    def __init__(self, lost=(), renamed=None):
        self.lost, self.renamed = lost, renamed


def test_facts_go_with_their_result():
    facts = table()
    facts.refine("x", ResultFacts(1, (2,)), DECLARED)
    facts.devices["x"] = -1
    facts.store_changed(Change(["x", "unknown"]))
    assert not facts and not facts.devices and not facts.origins


def test_facts_follow_their_result():
    facts = table()
    facts.refine("x", ResultFacts(1, (2,)), DECLARED)
    facts.devices["x"] = 0
    facts.store_changed(Change(renamed=("x", "y")))
    assert dict(facts) == {"y": ResultFacts(1, (2,))}
    assert facts.devices == {"y": 0} and facts.origins == {"y": DECLARED}
    facts.store_changed(Change(renamed=("unknown", "z")))
    assert list(facts) == ["y"]


@pytest.mark.parametrize(
    "known,expected",
    [((7,), (7,)), (("unk0",), ("batch",)), (("other",), ("other",)), ((3, 4), (3, 4))],
)
def test_facts_complete_those_of_the_new_name(known, expected):
    """The facts known under the new name win when they contradict each other."""
    facts = table()
    facts.refine("x", ResultFacts(1, ("batch",)))
    facts.refine("y", ResultFacts(1, known))
    facts.store_changed(Change(renamed=("x", "y")))
    assert facts["y"].shape == expected and "x" not in facts


def test_facts_start_again():
    facts = table()
    facts.refine("x", ResultFacts(1, (2,)), DECLARED)
    facts.devices["x"] = 0
    assert facts.restart(["x", "", "y"]) == {"x": ResultFacts(1, (2,)), "y": UNKNOWN}
    assert "x" not in facts and not facts.origins and facts.devices == {"x": 0}


def test_facts_come_back():
    facts = table()
    facts.refine("x", ResultFacts(1, (2,)), DECLARED)
    facts.devices["x"] = 0
    before = facts.saved([Node("x", ""), Node("y")])
    facts.forget("x")
    facts.refine("y", ResultFacts(1))
    with facts.recalled(before):
        assert facts["x"].shape == (2,) and facts["y"].type == 1
    assert "x" not in facts and facts["y"].type == 1
    facts.restore(before)
    assert facts["x"].shape == (2,) and facts.origins == {"x": DECLARED}
    assert facts.devices == {"x": 0} and "y" not in facts
