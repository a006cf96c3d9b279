"""Rewriters one after the other."""

from __future__ import annotations

import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of, op_types, rewritten

from xbuilder.errors import PatternError
from xoptim.toolkit import (
    SequentialGraphRewriter,
    SubstitutionNodeRewriter,
    graph_rewriter,
    in2out,
    node_rewriter,
)

TEXT = "g (float[a] x) => (float[a] y) { a = Relu(x) b = Neg(a) y = Relu(b) }"
RELU_TO_ABS = SubstitutionNodeRewriter("Relu", "Abs")
ABS_TO_EXP = SubstitutionNodeRewriter("Abs", "Exp")


def test_order() -> None:
    both = SequentialGraphRewriter(RELU_TO_ABS, ABS_TO_EXP)
    assert rewritten(TEXT, both) == ["Exp", "Neg", "Exp"]
    reverse = SequentialGraphRewriter(ABS_TO_EXP, RELU_TO_ABS)
    assert rewritten(TEXT, reverse) == ["Abs", "Neg", "Abs"]
    assert repr(both) == "SequentialGraphRewriter(Relu_to_Abs, Abs_to_Exp)"


def test_nested_with_graph_rewriters() -> None:
    seen: list[str] = []

    @graph_rewriter
    def look(graph):
        seen.append(" ".join(node.op_type for node in graph.find()))

    inner = SequentialGraphRewriter(look, in2out(ABS_TO_EXP), look, name="inner")
    rewritten(TEXT, SequentialGraphRewriter(look, RELU_TO_ABS, inner, "default"))
    assert seen == ["Relu Neg Relu", "Abs Neg Abs", "Exp Neg Exp"]


def test_rows_name_each_rewriter() -> None:
    builder = builder_of(TEXT)
    rows = SequentialGraphRewriter(RELU_TO_ABS, ABS_TO_EXP).rewrite(builder)
    applied = [r["pattern"] for r in rows if r["pattern"].startswith("apply_")]
    assert applied == ["apply_Relu_to_Abs"] * 2 + ["apply_Abs_to_Exp"] * 2
    assert op_types(builder) == ["Exp", "Neg", "Exp"]


def test_a_failure_does_not_stop_the_next_ones() -> None:
    @graph_rewriter
    def fails(graph):
        graph.replace({"y": graph.op.Sigmoid("b")})
        raise KeyError("oops")

    with pytest.raises(PatternError, match="Rewriter fails failed: KeyError"):
        rewritten(TEXT, SequentialGraphRewriter(fails, RELU_TO_ABS))
    with pytest.warns(UserWarning, match="fails failed"):
        after = rewritten(TEXT, SequentialGraphRewriter(fails, RELU_TO_ABS, on_failure="warn"))
    assert after == ["Abs", "Neg", "Sigmoid"]
    assert rewritten(TEXT, SequentialGraphRewriter(fails, on_failure="ignore")) == [
        "Relu",
        "Neg",
        "Sigmoid",
    ]


def test_each_runs_once() -> None:
    calls: list[str] = []

    @node_rewriter("Relu")
    def note(graph, node):
        calls.append(node.output[0])
        return False

    rewritten(TEXT, SequentialGraphRewriter(note))
    assert calls == ["a", "y"]
