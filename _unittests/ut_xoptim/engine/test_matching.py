"""Claims, failures of patterns."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import NegNeg, Silent, toy_optimizer

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xoptim import GraphBuilderPatternOptimization, MatchResult, rewrite
from xoptim.api.roots import Sweep
from xoptim.engine.matching import match_pattern
from xoptim.testing import model_from_text


@pytest.fixture
def g() -> Any:
    return toy_optimizer()


def run(g: Any, pattern: Any, claimed: set[Any]) -> Any:
    return match_pattern(g, pattern, Sweep(g.store), claimed, [])


def test_claims(g: Any) -> None:
    claimed: set[Any] = set()
    first = run(g, NegNeg(), claimed)
    assert [[n.output[0] for n in m.nodes] for m in first.found] == [["r7", "r8"]]
    assert {r.outputs[0] for r in claimed} == {"r7", "r8"}
    assert first.visited == 5 and first.time_in > 0
    assert run(g, NegNeg(), claimed).found == [], "r8 is taken, and Y needs it"


def test_what_stays_is_claimed_too() -> None:
    """Two readers of one node: the second one is rewritten in the next iteration."""

    def neg_neg(g: Any, outer: Any) -> Any:
        return g.before(outer, "Neg").input[0]

    text = "agraph (float[a] X) => (float[a] Y, float[a] Z) { n = Neg(X) Y = Neg(n) Z = Neg(n) }"
    builder = GraphBuilder(model_from_text(text))
    pattern = rewrite(root="Neg")(neg_neg)()
    claimed: set[Any] = set()
    found = run(GraphBuilderPatternOptimization(builder, None), pattern, claimed).found
    assert [[n.output[0] for n in m.nodes] for m in found] == [["Y"]]
    assert {r.outputs[0] for r in claimed} == {"n", "Y"}


def test_none_in_a_match_is_skipped(g: Any) -> None:
    class Optional(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            return MatchResult(self, [None, node], self.apply)

    assert len(run(g, Optional(), set()).found) == 5


def test_errors(g: Any) -> None:
    class Empty(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            return MatchResult(self, [None], self.apply)

    class Foreign(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            return MatchResult(self, [g.make_node("Neg", ["X"], ["new"])], self.apply)

    with pytest.raises(PatternError, match="without any node"):
        run(g, Empty(), set())
    with pytest.raises(PatternError, match="matched Neg .*not a node of the graph"):
        run(g, Foreign(), set())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda p, n: True, "must return a MatchResult or None, not True"),
        (lambda p, n: [n], "must return a MatchResult or None, not "),
        (lambda p, n: MatchResult(p, ["r0"], p.apply), "matched 'r0' which is not a node"),
        (
            lambda p, n: MatchResult(p, [n], p.apply, insert_at=onnx.NodeProto(op_type="Cos")),
            "wants to insert at Cos .*not a node of the graph",
        ),
    ],
)
def test_wrong_answers(g: Any, answer: Any, message: str) -> None:
    class Odd(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            return answer(self, node)

    with pytest.raises(PatternError, match=f"(?s)pattern Odd .*{message}|Pattern Odd {message}"):
        run(g, Odd(), set())


def test_a_silent_pattern(g: Any) -> None:
    found = run(g, Silent(), set())
    assert found.found == [] and found.visited == 5
