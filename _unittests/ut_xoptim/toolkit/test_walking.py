"""Rewriters that walk through a graph once."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of, op_types, optimized, rewritten

from xbuilder.errors import OptionError, PatternError
from xoptim.toolkit import GraphRewriter, WalkingGraphRewriter, in2out, node_rewriter, out2in

CHAIN = "g (float[a] x) => (float[a] y) { a = Neg(x) b = Abs(a) c = Neg(b) y = Abs(c) }"


def visiting(order: list[str]):
    """A rewriter that notes what it visits."""

    @node_rewriter(None)
    def visit(graph, node):
        order.append(node.output[0])
        return False

    return visit


class Heard:
    """A reaction to failures which notes what failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, error: Exception, member: Any) -> None:
        self.names.append(member.name)


@node_rewriter("Neg")
def neg_to_relu_relu(graph, node):
    """Neg(x) -> Relu(Relu(x)): wrong, but easy to see."""
    return graph.op.Relu(graph.op.Relu(node.input[0]))


@node_rewriter("Relu")
def relu_to_exp(graph, node):
    return graph.op.Exp(node.input[0])


@node_rewriter("Neg")
def neg_again(graph, node):
    return graph.op.Neg(node.input[0])


ORDERS = {
    "topological": "abcy",
    "in_to_out": "abcy",
    "reverse": "ycba",
    "out_to_in": "ycba",
}


@pytest.mark.parametrize("order", ORDERS)
def test_orders(order: str) -> None:
    visited: list[str] = []
    rewritten(CHAIN, WalkingGraphRewriter(visiting(visited), order=order))
    assert "".join(visited) == ORDERS[order]


def test_given_order() -> None:
    visited: list[str] = []
    given = lambda graph: sorted(graph.find(), key=lambda n: (n.op_type, n.output[0]))  # noqa: E731
    rewritten(CHAIN, WalkingGraphRewriter(visiting(visited), order=given))
    assert "".join(visited) == "byac"


def test_named_walks() -> None:
    for walk, expected in ((in2out, "abcy"), (out2in, "ycba")):
        visited: list[str] = []
        rewritten(CHAIN, walk(visiting(visited)))
        assert "".join(visited) == expected


def test_created_nodes() -> None:
    both: tuple[Any, ...] = (neg_to_relu_relu, relu_to_exp)
    walk = WalkingGraphRewriter(*both)
    assert rewritten(CHAIN, walk) == ["Relu", "Relu", "Abs", "Relu", "Relu", "Abs"]
    for order in ORDERS:
        walk = WalkingGraphRewriter(*both, order=order, ignore_newtrees=False)
        assert rewritten(CHAIN, walk) == ["Exp", "Exp", "Abs", "Exp", "Exp", "Abs"]


def test_created_nodes_are_next() -> None:
    for order, expected in (("topological", "a b c y"), ("reverse", "y c b a")):
        visited: list[str] = []
        walk = WalkingGraphRewriter(
            visiting(visited), neg_to_relu_relu, order=order, ignore_newtrees=False
        )
        rewritten(CHAIN, walk)
        names = [name for name in visited if not name.startswith("_")]
        assert list(dict.fromkeys(names)) == expected.split()
        created = [i for i, name in enumerate(visited) if name.startswith("_")]
        assert len(created) == 2 and visited[created[0] - 1] in "ac"


def test_nodes_that_go_are_not_visited() -> None:
    visited: list[str] = []

    @node_rewriter("Abs")
    def abs_neg(graph, node):
        before = graph.before_or_none(node, "Neg")
        return False if before is None else graph.op.Abs(before.input[0])

    walk = WalkingGraphRewriter(abs_neg, visiting(visited), order="reverse")
    assert rewritten(CHAIN, walk) == ["Abs", "Abs"]
    assert visited == []


