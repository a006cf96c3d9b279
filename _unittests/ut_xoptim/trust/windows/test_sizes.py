"""Sizes given to symbolic dimensions, those the facts allow."""

from __future__ import annotations

import numpy as np

from xbuilder.dims import Constraints
from xbuilder.facts.facts import ResultFacts
from xoptim.trust.windows.sizes import allowed, assignments, keeps_facts, size_of, symbols_of


def tried(*names: str, constraints: Constraints | None = None) -> list[dict[str, int]]:
    known = Constraints() if constraints is None else constraints
    return [s for s, spare in assignments(names, known) if not spare]


def test_several_sizes() -> None:
    assert tried() == [{}]
    assert tried("a") == [{"a": 2}, {"a": 1}, {"a": 0}]
    found = tried("a", "b")
    assert {"a": 2, "b": 3} in found and {"a": 1, "b": 3} in found and {"a": 2, "b": 0} in found
    spare = [s for s, spare in assignments(["a"], Constraints(), True) if spare]
    assert {"a": 16} in spare and {"a": 224} in spare
    assert ({"a": 32}, False) in list(assignments(["a"], Constraints(), True, wide=True))


def test_sizes_of_constants() -> None:
    """One symbol at a time has one of them, when nothing else runs."""
    found = list(assignments(["a", "b"], Constraints(), read=[9, 12]))
    spare = [({"a": 9, "b": 3}, True), ({"a": 2, "b": 9}, True), ({"a": 12, "b": 3}, True)]
    assert found[:4] == [({"a": 2, "b": 3}, False), *spare]
    assert [s for s, is_spare in found if not is_spare] == tried("a", "b")


def test_sizes_that_show_a_difference() -> None:
    """They come first, unless they are empty; the symbols they do not have keep theirs."""
    found = [s for s, _ in assignments(["a", "b"], Constraints(), shown={"b": 7, "c": 2})]
    assert found[:2] == [{"a": 2, "b": 7}, {"a": 2, "b": 3}]
    found = [s for s, _ in assignments(["a", "b"], Constraints(), shown={"b": 0})]
    assert found[:2] == [{"a": 2, "b": 3}, {"a": 2, "b": 0}]
    known = Constraints()
    known.add_at_least("b", 2)
    assert {"b": 1} not in [s for s, _ in assignments(["b"], known, shown={"b": 1})]
    known.add_at_least("n//160-1", 0)
    found = [s["n"] for s, spare in assignments(["n"], known, shown={"n": 200}) if not spare]
    assert found == [200, 320, 480, 800]  # others are looked for as well


def test_symbols() -> None:
    facts = [ResultFacts(1, ("a+b", 3)), ResultFacts(7, (2,), value=("c", 4)), ResultFacts(1)]
    assert symbols_of(facts, Constraints()) == ["a", "b", "c"]


def test_constraints() -> None:
    known = Constraints()
    known.add_equal("2*a", "3*b", "somewhere")
    assert allowed({"a": 3, "b": 2}, known) and not allowed({"a": 2, "b": 2}, known)
    assert {"a": 3, "b": 2} in tried("a", "b", constraints=known)
    assert all(2 * s["a"] == 3 * s["b"] for s in tried("a", "b", constraints=known))
    known = Constraints()
    known.add_equal_or_one("a", "b", "an Add")
    assert allowed({"a": 1, "b": 2}, known) and not allowed({"a": 3, "b": 2}, known)
    known = Constraints()
    known.add_at_least("a", 2)
    assert [s["a"] for s in tried("a", constraints=known)] == [2]
    known.add_at_least("b+c", 1)
    assert allowed({"a": 2, "b": 0, "c": 1}, known)
    assert not allowed({"a": 2, "b": 0, "c": 0}, known)


def test_sizes_above_bounds() -> None:
    """The frames of a signal: shorter ones have none."""
    known = Constraints()
    known.add_at_least("n//160-1", 0)
    assert [s["n"] for s in tried("n", constraints=known)] == [320, 480, 800]
    known.add_at_least("b", 1)
    assert tried("b", "n", constraints=known) == [
        {"b": 2, "n": 320},
        {"b": 3, "n": 480},
        {"b": 5, "n": 800},
    ]
    known.add_at_least("n//160-1", 1 << 20)
    assert not tried("b", "n", constraints=known), "no size that can be tried is long enough"


def test_solved_symbols_have_no_size_of_their_own() -> None:
    known = Constraints(["d"])
    known.add_equal("d", "a+1", "a node")
    assert symbols_of([ResultFacts(1, ("d", "a"))], known) == ["a"]
    assert size_of("d", {"a": 3}, known) == 4
    assert size_of("e", {"a": 3}, known) is None


def test_facts_of_results() -> None:
    known, sizes = Constraints(), {"a": 2}
    value = np.zeros((2, 5))
    assert keeps_facts(ResultFacts(1, ("a", "new")), value, sizes, known)
    assert sizes == {"a": 2, "new": 5}
    assert not keeps_facts(ResultFacts(1, ("new", "a")), value, dict(sizes), known)
    assert not keeps_facts(ResultFacts(1, rank=3), value, {}, known)
    assert keeps_facts(ResultFacts(), [value], {}, known)
