"""Which of two rewrites looks first."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from xbuilder.errors import OptionError
from xoptim import PatternOptimization, Rewrite, get_pattern_list, register_pattern
from xoptim.authoring.levels import LEVELS, priority_of
from xoptim.catalogue import registry
from xoptim.catalogue.database_query import RewriteDatabaseQuery
from xoptim.catalogue.order import check_names, in_order, run_order
from xoptim.catalogue.phases import PHASES
from xoptim.catalogue.registry import all_patterns
from xoptim.catalogue.rewrite_function import rewrite
from xoptim.declarative.rules import equation, rule


def make(name: str, phase: str = "specialize", **declared: Any) -> type[PatternOptimization]:
    return type(f"{name}Pattern", (PatternOptimization,), {"phase": phase, **declared})


def ordered(*rewrites: Any) -> str:
    """The order of rewrites, which is the same whatever the order they are given in."""
    found = {" ".join(r.name for r in in_order(rows)) for rows in itertools.permutations(rewrites)}
    (one,) = found
    return one


def test_level_then_phase_then_name() -> None:
    late, first = make("A", "merge", priority=2), make("D", "uncanonicalize", priority=0)
    others = make("C", "merge"), make("B")
    assert ordered(late, first, *others) == "D C B A"
    assert ordered(late(priority=1), first(priority="last"), *others) == "A C B D"
    assert run_order([late, first]) == [1, 0] and run_order([]) == []


def test_those_of_the_project_come_before_those_of_others() -> None:
    ours = make("Z", __module__="xoptim.patterns.somewhere")
    assert ordered(ours, make("B"), make("A")) == "Z A B"


def test_unregistered_patterns_keep_the_order_they_are_given() -> None:
    b, a, registered = make("B", ""), make("A", ""), make("C")
    assert [r.name for r in in_order([b, a, registered])] == ["C", "B", "A"]
    assert [r.name for r in in_order([a, registered, b])] == ["C", "A", "B"]


def test_before_and_behind() -> None:
    a, b, c = make("A", behind=("C",)), make("B"), make("C")
    assert ordered(a, b, c) == "B C A"
    assert ordered(a, b, make("C", before=("B",))) == "C A B"
    assert ordered(a, b) == "A B", "what is not selected does not matter"
    assert ordered(a(), make("C", "uncanonicalize")) == "C A", "whatever their phases"
    assert ordered(make("A", behind=("C",), priority=2), c) == "C A", "the level says it already"
    assert ordered(a(priority=0), c) == "A C", "the priority of an instance prevails"


@pytest.mark.parametrize("names", ["A", "AB", "ABC"])
def test_a_circle_is_refused(names: str) -> None:
    rows = [make(n, before=(names[i - 1],)) for i, n in enumerate(names)]
    with pytest.raises(OptionError, match=f"patterns {', '.join(names)} make a circle"):
        in_order([*rows, make("D")])


def test_levels_are_not_contradicted() -> None:
    late = make("Late", before=("Early",), priority=3)
    with pytest.raises(OptionError, match="Late cannot come before Early, which has a lower"):
        in_order([late, make("Early")])


def test_names_are_known() -> None:
    rows = [make("A", before=("Mine",)), make("B", behind=("A",))]
    check_names([*rows, make("Mine")], ())
    check_names(rows, {"Mine", "Other"})
    with pytest.raises(OptionError, match=r"'Mine' in before= of A. Did you mean Mind"):
        check_names(rows, {"Mind"})
    unknown = type("ElsewherePattern", (PatternOptimization,), {"behind": ("CastCsat",)})
    with pytest.raises(OptionError, match="'CastCsat' in behind= of Elsewhere.*CastCast"):
        get_pattern_list(["Cast", unknown])
    known = type("ElsewherePattern", (PatternOptimization,), {"behind": ("CastCast",)})
    assert len(get_pattern_list(["Cast", known])) == 2
    word = type("WordPattern", (PatternOptimization,), {"behind": "CastCast"})
    with pytest.raises(OptionError, match="Attribute behind of pattern Word must be a tuple"):
        get_pattern_list([word])


def test_levels() -> None:
    numbers = list(LEVELS.values())
    assert numbers == sorted(set(numbers)) and LEVELS["first"] == 0 and LEVELS["usual"] == 1
    assert [priority_of(level) for level in LEVELS] == numbers
    assert [priority_of(n) for n in (-1, 7)] == [-1, 7], "numbers stay what they are"
    with pytest.raises(OptionError, match="number or one of .'first', .*, not 'soon'"):
        priority_of("soon")
    declared = type("APattern", (PatternOptimization,), {"priority": "last"})
    assert declared.priority == declared().priority == LEVELS["last"]
    assert declared(priority="first").priority == 0


def test_every_way_of_declaring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PATTERNS", registry.empty_database())
    options: dict[str, Any] = {"before": "A", "behind": ("B", "C"), "priority": "late"}
    one = register_pattern("toy", **options)(type("OnePattern", (PatternOptimization,), {}))

    @rewrite("toy", root="Neg", **options)
    def two(g: Any, node: Any) -> None:
        """Nothing."""

    @rewrite(root="Neg", **options)
    def three(g: Any, node: Any) -> None:
        """Nothing, it is not registered."""

    @rule("toy", "Neg(Neg(x)) -> x", **options)
    def four(g: Any) -> None:
        """An equation."""

    five = equation("Five", "Neg(Neg(x)) -> x", before=("A",), behind=("B", "C"), priority="late")
    for cls in (one, two, three, four, five):
        assert (cls.before, cls.behind, cls.priority) == (("A",), ("B", "C"), 2), cls
    assert issubclass(two, Rewrite)


@pytest.mark.parametrize(
    "words", [("default", "onnxruntime"), ("ml", "default", "Cast", "merge"), ("fix", "cuda")]
)
def test_the_order_of_words_means_nothing(words: tuple[str, ...]) -> None:
    known = [w for w in words if w in registry.pattern_database()]
    found = [get_pattern_list("+".join(rows)) for rows in itertools.permutations(known)]
    found += [get_pattern_list(list(rows)) for rows in itertools.permutations(known)]
    found += [get_pattern_list(RewriteDatabaseQuery(r)) for r in itertools.permutations(known)]
    assert all(row == found[0] for row in found) and len(found[0]) > 1


def test_what_is_declared_is_open() -> None:
    """A name in `before` or `behind` is the one of a pattern of the same level: the others are in
    order without a word."""
    known = all_patterns()
    pairs = [(c, known[n]) for c in known.values() for n in (*c.before, *c.behind)]
    assert all(one.priority == other.priority for one, other in pairs) and len(pairs) > 10
    rows = list(known.values())
    random.Random(0).shuffle(rows)
    assert in_order(rows) == in_order(known.values()) == rows_of(PHASES, rows)


def rows_of(phases: Any, rows: list[Any]) -> list[Any]:
    """The order again, the slow way: the first of those left that none of the others precedes."""
    key = {c: (c.priority, phases[c.phase].position, c.name) for c in rows}
    earlier = {c.name: set(c.behind) for c in rows}
    for c in rows:
        for name in c.before:
            earlier[name].add(c.name)
    left, found = sorted(rows, key=key.__getitem__), []
    while left:
        names = {c.name for c in left}
        found.append(next(c for c in left if names.isdisjoint(earlier[c.name])))
        left.remove(found[-1])
    return found
