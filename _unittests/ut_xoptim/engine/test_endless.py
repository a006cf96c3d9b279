"""Rewrites that make a graph larger without an end."""

from __future__ import annotations

import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xoptim import rewrite, rule
from xoptim.engine.endless import EndlessError
from xoptim.testing import model_from_text

TEXT = "g (float[a] x) => (float[a] y) { n = Neg(x) m = Neg(n) y = Relu(m) }"
#: the same in a body
IN_A_BODY = """g (float[a] x, bool c) => (float[a] y) { y = If(c) <
    then_branch = t () => (float[a] b) { b = Relu(x) },
    else_branch = e () => (float[a] d) { d = Exp(x) }> }"""


@rewrite(root="Relu")
def relu_twice(g, node):
    """Relu(x) -> Relu(Relu(x))."""
    return g.op.Relu(g.op.Relu(node.input[0]))


@rule("Neg(Neg(x)) -> x")
def neg_neg_once(g):
    """Neg(Neg(x)) -> x."""


def optimized(text, on_failure):
    options = OptimizationOptions(patterns=[neg_neg_once, relu_twice], on_failure=on_failure)
    builder = GraphBuilder(model_from_text(text), optimization_options=options)
    return builder, builder.to_onnx


@pytest.mark.parametrize("text", [TEXT, IN_A_BODY], ids=["graph", "body"])
def test_it_fails(text):
    builder, run = optimized(text, "raise")
    before = [r.op_type for r in builder.graph.store.nodes]
    with pytest.raises(PatternError, match="ReluTwice") as error:
        run()
    assert isinstance(error.value, EndlessError) and error.value.names == {"ReluTwice"}
    assert [r.op_type for r in builder.graph.store.nodes] == before
    builder.graph.store.check()


def test_it_goes_on_without_it():
    _, run = optimized(TEXT, "warn")
    with pytest.warns(UserWarning, match="ReluTwice failed"):
        after = run()
    assert [n.op_type for n in after.graph.node] == ["Relu"]


def test_it_says_nothing():
    _, run = optimized(TEXT, "ignore")
    assert [n.op_type for n in run().graph.node] == ["Relu"]


def test_the_user_decides():
    failures = []
    _, run = optimized(TEXT, lambda error, rewrite: failures.append(rewrite.name))
    assert [n.op_type for n in run().graph.node] == ["Relu"] and failures == ["ReluTwice"]
