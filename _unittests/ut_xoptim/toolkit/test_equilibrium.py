"""Rewriters together until none has anything to do."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of, op_types, optimized, rewritten

from xbuilder.errors import PatternError
from xoptim import MatchResult, PatternOptimization
from xoptim.toolkit import (
    EquilibriumGraphRewriter,
    PatternNodeRewriter,
    SubstitutionNodeRewriter,
    WalkingGraphRewriter,
    graph_rewriter,
    in2out,
    node_rewriter,
    out2in,
)

RELUS = "g (float[a] x) => (float[a] y) { a = Relu(x) b = Relu(a) c = Relu(b) y = Relu(c) }"
MIXED = """g (float[a, b] x) => (float[a, b] y) {
    t = Transpose<perm = [1, 0]>(x) u = Transpose<perm = [1, 0]>(t)
    n = Neg(u) m = Neg(n) r = Relu(m) s = Relu(r) y = Exp(s) }"""

A_TO_B = SubstitutionNodeRewriter("Relu", "Abs")
B_TO_A = SubstitutionNodeRewriter("Abs", "Relu")


@node_rewriter("Relu")
def relu_relu(graph, node):
    return graph.op.Relu(graph.before(node, "Relu").input[0])


@node_rewriter("Neg")
def neg_neg(graph, node):
    return graph.before(node, "Neg").input[0]


@graph_rewriter
def exp_to_sigmoid(graph):
    for node in graph.find("Exp"):
        graph.replace({node.output[0]: graph.op.Sigmoid(node.input[0])})


def test_fixed_point() -> None:
    assert rewritten(RELUS, out2in(relu_relu)) == ["Relu", "Relu"]
    assert rewritten(RELUS, EquilibriumGraphRewriter([relu_relu])) == ["Relu"]
    assert rewritten(RELUS, EquilibriumGraphRewriter([out2in(relu_relu)])) == ["Relu"]


def test_every_kind_in_one_run() -> None:
    members = ["TransposeTranspose", neg_neg, out2in(relu_relu), exp_to_sigmoid]
    assert rewritten(MIXED, EquilibriumGraphRewriter(members)) == ["Relu", "Sigmoid"]
    assert op_types(optimized(MIXED, *members)) == ["Relu", "Sigmoid"]
    assert op_types(optimized(MIXED, EquilibriumGraphRewriter(members))) == ["Relu", "Sigmoid"]


def test_one_makes_work_for_the_others() -> None:
    """A rewriter of graphs waits for a pattern, a pattern for a rewriter of graphs."""
    text = "g (float[a] x) => (float[a] y) { a = Exp(x) b = Neg(a) y = Neg(b) }"

    @node_rewriter("Sigmoid")
    def sigmoid_to_relus(graph, node):
        return graph.op.Relu(graph.op.Relu(node.input[0]))

    @graph_rewriter
    def relu_relus(graph):
        for node in graph.find("Relu"):
            before = graph.node_before(node.input[0])
            if before is not None and before.op_type == "Relu":
                graph.replace({node.output[0]: graph.op.Abs(before.input[0])})

    @node_rewriter("Abs")
    def abs_to_neg(graph, node):
        return graph.op.Neg(graph.op.Tanh(node.input[0]))

    @graph_rewriter
    def neg_tanh(graph):
        for node in graph.find("Neg"):
            if graph.node_before(node.input[0]).op_type == "Tanh":
                graph.replace({node.output[0]: graph.op.Softplus(node.input[0])})

    members = [neg_tanh, relu_relus, abs_to_neg, sigmoid_to_relus, exp_to_sigmoid, neg_neg]
    assert rewritten(text, EquilibriumGraphRewriter(members)) == ["Tanh", "Softplus"]
    assert op_types(optimized(text, *members)) == ["Tanh", "Softplus"]


def test_two_that_undo_each_other_are_named() -> None:
    text = "g (float[a] x) => (float[a] y) { a = Relu(x) y = Neg(a) }"
    for members in ([A_TO_B, B_TO_A], [WalkingGraphRewriter(A_TO_B), B_TO_A]):
        with pytest.warns(UserWarning, match="Abs_to_Relu, Relu_to_Abs undo each other"):
            rewritten(text, EquilibriumGraphRewriter(members))
        with pytest.warns(UserWarning, match="Abs_to_Relu, Relu_to_Abs undo each other"):
            optimized(text, *members)


def test_two_graph_rewriters_that_undo_each_other_are_named() -> None:
    @graph_rewriter
    def forth(graph):
        for node in graph.find("Relu"):
            graph.replace({node.output[0]: graph.op.Abs(node.input[0])})

    @node_rewriter("Abs")
    def back(graph, node):
        return graph.op.Relu(node.input[0])

    with pytest.warns(UserWarning, match="back, forth undo each other"):
        rewritten(RELUS, EquilibriumGraphRewriter([forth, back]))


class SigmoidReluPattern(PatternOptimization):
    """Sigmoid(x) -> Relu(x), as a class of patterns."""

    roots = ("Sigmoid",)

    def match(self, g, node, matched):
        return MatchResult(self, [node], self.apply)

    def apply(self, g, node):
        return [g.make_node("Relu", node.input, node.output)]


RELU_TO_ABS, ABS_TO_SIGMOID = A_TO_B, SubstitutionNodeRewriter("Abs", "Sigmoid")
SIGMOID_TO_RELU = SubstitutionNodeRewriter("Sigmoid", "Relu")
RELU_TO_SIGMOID = SubstitutionNodeRewriter("Relu", "Sigmoid")
CIRCLES = {
    "three rewriters": (
        [RELU_TO_ABS, ABS_TO_SIGMOID, SIGMOID_TO_RELU],
        "Abs_to_Sigmoid, Relu_to_Abs, Sigmoid_to_Relu",
    ),
    "three, two of them walk": (
        [in2out(RELU_TO_ABS), ABS_TO_SIGMOID, out2in(SIGMOID_TO_RELU)],
        "Abs_to_Sigmoid, Relu_to_Abs, Sigmoid_to_Relu",
    ),
    "a rewriter and a class": (
        [SigmoidReluPattern(), RELU_TO_SIGMOID],
        "Relu_to_Sigmoid, SigmoidRelu",
    ),
    "a walk and a class": (
        [SigmoidReluPattern(), in2out(RELU_TO_SIGMOID)],
        "Relu_to_Sigmoid, SigmoidRelu",
    ),
    "two rewriters and a class": (
        [RELU_TO_ABS, ABS_TO_SIGMOID, SigmoidReluPattern()],
        "Abs_to_Sigmoid, Relu_to_Abs, SigmoidRelu",
    ),
    "a tuple, a class and another that is right": (
        [
            PatternNodeRewriter(("Relu", "x"), ("Sigmoid", "x"), name="tuple"),
            SigmoidReluPattern(),
            neg_neg,
        ],
        "SigmoidRelu, tuple",
    ),
}


@pytest.mark.parametrize("how", [EquilibriumGraphRewriter, None])
@pytest.mark.parametrize("circle", CIRCLES)
def test_circles_are_stopped_and_all_are_named(circle: str, how: Any) -> None:
    members, names = CIRCLES[circle]
    text = "g (float[a] x) => (float[a] y) { a = Relu(x) n = Neg(a) m = Neg(n) y = Exp(m) }"
    with pytest.warns(UserWarning, match=f"patterns {names} undo each other"):
        if how is None:
            optimized(text, *members)
        else:
            rewritten(text, how(members))


def test_max_use_ratio() -> None:
    with pytest.warns(UserWarning, match=r"applied more than 8 times \(max_use_ratio\)"):
        rewritten(RELUS, EquilibriumGraphRewriter([A_TO_B, B_TO_A], max_use_ratio=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rewritten(RELUS, EquilibriumGraphRewriter([relu_relu], max_use_ratio=1)) == ["Relu"]


def test_final_and_cleanup() -> None:
    order: list[str] = []

    @graph_rewriter
    def final(graph):
        order.append("final")
        exp_to_sigmoid.apply(graph)

    @graph_rewriter
    def cleanup(graph):
        order.append("cleanup")

    @graph_rewriter
    def first(graph):
        order.append("first")

    @node_rewriter("Neg")
    def node(graph, node):
        order.append("node")
        return graph.before(node, "Neg").input[0]

    rewriter = EquilibriumGraphRewriter(
        [first, node, relu_relu], final_rewriters=[final], cleanup_rewriters=[cleanup]
    )
    text = MIXED.replace("Transpose<perm = [1, 0]>", "Abs")
    assert rewritten(text, rewriter) == ["Abs", "Abs", "Relu", "Sigmoid"]
    assert order[0] == "first" and order[1] == "node"
    assert order.index("cleanup") < order.index("final")
    changed = order.index("final")
    assert order[changed + 1] == "cleanup" and order[-2:] == ["final", "first"]
    node_final = EquilibriumGraphRewriter([neg_neg], final_rewriters=[relu_relu])
    assert rewritten(text, node_final) == ["Abs", "Abs", "Relu", "Exp"]


def test_stop_after_counts_every_kind() -> None:
    members = [neg_neg, out2in(relu_relu), exp_to_sigmoid]
    lengths = [
        len(op_types(optimized(MIXED, *members, stop_after=n, passes=("patterns",))))
        for n in range(4)
    ]
    assert lengths == [7, 6, 6, 4]
    inside = EquilibriumGraphRewriter(members)
    again = [
        len(op_types(optimized(MIXED, inside, stop_after=n, passes=("patterns",))))
        for n in range(4)
    ]
    assert again == lengths


def test_failures() -> None:
    @node_rewriter("Relu")
    def fails(graph, node):
        raise KeyError("oops")

    with pytest.raises(PatternError, match="fails"):
        rewritten(RELUS, EquilibriumGraphRewriter([fails, A_TO_B]))
    with pytest.warns(UserWarning, match="fails failed"):
        after = rewritten(RELUS, EquilibriumGraphRewriter([fails, A_TO_B], on_failure="warn"))
    assert after == ["Abs"] * 4


def test_bodies() -> None:
    """Rewriters of graphs run in bodies as patterns do."""
    text = """g (float[a] x, bool c) => (float[a] y) {
        y = If (c) <then_branch = t () => (float[a] p) { p = Exp(x) },
                    else_branch = e () => (float[a] q) { i = Neg(x) q = Neg(i) }> }"""
    builder = optimized(text, neg_neg, exp_to_sigmoid)
    (node,) = builder.nodes
    bodies = {a.name: [n.op_type for n in a.g.node] for a in node.attribute}
    assert bodies == {"then_branch": ["Sigmoid"], "else_branch": ["Identity"]}


def test_rows() -> None:
    builder = builder_of(RELUS)
    rows = EquilibriumGraphRewriter([relu_relu]).rewrite(builder)
    names = {r["pattern"] for r in rows}
    assert names == {"match_relu_relu", "apply_relu_relu", "clean_after_patterns"}
