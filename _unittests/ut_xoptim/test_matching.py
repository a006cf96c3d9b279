"""Roots, candidates near a change, claims."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import NegNeg, Silent

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xoptim import GraphBuilderPatternOptimization, MatchResult
from xoptim.matching import Candidates, match_pattern, parse_root, root_records
from xoptim.registry import all_patterns
from xoptim.testing import model_from_text

TEXT = """agraph (float[a, a] X) => (float[a, a] Y) {
    r0 = Neg(X)
    r1 = toy.LocalAttention_a(r0)
    r2 = Abs(r1)
    r3 = Neg(r2)
    r4 = toy.LocalAttention(r3)
    r5 = toy.Other(r4)
    r6 = LocalAttention(r5)
    r7 = Neg(r6)
    r8 = Neg(r7)
    Y = Neg(r8)
}"""


@pytest.fixture
def g() -> Any:
    builder = GraphBuilder(model_from_text(TEXT, domains=("toy",)))
    return GraphBuilderPatternOptimization(builder, None)


ROOTS = {
    ("Neg",): ["r0", "r3", "r7", "r8", "Y"],
    ("Abs", "Neg"): ["r0", "r2", "r3", "r7", "r8", "Y"],
    ("toy::LocalAttention",): ["r4"],
    ("toy::LocalAttention*",): ["r1", "r4"],
    ("toy::LocalAttention*", "Abs"): ["r1", "r2", "r4"],
    ("LocalAttention*",): ["r6"],
    ("Missing",): [],
    ("*",): ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "Y"],
}


@pytest.mark.parametrize("roots", ROOTS)
def test_root_records(g: Any, roots: tuple[str, ...]) -> None:
    assert [r.outputs[0] for r in root_records(g.store, roots)] == ROOTS[roots]


@pytest.mark.parametrize("roots", ROOTS)
def test_candidates(g: Any, roots: tuple[str, ...]) -> None:
    """The same roots, among a few nodes, dead ones left out."""
    hidden = ("r0", "r5")
    records = [r for r in g.store.nodes if r.outputs[0] not in hidden]
    g.store.replace([g.store.producers["r8"]], [g.make_node("Relu", ["r7"], ["r8"])])
    found = Candidates(reversed(records)).of(roots)
    expected = [n for n in ROOTS[roots] if n not in (*hidden, "r8")]
    assert [r.outputs[0] for r in found] == expected


def test_parse_root() -> None:
    assert parse_root("Neg") == ("", "Neg")
    assert parse_root("com.microsoft::FusedMatMul") == ("com.microsoft", "FusedMatMul")


def run(g: Any, pattern: Any, claimed: set[Any]) -> Any:
    return match_pattern(g, pattern, root_records(g.store, pattern.roots), claimed, [])


def test_claims(g: Any) -> None:
    claimed: set[Any] = set()
    first = run(g, NegNeg(), claimed)
    assert [[n.output[0] for n in m.nodes] for m in first.found] == [["r7", "r8"]]
    assert {r.outputs[0] for r in claimed} == {"r7", "r8"}
    assert first.visited == 5 and first.time_in > 0
    assert run(g, NegNeg(), claimed).found == [], "r8 is taken, and Y needs it"


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


@pytest.mark.parametrize(
    "after, expected",
    [((), 5), (("Neg",), 2), (("Abs",), 1), (("Abs", "Neg"), 3), (("LocalAttention_a",), 0)],
)
def test_after_refuses_roots_at_once(g: Any, after: tuple[str, ...], expected: int) -> None:
    """`match` is only called where a node of these types, of the main domain, comes first."""
    seen: list[str] = []

    class Watcher(Silent):
        def match(self, g: Any, node: onnx.NodeProto, matched: list[MatchResult]) -> None:
            seen.append(node.output[0])

    pattern = Watcher()
    pattern.after = after  # type: ignore[misc]
    records = root_records(g.store, ("Neg",))
    run = match_pattern(g, pattern, records, set(), [])
    assert len(seen) == expected and run.visited == 5
    pattern.listener = print
    seen.clear()
    match_pattern(g, pattern, records, set(), [])
    assert len(seen) == 5, "somebody wants to know every reason"


def test_after_says_what_matches() -> None:
    """What `after` refuses, `match` refuses as well, because no node of these types is before."""
    patterns = [cls() for cls in all_patterns().values() if cls.after]
    assert len(patterns) > 20
    for pattern in patterns:
        for root in pattern.roots:
            text = f"""<ir_version: 8, opset_import: ["" : 20]> agraph (float[2] X) => (Y)
                {{ x = Exp(X) Y = {root}({", ".join(["x"] * onnx.defs.get_schema(root).min_input)}) }}"""
            builder = GraphBuilder(onnx.parser.parse_model(text), infer_shapes_options=False)
            g = GraphBuilderPatternOptimization(builder, [pattern])
            node = g.node_before("Y")
            assert pattern.match(g, node, []) is None, f"{pattern.name} on {root}"
