"""Rewrites that apply again to what they wrote, and those that only look so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization, rewrite, rule
from xoptim.engine.endless import EndlessError
from xoptim.engine.oscillation import PATIENCE, REPEATS
from xoptim.testing import model_from_text


def graph_of(body: str, inputs: str = "float[a] X") -> GraphBuilder:
    return GraphBuilder(model_from_text(f"g ({inputs}) => (float[a] Y) {{ {body} }}"))


def chain(op_types: list[str]) -> GraphBuilder:
    names = ["X", *[f"r{i}" for i in range(1, len(op_types))], "Y"]
    rows = zip(op_types, names[:-1], names[1:], strict=True)
    return graph_of(" ".join(f"{out} = {op}({read})" for op, read, out in rows))


@rewrite(root="Relu")
def relu_twice(g, node):
    return g.op.Relu(g.op.Relu(node.input[0]))


@rewrite(root="Exp")
def exp_plus_zero(g, node):
    return g.op.Add(g.op.Exp(node.input[0]), np.zeros(1, dtype=np.float32))


@rule("Neg(x) -> Abs(Abs(x))")
def neg_abs(g):
    """Wrong, and endless with the next one."""


@rule("Abs(x) -> Neg(x)")
def abs_neg(g):
    """The next one."""


@rewrite(root="Add")
def commuted(g, node):
    return g.op.Add(node.input[1], node.input[0])


def applications(optimizer: GraphBuilderPatternOptimization) -> int:
    rows = optimizer.statistics.rows
    return sum(r["instances"] for r in rows if r["pattern"].startswith("apply_"))


@pytest.mark.parametrize(
    ("patterns", "body", "names", "most"),
    [
        ([relu_twice], "Y = Relu(X)", {"ReluTwice"}, 2 ** (REPEATS + 2)),
        ([exp_plus_zero], "Y = Exp(X)", {"ExpPlusZero"}, REPEATS + 2),
        ([neg_abs, abs_neg], "Y = Neg(X)", {"NegAbs", "AbsNeg"}, 2 ** (REPEATS + 2)),
    ],
    ids=["branches", "chain", "two"],
)
def test_endless_growth_is_seen_early(
    patterns: list[Any], body: str, names: set[str], most: int
) -> None:
    """After a few generations, and the graph is what it was."""
    builder = graph_of(body)
    before = [r.op_type for r in builder.graph.store.nodes]
    optimizer = GraphBuilderPatternOptimization(builder, [p() for p in patterns])
    with pytest.raises(EndlessError, match=f"{REPEATS} times in the same way") as error:
        optimizer.optimize()
    assert error.value.names == names and applications(optimizer) <= most
    assert [r.op_type for r in builder.graph.store.nodes] == before


def test_sooner_in_a_graph_that_doubles() -> None:
    builder = chain(["Relu"] * 300)
    optimizer = GraphBuilderPatternOptimization(builder, [relu_twice()])
    with pytest.raises(EndlessError, match="3 times in the same way"):
        optimizer.optimize()


def test_a_place_that_comes_back_is_compared_at_once() -> None:
    builder = graph_of("Y = Add(X, Z)", "float[a] X, float[a] Z")
    optimizer = GraphBuilderPatternOptimization(builder, [commuted()])
    with pytest.warns(UserWarning, match="Commuted undo each other"):
        optimizer.optimize()
    assert applications(optimizer) < PATIENCE / 2


# -- they end


@rule("Abs(Relu(x)) -> Relu(Abs(x))")
def relu_down(g):
    """Each Relu goes down through every Abs, which were all written by moves of other ones."""


@rule("Relu(Relu(x)) -> Relu(x)")
def one_relu(g):
    """The Relu it wrote is merged with the next one of the model."""


@rewrite(root="Mul")
def distributed(g, node):
    """(a + b) * c -> a * c + b * c, the sum stays: it is an output."""
    total = g.node_before(node.input[0])
    if total is None or total.op_type != "Add":
        return None
    return g.op.Add(*[g.op.Mul(name, node.input[1]) for name in total.input])


@rewrite(root="Pow")
def unrolled(g, node):
    """x ** n -> x * x ** (n - 1)."""
    x, exponent = node.input[0], float(g.constant_of(node.input[1]))
    if exponent <= 1:
        return x
    return g.op.Mul(x, g.op.Pow(x, np.array(exponent - 1, dtype=np.float32)))


@rewrite(root="Elu")
def larger_alpha(g, node):
    alpha = node.attribute[0].f
    return None if alpha >= 20 else g.op.Relu(g.op.Elu(node.input[0], alpha=alpha + 1))


@pytest.mark.parametrize(
    ("pattern", "builder", "count"),
    [
        (relu_down, lambda: chain(["Relu"] * 15 + ["Abs"] * 15), 225),
        (one_relu, lambda: chain(["Relu"] * 500), 499),
        (distributed, lambda: sums(20), 20),
        (unrolled, lambda: graph_of("n = Constant<value_float = 30.0>() Y = Pow(X, n)"), 30),
        (larger_alpha, lambda: graph_of("Y = Elu<alpha = 1.0>(X)"), 19),
    ],
    ids=["moves", "merges", "sums", "exponents", "attributes"],
)
def test_these_end(pattern: Any, builder: Any, count: int) -> None:
    """They apply again and again to what they wrote, and make progress."""
    optimizer = GraphBuilderPatternOptimization(builder(), [pattern()])
    optimizer.optimize()
    assert applications(optimizer) == count


def sums(terms: int) -> GraphBuilder:
    """A product by a sum whose partial sums are all outputs."""
    adds = " ".join(f"t{i + 1} = Add(t{i}, X)" for i in range(terms))
    outputs = ", ".join(f"float[a] t{i + 1}" for i in range(terms))
    return GraphBuilder(
        model_from_text(
            f"g (float[a] X, float[a] t0) => (float[a] Y, {outputs}) "
            f"{{ {adds} Y = Mul(t{terms}, X) }}"
        )
    )
