"""From a selection to a list of patterns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ut_xoptim.toy_patterns import NegNeg, Silent

from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError
from xoptim import PatternOptimization, get_pattern, get_pattern_list, register_pattern
from xoptim.authoring.rewriters import Member
from xoptim.catalogue import registry
from xoptim.catalogue.selection import as_selection


class AlphaPattern(PatternOptimization):
    """First."""


class BetaPattern(PatternOptimization):
    """Second."""


class GammaPattern(PatternOptimization):
    """Third."""


@pytest.fixture(autouse=True)
def three_patterns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A database of three patterns and two sets."""
    monkeypatch.setattr(registry, "PATTERNS", registry.empty_database())
    monkeypatch.setattr(registry, "load_patterns", lambda: None)
    register_pattern("default")(AlphaPattern)
    register_pattern("default", "toy")(BetaPattern)
    register_pattern("toy", precision="approximate")(GammaPattern)
    yield


def names(*args: object, **kwargs: object) -> list[str]:
    return [p.name for p in get_pattern_list(*args, **kwargs)]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("default", ["Alpha", "Beta"]),
        ("toy", ["Beta", "Gamma"]),
        ("approximate", ["Gamma"]),
        ("exact", ["Alpha", "Beta"]),
        ("Alpha", ["Alpha"]),
        ("AlphaPattern", ["Alpha"]),
        ("Gamma,Alpha", ["Alpha", "Gamma"]),
        ("Gamma+Alpha", ["Alpha", "Gamma"]),
        ("default+toy", ["Alpha", "Beta", "Gamma"]),
        ("toy+default", ["Alpha", "Beta", "Gamma"]),
        ("default-Alpha", ["Beta"]),
        ("default-Alpha+Alpha", ["Alpha", "Beta"]),
        ("default+toy-BetaPattern", ["Alpha", "Gamma"]),
        ("toy-default", ["Gamma"]),
        (" default , Gamma - Beta ", ["Alpha", "Gamma"]),
        ("Alpha,Alpha", ["Alpha"]),
        ("", []),
        ("none", []),
        (" None ", []),
        (None, []),
        ([], []),
        (["default", "Gamma"], ["Alpha", "Beta", "Gamma"]),
        (["default-Alpha", BetaPattern(), GammaPattern], ["Beta", "Gamma"]),
        (AlphaPattern, ["Alpha"]),
        (AlphaPattern(), ["Alpha"]),
        ((p for p in ("Beta", "Alpha")), ["Alpha", "Beta"]),
    ],
)
def test_selections(selection: object, expected: list[str]) -> None:
    assert names(selection) == expected


def test_default_argument() -> None:
    assert names() == ["Alpha", "Beta"]


@pytest.mark.parametrize("negative", ["Beta", ["Beta"], BetaPattern, [BetaPattern()], "toy"])
def test_negative_list(negative: object) -> None:
    assert names("default", negative) == ["Alpha"]


def test_instances_are_kept_as_they_are() -> None:
    mine = BetaPattern(priority=9)
    found = get_pattern_list(["Alpha", mine])
    assert found[1] is mine and found[1].priority == 9
    for given in ([mine, "default"], ["default", mine]):
        assert [p is mine for p in get_pattern_list(given)] == [False, True], "an instance prevails"
    assert get_pattern_list([mine, BetaPattern()])[0] is mine, "the first one"


def test_verbose_goes_to_the_patterns() -> None:
    assert {p.verbose for p in get_pattern_list("default", verbose=3)} == {3}


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ("Alpa", "[Dd]id you mean Alpha"),
        ("alpha", "[Dd]id you mean Alpha"),
        ("defaul", "[Dd]id you mean default"),
        ("default-Bta", "[Dd]id you mean Beta"),
        ("zzzzzz", "Unknown pattern or set of patterns 'zzzzzz'"),
        ("CumSum", "`xoptim patterns --op CumSum` lists those that look at this operator"),
        ("default;Alpha", "Unable to read the selection"),
        ("default Alpha", "Unable to read the selection"),
        ("default++Alpha", "Unable to read the selection"),
        ("default+", "Unable to read the selection"),
        (3, "A selection of patterns is None, a string"),
        ([3], "A selection of patterns is None, a string"),
    ],
)
def test_errors(selection: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        get_pattern_list(selection)


def test_anything_registered() -> None:
    """Classes become instances, what is not a rewrite is refused when it is selected."""
    mine = type("MinePattern", (PatternOptimization,), {})(priority=5)
    registry.PATTERNS.register("Mine", mine, "toy")
    registry.PATTERNS.register("Whole", type("Whole", (Member,), {}), "whole")
    assert get_pattern_list("Mine")[0] is mine and names("toy") == ["Beta", "Gamma", "Mine"]
    assert [type(m).__name__ for m in get_pattern_list("whole")] == ["Whole"]
    registry.PATTERNS.register("Number", 3)
    with pytest.raises(OptionError, match="3 is not a pattern nor a rewriter"):
        get_pattern_list("Number")


def test_selections_follow_the_database() -> None:
    """A text asked twice is read once, as long as nothing is registered nor removed."""
    first, second = get_pattern_list("default"), get_pattern_list("default")
    assert first == second and first[0] is not second[0], "instances are made each time"
    mine = type("MinePattern", (PatternOptimization,), {})
    registry.PATTERNS.register("Mine", mine, "default")
    assert names("default") == ["Alpha", "Beta", "Mine"]
    registry.PATTERNS.remove("Mine")
    assert names("default") == ["Alpha", "Beta"]
    one, two = get_pattern_list("Beta(priority=4)"), get_pattern_list("Beta(priority=4)")
    assert one[0] is not two[0] and two[0].priority == 4


def test_get_pattern() -> None:
    assert get_pattern("Alpha") == AlphaPattern()
    assert get_pattern(AlphaPattern).name == "Alpha"
    mine = BetaPattern()
    assert get_pattern(mine) is mine
    assert [p.name for p in get_pattern("default", as_list=True)] == ["Alpha", "Beta"]
    assert get_pattern(None, as_list=True) == []
    assert get_pattern("Alpha", verbose=2).verbose == 2


def test_get_pattern_errors() -> None:
    with pytest.raises(OptionError, match="gives 2 patterns, one was expected"):
        get_pattern("default")
    with pytest.raises(OptionError, match="gives 0 patterns"):
        get_pattern(None)
    with pytest.raises(OptionError, match="Unknown"):
        get_pattern("Delta")


def test_class_names() -> None:
    text = repr(OptimizationOptions(patterns="default"))
    assert "patterns=[AlphaPattern(), BetaPattern()]" in text


@pytest.mark.parametrize("attribute", ["roots", "after"])
@pytest.mark.parametrize("value", ["Relu", 3, (1,)])
def test_roots_are_names(attribute: str, value: Any) -> None:
    """A word would be read letter by letter, and the pattern would never match."""
    pattern = NegNeg()
    setattr(pattern, attribute, value)
    with pytest.raises(OptionError, match=f"Attribute {attribute} of pattern NegNeg must be a tup"):
        get_pattern_list([pattern])


def test_a_selection_stays_until_the_list_changes() -> None:
    first = Silent()
    selection = get_pattern_list([first, NegNeg()])
    assert as_selection(selection) is selection
    selection[:] = [Silent(priority=7)]
    changed = as_selection(selection)
    assert changed is not selection
    assert changed[0] is selection[0] and changed[0] is not first, "equal is not enough"
    selection.append("Alpha")
    assert [p.name for p in as_selection(selection)] == ["Alpha", "Silent"]
    assert [p.name for p in as_selection("Alpha")] == ["Alpha"]
