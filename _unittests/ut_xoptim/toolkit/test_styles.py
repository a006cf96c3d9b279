"""One rewrite in every style gives one graph."""

from __future__ import annotations

from typing import Any

import pytest
from onnxscript.rewriter import pattern
from ut_xoptim.toolkit.rewriter_runs import builder_of, optimized

from xbuilder import GraphBuilder
from xoptim import EasyPatternOptimization, MatchResult, PatternOptimization, Rewrite, rewrite, rule
from xoptim.declarative import equation_from_tuples
from xoptim.testing import canonical_graph
from xoptim.toolkit import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    NodeRewriter,
    PatternNodeRewriter,
    SequentialGraphRewriter,
    WalkingGraphRewriter,
    graph_rewriter,
    node_rewriter,
)
from xoptim.toolkit.onnxscript_rules import patterns_from_rules
from xoptim.toolkit.relations import KanrenRelationSub, eq, lall, op, provided, var
from xoptim.toolkit.selected_nodes import pattern_from_nodes

#: Div(Mul(x, y), y) -> x: alone, in a chain, used elsewhere, under another order
MODEL = """g (float[a, b] x, float[a, b] y, float[a, b] z) => (float[a, b] v, float[a, b] w) {
    m = Mul(x, y) d = Div(m, y) r = Relu(d)
    n = Mul(r, z) e = Div(n, z) p = Mul(e, y) f = Div(p, y)
    k = Mul(f, z) h = Div(k, z) i = Sub(k, h)
    j = Mul(y, i) l = Div(j, z) v = Neg(l) w = Exp(i) }"""


class ClassPattern(PatternOptimization):
    """Div(Mul(x, y), y) -> x."""

    roots = ("Div",)

    def match(self, g, node, matched):
        before = g.node_before(node.input[0])
        if before is None or before.op_type != "Mul" or before.input[1] != node.input[1]:
            return self.none(node, "no Mul before")
        if g.is_used_more_than_once(node.input[0]):
            return self.none(node, "used elsewhere")
        return MatchResult(self, [before, node], self.apply)

    def apply(self, g, mul, div):
        return [g.make_node("Identity", [mul.input[0]], [div.output[0]])]


class RewritePattern(Rewrite):
    """Div(Mul(x, y), y) -> x."""

    roots = ("Div",)
    sole_use = True

    def rewrite(self, g, node):
        before = g.before(node, "Mul")
        g.require(before.input[1] == node.input[1], "another operand")
        return before.input[0]


class EasyPattern(EasyPatternOptimization):
    """Div(Mul(x, y), y) -> x."""

    def match_pattern(self, g, x, y):
        return g.op.Div(g.op.Mul(x, y), y)

    def apply_pattern(self, g, x, y):
        return g.op.Identity(x)


@rewrite(root="Div", after="Mul", sole_use=True)
def with_rewrite(g, node):
    return RewritePattern.rewrite(None, g, node)


@rule("Div(Mul(x, y), y) -> x")
def with_rule(g):
    """Div(Mul(x, y), y) -> x."""


class Node(NodeRewriter):
    """Div(Mul(x, y), y) -> x."""

    def tracks(self):
        return ["Div"]

    def transform(self, graph, node):
        mul = graph.before_or_none(node, "Mul")
        if mul is None or mul.input[1] != node.input[1]:
            return False
        return False if graph.is_used_more_than_once(mul.output[0]) else [mul.input[0]]


@node_rewriter("Div")
def with_remove(graph, node):
    mul = graph.node_before(node.input[0])
    if mul.op_type != "Mul" or mul.input[1] != node.input[1]:
        return False
    return {node.output[0]: mul.input[0], "remove": [mul]}


class Graph(GraphRewriter):
    """Div(Mul(x, y), y) -> x."""

    def apply(self, graph):
        for node in graph.find("Div"):
            answer = Node().transform(graph, node)
            if answer:
                graph.replace({node.output[0]: answer[0]})


@graph_rewriter
def with_graph(graph):
    Graph().apply(graph)


def related(quotient: Any, x: Any) -> Any:
    """Div(Mul(x, y), y) and x."""
    y = var()
    return eq(quotient, op.Div(op.Mul(x, y), y))


def related_if_used_once(quotient: Any, x: Any) -> Any:
    """The same, when nothing else reads the product."""
    return lall(related(quotient, x), provided(is_read_once, quotient))


def is_read_once(quotient: Any) -> bool:
    store = quotient.graph.store
    return not store.is_used_more_than_once(quotient.term[1].name)


ONNXSCRIPT = patterns_from_rules(
    pattern.RewriteRule(
        lambda op, x, y: op.Div(op.Mul(x, y), y), lambda op, x, y: op.Identity(x), name="div_mul"
    )
)
SELECTED = pattern_from_nodes(
    "Selected",
    builder_of(
        "g (float[a, b] x, float[a, b] y) => (float[a, b] d) { m = Mul(x, y) d = Div(m, y) }"
    ),
    ["m", "d"],
    lambda g, x, y: g.op.Identity(x),
)
TUPLES = PatternNodeRewriter(("Div", ("Mul", "x", "y"), "y"), "x")
STYLES: dict[str, Any] = {
    "class": ClassPattern(),
    "method rewrite": RewritePattern(),
    "easy pattern": EasyPattern(),
    "function": with_rewrite,
    "equation": with_rule,
    "equation of tuples": equation_from_tuples("DivMul", ("Div", ("Mul", "x", "y"), "y"), "x"),
    "node rewriter": Node(),
    "dictionary": with_remove,
    "tuples": TUPLES,
    "rule of onnxscript": ONNXSCRIPT[0],
    "nodes of a model": SELECTED,
    "relation": KanrenRelationSub(related_if_used_once, "Div"),
    "graph rewriter": Graph(),
    "function of a graph": with_graph,
    "walk": WalkingGraphRewriter(Node()),
    "walk backwards": WalkingGraphRewriter(TUPLES, order="reverse"),
    "walk with created nodes": WalkingGraphRewriter(with_rule, ignore_newtrees=False),
    "sequence": SequentialGraphRewriter(Node()),
    "equilibrium": EquilibriumGraphRewriter([Node()]),
    "nested": EquilibriumGraphRewriter(
        [SequentialGraphRewriter(EquilibriumGraphRewriter([TUPLES]))]
    ),
}
#: the styles whose tuples and easy patterns try both orders of Mul find nothing more here
REMAINING = ["Relu", "Mul", "Div", "Sub", "Mul", "Div", "Neg", "Exp"]


def text_of(builder: GraphBuilder) -> list[str]:
    return canonical_graph(builder.to_onnx(optimize=False).graph)


@pytest.mark.parametrize("style", STYLES)
def test_one_graph(style: str) -> None:
    expected = text_of(optimized(MODEL, ClassPattern()))
    found = optimized(MODEL, STYLES[style])
    assert text_of(found) == expected
    assert sorted(n.op_type for n in found.nodes) == sorted(REMAINING)


@pytest.mark.parametrize("style", [k for k, v in STYLES.items() if isinstance(v, GraphRewriter)])
def test_alone(style: str) -> None:
    """A rewriter of graphs runs without the passes as well."""
    builder = builder_of(MODEL)
    STYLES[style].rewrite(builder)
    assert sorted(n.op_type for n in builder.nodes) == sorted(REMAINING)


def test_all_together() -> None:
    found = optimized(MODEL, *STYLES.values(), "default")
    assert sorted(n.op_type for n in found.nodes) == sorted(REMAINING)
