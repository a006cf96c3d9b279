"""The checks of patterns must see what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xoptim.toy_patterns import NegNeg, Rename, Wrong

from xoptim.testing import (
    PatternTestError,
    check_no_match,
    check_pattern,
    model_from_text,
    reasons_of,
)

BEFORE = "agraph (float[a, b] X) => (float[a, b] Y) { n = Neg(X) m = Neg(n) Y = Abs(m) }"
AFTER = "agraph (float[a, b] X) => (float[a, b] Y) { Y = Abs(X) }"


# -- check_pattern


def test_check_pattern() -> None:
    model = check_pattern(BEFORE, AFTER, [NegNeg()])
    assert [n.op_type for n in model.graph.node] == ["Abs"]
    check_pattern(BEFORE, None, [NegNeg()])
    check_pattern(model_from_text(BEFORE), model_from_text(AFTER), [NegNeg()])


FAILURES = {
    "another graph": (BEFORE, BEFORE, [NegNeg()], "expected graph"),
    "no match": (AFTER, AFTER, [NegNeg()], "no pattern of .* matched"),
    "not idempotent": (AFTER, None, "grow", "not idempotent"),
    "wrong values": (BEFORE, None, [Rename("Abs", "Relu")], "values differ"),
    "wrong graph and values": (BEFORE, AFTER, [Rename("Abs", "Relu")], "expected graph"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_check_pattern_fails(name: str) -> None:
    before, after, patterns, message = FAILURES[name]
    options = {}
    if patterns == "grow":
        from ut_xoptim.toy_patterns import Grow

        patterns, options = [Grow()], {"max_iter": 1}
    with pytest.raises(PatternTestError, match=message):
        check_pattern(before, after, patterns, **options)


def test_check_pattern_sees_a_modified_model() -> None:
    model = model_from_text(BEFORE)

    def spoil(g: Any, a: Any, b: Any) -> list[Any]:
        model.graph.node[0].name = "spoiled"
        return [g.make_node("Identity", [a.input[0]], list(b.output))]

    with pytest.raises(PatternTestError, match="original model was modified"):
        check_pattern(model, AFTER, [Wrong(spoil)])


def test_two_sizes_are_run() -> None:
    """A rewrite that is right for one size only (a is 3 in the first run) does not pass."""
    text = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Neg(n) Y = Abs(m) }"

    def shifted(g: Any, a: Any, b: Any) -> list[Any]:
        three = g.make_initializer("", np.array(3, dtype=np.int64))
        return [
            g.make_node("Size", ["X"], ["size"]),
            g.make_node("Sub", ["size", three], ["zero"]),
            g.make_node("Cast", ["zero"], ["shift"], to=1),
            g.make_node("Add", ["X", "shift"], list(b.output)),
        ]

    check_pattern(text, None, [Wrong(shifted)], sizes={"a": 3})
    with pytest.raises(PatternTestError, match="values differ"):
        check_pattern(text, None, [Wrong(shifted)])


def test_sizes_and_feeds() -> None:
    check_pattern(BEFORE, AFTER, [NegNeg()], sizes={"a": 1, "b": 7})
    check_pattern(BEFORE, AFTER, [NegNeg()], sizes=[{"a": 1, "b": 7}, {"a": 0, "b": 7}])
    feeds = [{"X": np.array([[np.inf, np.nan]], dtype=np.float32)}]
    check_pattern(BEFORE, AFTER, [NegNeg()], feeds=feeds)


# -- check_no_match


def test_check_no_match() -> None:
    check_no_match(AFTER, NegNeg())
    one = BEFORE.replace("m = Neg(n)", "m = Relu(n)")
    check_no_match(one, NegNeg(), "no Neg before")
    with pytest.raises(PatternTestError, match="the pattern matches"):
        check_no_match(BEFORE, NegNeg())
    with pytest.raises(PatternTestError, match="no rejection for 'something else'"):
        check_no_match(one, NegNeg(), "something else")
    with pytest.raises(PatternTestError, match="no rejection"):
        check_no_match(AFTER, NegNeg(), "no Neg before")


def test_reasons_of() -> None:
    found = reasons_of(model_from_text(BEFORE), NegNeg())
    assert [op for op, _ in found] == ["Neg", "Neg"]
    assert found[0][1].startswith("no Neg before") and found[1][1].startswith("MatchResult")
