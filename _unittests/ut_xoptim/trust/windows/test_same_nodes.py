"""Windows whose sides are the same nodes, which are compared without a session."""

from __future__ import annotations

import numpy as np
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import model_from_text
from xoptim.trust.windows.same_nodes import has_same_nodes
from xoptim.trust.windows.validation import Validation
from xoptim.trust.windows.window import Window

GRAPH = """g (float[n] x, float[n] z) => (float[n] y) <float[2] c = {1, 2}, float[2] d = {1, 2}> {
    p = Exp(x) q = Exp(x) o = Exp(z) r = Add(p, d) y = Neg(r) }"""


def sides(before: str, after: str) -> Window:
    """A window whose sides give the result y, in a graph that has p, q, o, r."""
    graph = GraphBuilder(model_from_text(GRAPH), infer_shapes_options=True).graph
    models = [
        model_from_text(f"g (float[n] x, float[n] p) => (float[n] y) {{ {text} }}")
        for text in (before, after)
    ]
    first, second = (list(m.graph.node) for m in models)
    constants = {"c": np.float32([1, 2]), "d": np.float32([1, 2])}
    return Window(graph, first, second, results=["y"], constants=constants)


@pytest.mark.parametrize(
    "before, after, same",
    [
        # constants
        ("y = Constant<value = float[2] {1, 2}>()", "y = Identity(c)", True),
        ("y = Constant<value = float[2] {1, 3}>()", "y = Identity(c)", False),
        ("y = Constant<value = float[2] {1, 2}>()", "y = Constant<value = float[1] {1}>()", False),
        ("y = Constant<value = float[1] {0}>()", "y = Constant<value = float[1] {-0.0}>()", False),
        ("y = Constant<value_floats = [1.0, 2.0]>()", "y = Identity(c)", False),
        ("t = Identity(c) y = Identity(t)", "y = Identity(c)", True),
        ("y = Abs(c)", "y = Identity(c)", False),
        ("y = Sub(x, c)", "y = Sub(x, d)", True),
        # nodes
        ("t = Exp(x) y = Neg(t)", "y = Neg(p)", True),
        ("y = Neg(p)", "y = Neg(q)", True),
        ("y = Neg(p)", "y = Neg(o)", False),
        ("y = Sub(p, c)", "y = Sub(c, q)", False),
        ("t = Add(q, c) y = Neg(t)", "y = Neg(r)", True),
        ("y = Softmax<axis = 0>(p)", "y = Softmax<axis = 1>(q)", False),
        ("y = Softmax<axis = 0>(p)", "y = Softmax<axis = 0>(q)", True),
        ("y, s = TopK(p, k)", "s, y = TopK(q, k)", False),
        # what may give something else each time
        ("y = RandomUniformLike(p)", "y = RandomUniformLike(q)", False),
        ("y = Dropout(p)", "y = Dropout(q)", False),
        ("y = my.Noise(p)", "y = my.Noise(q)", False),
    ],
)
def test_same_nodes(before: str, after: str, same: bool) -> None:
    """False for what has to be run, and for what differs."""
    assert has_same_nodes(sides(before, after)) == same


def test_nothing_is_compared() -> None:
    window = sides("y = Identity(c)", "y = Identity(c)")
    window.results = []
    assert not has_same_nodes(window)


def test_a_result_that_depends_on_itself() -> None:
    window = sides("t = Neg(y) y = Exp(t)", "t = Neg(y) y = Exp(t)")
    assert not has_same_nodes(window)


def test_too_far() -> None:
    """A long chain is run."""
    chain = "".join(f"t{i + 1} = Neg(t{i}) " for i in range(200))
    text = f"t0 = Exp(x) {chain} y = Neg(t200)"
    assert not has_same_nodes(sides(text, text.replace("x", "z")))
    assert not has_same_nodes(sides(text, text))


def test_certificate() -> None:
    """Nothing was run, and it is said."""
    validation = Validation()
    model = model_from_text(
        "g (float[n] x) => (float[n] y) { a = Exp(x) b = Exp(x) y = Add(a, b) }"
    )
    options = OptimizationOptions(patterns="SameChildren", features=[validation])
    GraphBuilder(model, infer_shapes_options=True, optimization_options=options).optimize()
    (certificate,) = validation.summary.certificates
    assert certificate.text() == "right (nodes); 0 draws"