def test_one_walk_is_not_a_fixed_point() -> None:
    """Neg(Neg(Neg(Neg(x)))): from the inputs, what was replaced is behind."""
    text = "g (float[a] x) => (float[a] y) { a = Relu(x) b = Relu(a) c = Relu(b) y = Relu(c) }"

    @node_rewriter("Relu")
    def relu_relu(graph, node):
        return graph.op.Relu(graph.before(node, "Relu").input[0])

    assert rewritten(text, in2out(relu_relu)) == ["Relu"]
    assert rewritten(text, out2in(relu_relu)) == ["Relu", "Relu"]
    assert op_types(optimized(text, out2in(relu_relu))) == ["Relu"]


def test_an_endless_walk_stops() -> None:
    walk = WalkingGraphRewriter(neg_again, ignore_newtrees=False)
    with pytest.raises(PatternError, match="walking_neg_again goes on for ever"):
        rewritten(CHAIN, walk)
    assert rewritten(CHAIN, WalkingGraphRewriter(neg_again)) == ["Neg", "Abs", "Neg", "Abs"]


def test_patterns_walk_as_well() -> None:
    text = "g (float[a, b] x) => (float[a, b] y) { a = Transpose<perm=[1, 0]>(x) b = Transpose<perm=[1, 0]>(a) y = Relu(b) }"
    assert rewritten(text, WalkingGraphRewriter("TransposeTranspose")) == ["Relu"]


def test_rows() -> None:
    builder = builder_of(CHAIN)
    rows = WalkingGraphRewriter(neg_to_relu_relu).rewrite(builder)
    assert [r["pattern"] for r in rows] == ["apply_neg_to_relu_relu"] * 2 + [
        "match_neg_to_relu_relu"
    ]
    assert rows[-1]["visited"] == 2 and rows[-1]["instances"] == 2


def test_failures() -> None:
    @node_rewriter("Neg")
    def fails(graph, node):
        raise ZeroDivisionError("no")

    @node_rewriter("Neg")
    def wrong(graph, node):
        return graph.op.Cast(node.input[0], to=7)

    for bad in (fails, wrong):
        with pytest.raises(PatternError, match=bad.name):
            rewritten(CHAIN, WalkingGraphRewriter(bad))
        with pytest.warns(UserWarning, match=bad.name):
            after = rewritten(CHAIN, WalkingGraphRewriter(bad, neg_to_relu_relu, on_failure="warn"))
        assert after == ["Relu", "Relu", "Abs", "Relu", "Relu", "Abs"]
        heard = Heard()
        walk = WalkingGraphRewriter(bad, ignore_newtrees=False, on_failure=heard)
        assert rewritten(CHAIN, walk) == ["Neg", "Abs", "Neg", "Abs"]
        assert heard.names == [bad.name] * 2


def test_nodes_put_back_are_visited() -> None:
    """An undone rewrite leaves copies of the nodes of its match, which wait for their turn."""

    @node_rewriter("Abs")
    def wrong(graph, node):
        before = graph.before(node, "Neg")
        return {node.output[0]: graph.op.Cast(before.input[0], to=7), "remove": [before]}

    visited: list[str] = []
    walk = WalkingGraphRewriter(wrong, visiting(visited), order="reverse", on_failure="ignore")
    assert rewritten(CHAIN, walk) == ["Neg", "Abs", "Neg", "Abs"]
    assert visited == ["y", "c", "b", "a"]


def test_stop_after() -> None:
    builder = optimized(CHAIN, WalkingGraphRewriter(neg_to_relu_relu), stop_after=1)
    assert op_types(builder) == ["Relu", "Relu", "Abs", "Neg", "Abs"]


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="Unknown order 'sideways'"):
        WalkingGraphRewriter(neg_again, order="sideways")
    with pytest.raises(OptionError, match="work on whole graphs"):
        WalkingGraphRewriter(GraphRewriter())
    with pytest.raises(OptionError, match="did you mean warn"):
        WalkingGraphRewriter(neg_again, on_failure="warm")
    assert repr(WalkingGraphRewriter(neg_again)) == "walking_neg_again(neg_again)"
    assert WalkingGraphRewriter(neg_again, name="mine").name == "mine"
