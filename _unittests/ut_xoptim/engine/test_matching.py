"""Claims, failures of patterns."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import NegNeg, Silent, toy_optimizer

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord
from xoptim import GraphBuilderPatternOptimization, MatchResult, rewrite
from xoptim.authoring.roots import Sweep
from xoptim.engine.matching import Claims, match_pattern
from xoptim.testing import model_from_text


@pytest.fixture
def g() -> Any:
    return toy_optimizer()


def run(g: Any, pattern: Any, claims: Claims) -> Any:
    return match_pattern(g, pattern, Sweep(g.store), claims, [])


def test_claims(g: Any) -> None:
    claims = Claims()
    first = run(g, NegNeg(), claims)
    assert [[n.output[0] for n in m.nodes] for m in first.found] == [["r7", "r8"]]
    assert {r.outputs[0] for r in claims.taken} == {"r7", "r8"}
    assert first.visited == 5 and first.time_in > 0
    assert run(g, NegNeg(), claims).found == [], "r8 is taken, and Y needs it"


def both_neg(text: str) -> tuple[Any, Claims]:
    """The matches of a rewrite of two Neg in a graph, and its claims."""

    def neg_neg(g: Any, outer: Any) -> Any:
        return g.before(outer, "Neg").input[0]

    g = GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), None)
    claims = Claims()
    found = run(g, rewrite(root="Neg")(neg_neg)(), claims).found
    return [[n.output[0] for n in m.nodes] for m in found], claims


def test_several_matches_leave_one_node() -> None:
    """It stays for the others, each can be rewritten at once: cost does not grow with readers."""
    found, claims = both_neg(
        "agraph (float[a] X) => (float[a] Y, float[a] Z) { n = Neg(X) Y = Neg(n) Z = Neg(n) }"
    )
    assert found == [["Y"], ["Z"]]
    assert {r.outputs[0] for r in claims.left} == {"n"}
    assert {r.outputs[0] for r in claims.taken} == {"Y", "Z"}


def test_what_a_match_leaves_no_other_takes() -> None:
    """`n` stays for `Z`; the match that begins at `n` would take it, the one at `i` leaves it."""
    found, claims = both_neg(
        "agraph (float[a] X) => (float[a] Y, float[a] Z) "
        "{ m = Neg(X) n = Neg(m) Y = Neg(n) Z = Abs(n) }"
    )
    assert found == [["m", "n"]]
    assert {r.outputs[0] for r in claims.taken} == {"m", "n"} and not claims.left


def test_claims_accept() -> None:
    a, b, c = (NodeRecord(onnx.NodeProto(), 0, i) for i in range(3))
    claims = Claims()
    assert claims.accept([a], b) and claims.accept([c], b)
    assert not claims.accept([b], None), "two matches leave it"
    assert not claims.accept([a], None), "it is taken"
    assert claims.taken == {a, c} and claims.left == {b}
    only = Claims()
    assert only.accept([a], None) and not only.accept([c], a), "what is left is taken"
    assert only.taken == {a} and not only.left


def test_none_in_a_match_is_skipped(g: Any) -> None:
    class Optional(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            return MatchResult(self, [None, node], self.apply)

    assert len(run(g, Optional(), Claims()).found) == 5


def test_errors(g: Any) -> None:
    class Empty(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            return MatchResult(self, [None], self.apply)

    class Foreign(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            return MatchResult(self, [g.make_node("Neg", ["X"], ["new"])], self.apply)

    with pytest.raises(PatternError, match="without any node"):
        run(g, Empty(), Claims())
    with pytest.raises(PatternError, match="matched Neg .*not a node of the graph"):
        run(g, Foreign(), Claims())


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
        run(g, Odd(), Claims())


def test_a_silent_pattern(g: Any) -> None:
    found = run(g, Silent(), Claims())
    assert found.found == [] and found.visited == 5


def iterations_of(readers: int) -> int:
    """Number of iterations it takes to rewrite the readers of one node."""

    def neg_neg(g: Any, outer: Any) -> Any:
        return g.op.Abs(g.op.Abs(g.before(outer, "Neg").input[0]))

    outputs = ", ".join(f"float[a] y{i}" for i in range(readers))
    nodes = " ".join(f"y{i} = Neg(n)" for i in range(readers))
    text = f"agraph (float[a] X) => ({outputs}, float[a] n) {{ n = Neg(X) {nodes} }}"
    builder = GraphBuilder(model_from_text(text))
    optimizer = GraphBuilderPatternOptimization(builder, [rewrite(root="Neg")(neg_neg)()])
    rows = optimizer.optimize()
    assert [n.op_type for n in builder.nodes].count("Neg") == 1
    return max(row["iteration"] for row in rows if row.get("iteration") is not None)


def test_readers_of_one_node_are_rewritten_together() -> None:
    """The layers of a model read the same tables: depth costs no iteration."""
    assert iterations_of(12) == iterations_of(2)
