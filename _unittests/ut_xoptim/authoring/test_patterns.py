"""Patterns and matches."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from ut_xoptim.toy_patterns import NegNeg, Silent

from xoptim import GraphBuilderPatternOptimization, MatchResult, PatternOptimization
from xoptim.authoring.rewriters import short_name
from xoptim.testing import optimizer_of

TEXT = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Neg(n) Y = Relu(m) }"


def optimizer() -> GraphBuilderPatternOptimization:
    return optimizer_of(TEXT, [NegNeg()])


def test_defaults() -> None:
    pattern = PatternOptimization()
    assert (pattern.verbose, pattern.priority, pattern.min_opset) == (0, 1, 1)
    assert pattern.roots == ("*",) and pattern.precision == "exact"


def test_parameters_win_over_the_class() -> None:
    class Late(NegNeg):
        priority = 4
        min_opset = 13

    assert (Late().priority, Late().min_opset) == (4, 13)
    pattern = Late(verbose=2, priority=1, min_opset=18)
    assert (pattern.verbose, pattern.priority, pattern.min_opset) == (2, 1, 18)


def test_equality() -> None:
    assert NegNeg() == NegNeg(priority=5) and NegNeg() != Silent() and NegNeg() != "NegNeg"
    assert len({NegNeg(), NegNeg(), Silent()}) == 2
    assert repr(NegNeg()) == "NegNeg()"


def test_name() -> None:
    assert short_name(type("CastCastPattern", (), {})) == "CastCast"
    assert short_name(type("Pattern", (), {})) == "Pattern"
    assert short_name(type("PatternOf", (), {})) == "PatternOf"
    assert NegNeg().name == "NegNeg"


def test_methods_to_write() -> None:
    with pytest.raises(NotImplementedError, match="must define method match"):
        PatternOptimization().match(None, None, [])
    with pytest.raises(NotImplementedError, match="must define method apply"):
        PatternOptimization().apply(None)


def test_none_costs_nothing_without_listener() -> None:
    def never() -> str:
        raise RuntimeError("the text must not be made")

    assert PatternOptimization().none(None, None, never) is None


def test_none_tells_the_listener() -> None:
    pattern, heard = NegNeg(), []
    pattern.listener = heard.append
    node = oh.make_node("Neg", ["x"], ["y"])
    pattern.none(node, "a reason")
    pattern.none(node, 12, "another")
    pattern.none(node, 13, lambda: "a late one")
    pattern.none(node)
    pattern.none()
    assert [(r[1] is node, r[3]) for r in heard] == [
        (True, "a reason"),
        (True, "another"),
        (True, "a late one"),
        (True, ""),
        (False, ""),
    ]
    assert heard[1][2] == 12 and heard[2][2] == 13
    assert all(r[0] is pattern for r in heard)
    assert heard[0][2] is not None, "the line of the caller"


def test_enumerate_matches() -> None:
    g = optimizer()
    matches = list(NegNeg().enumerate_matches(g))
    assert len(matches) == 1 and [n.output[0] for n in matches[0].nodes] == ["n", "m"]


def test_match_result() -> None:
    g = optimizer()
    first, second, _ = g.iter_nodes()
    pattern = NegNeg()
    match = MatchResult(pattern, [first, None, second], pattern.apply, insert_at=second)
    assert match.to_string() == "MatchResult: NegNeg replaces [Neg, None, Neg]" == repr(match)
    assert match.to_string(short=False).splitlines()[1:] == ["  n = Neg(X)", "  m = Neg(n)"]
    text = match.debug_string(g)
    assert "X: type=1 shape=('a',)" in text and "m: type=1" in text
    assert match.debug_string() == match.to_string(short=False)
    assert match.insert_at is second and match.comment is None
    commented = MatchResult(pattern, [first], pattern.apply, comment="why")
    assert commented.to_string().endswith("(why)")


def test_a_match_changes_nothing() -> None:
    g = optimizer()
    generation = g.store.generation
    list(NegNeg().enumerate_matches(g))
    assert g.store.generation == generation
