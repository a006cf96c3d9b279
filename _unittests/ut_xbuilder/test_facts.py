"""Facts only refine."""

from __future__ import annotations

import pytest

from xbuilder.dims import Constraints
from xbuilder.errors import FactError
from xbuilder.facts import DECLARED, UNKNOWN, FactTable, ResultFacts


def table(parent=None, told=None):
    tell = None if told is None else lambda name, reason: told.append((name, reason))
    return FactTable(Constraints(), lambda d: d.startswith("unk"), parent, tell)


def test_unknown_is_not_an_error():
    facts = table()
    assert facts["x"] is UNKNOWN
    assert "x" not in facts and not facts.is_local("x")
    assert facts["x"].known_rank() is None
    assert facts.contradicts("x", ResultFacts(1, (2,))) == ""


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
