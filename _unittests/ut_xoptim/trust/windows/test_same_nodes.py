"""Windows of constants, which are compared without a session."""

from __future__ import annotations

import numpy as np
import pytest

from xbuilder import GraphBuilder
from xoptim.testing import model_from_text
from xoptim.trust.windows.same_nodes import has_same_nodes
from xoptim.trust.windows.window import Window


def sides(before: str, after: str) -> Window:
    """A window whose sides give the result y."""
    models = [
        model_from_text(f"g () => (float[n] y) <float[2] c = {{1, 2}}> {{ {text} }}")
        for text in (before, after)
    ]
    graph = GraphBuilder(models[0], infer_shapes_options=True).graph
    first, second = (list(m.graph.node) for m in models)
    constants = {"c": np.float32([1, 2])}
    return Window(graph, first, second, results=["y"], constants=constants)


@pytest.mark.parametrize(
    "before, after, same",
    [
        ("y = Constant<value = float[2] {1, 2}>()", "y = Identity(c)", True),
        ("y = Constant<value = float[2] {1, 3}>()", "y = Identity(c)", False),
        ("y = Constant<value_floats = [1.0, 2.0]>()", "y = Identity(c)", False),
        ("t = Identity(c) y = Identity(t)", "y = Identity(c)", True),
        ("y = Abs(c)", "y = Identity(c)", False),
    ],
)
def test_same_constants(before: str, after: str, same: bool) -> None:
    """False for what has to be run, and for values that differ."""
    assert has_same_nodes(sides(before, after)) == same


def test_nothing_is_compared() -> None:
    window = sides("y = Identity(c)", "y = Identity(c)")
    window.results = []
    assert not has_same_nodes(window)
