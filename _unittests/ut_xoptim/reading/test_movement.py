"""Arithmetic of moves, and arguments read in any opset."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.reading.movement import (
    axes_of,
    axis_of,
    compose,
    inverse,
    normalized,
    ones_difference,
    padded,
    perm_of,
    producer,
    scalar_index,
)
from xoptim.testing import model_from_text


def _optimizer(text: str, opset: int = 18) -> GraphBuilderPatternOptimization:
    builder = GraphBuilder(model_from_text(text, opset), infer_shapes_options=True)
    return GraphBuilderPatternOptimization(builder, ["Reshape"])


def test_permutations_are_numpy() -> None:
    x = np.arange(24).reshape((2, 3, 4))
    for p in permutations(range(3)):
        assert compose(p, inverse(p)) == (0, 1, 2)
        for q in permutations(range(3)):
            expected = x.transpose(p).transpose(q)
            assert (x.transpose(compose(p, q)) == expected).all()


@pytest.mark.parametrize(
    ("axes", "rank", "expected"),
    [
        ((-1, 0), 3, (2, 0)),
        ((1, 2), None, (1, 2)),
        ((-1,), None, None),
        ((3,), 3, None),
        ((-4,), 3, None),
        ((2, -1), 3, None),
        ((), 3, ()),
    ],
)
def test_normalized(axes: tuple, rank: int | None, expected: tuple | None) -> None:
    assert normalized(axes, rank) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("a", 1, 3), ("a", 3), ("Squeeze", (1,))),
        (("a", 3), (1, "a", 1, 3), ("Unsqueeze", (0, 2))),
        ((1, "a"), (1, 1, "a"), ("Unsqueeze", (1,))),
        (("a", "b"), ("a", "b"), ("Identity", ())),
        ((1,), (), ("Squeeze", (0,))),
        ((1, "a"), ("a", 1), None),
        ((1, "a"), ("a", 1, 1), None),
        (("a",), ("b", 1), None),
        (("a", "a"), ("a",), None),
    ],
)
def test_ones_difference(before: tuple, after: tuple, expected: Any) -> None:
    assert ones_difference(before, after, lambda a, b: a == b) == expected


def test_padded() -> None:
    assert padded(("a",), 3) == (1, 1, "a")


@pytest.mark.parametrize(
    ("node", "opset", "expected"),
    [
        ("Squeeze <axes = [1]> (x)", 11, (1,)),
        ("Unsqueeze <axes = [-1]> (x)", 11, (-1,)),
        ("Squeeze(x, k)", 13, (0, -1)),
        ("Squeeze(x)", 13, (0, 2)),
        ("Squeeze(n)", 13, None),
        ("Squeeze(x, d)", 13, None),
    ],
)
def test_axes_of(node: str, opset: int, expected: tuple | None) -> None:
    g = _optimizer(
        f"""agraph (float[1,4,1] x, float[1,a] n, int64[1] d) => (float[] y)
        <int64[2] k = {{0, -1}}> {{ y = {node} }}""",
        opset,
    )
    assert axes_of(g, g.node_before("y")) == expected


def test_perm_of() -> None:
    text = "agraph ({x} x) => (float[] y) {{ y = Transpose{p}(x) }}"
    cases = [
        ("float[a,b,c]", "", (2, 1, 0)),
        ("float[]", "", None),
        ("float[a,b]", " <perm = [0, 1]> ", (0, 1)),
        ("float[]", " <perm = [0, 2]> ", None),
    ]
    for x, p, expected in cases:
        g = _optimizer(text.format(x=x, p=p))
        assert perm_of(g, g.node_before("y")) == expected
    node = type(g.node_before("y"))()
    node.CopyFrom(g.node_before("y"))
    node.attribute[0].CopyFrom(AttributeProto(name="perm", ref_attr_name="p", type=7))
    assert perm_of(g, node) is None


def test_producer_looks_at_the_domain() -> None:
    g = _optimizer(
        """agraph (float[a] x) => (float[a] y, float[] z) {
            y = Neg(x)
            z = com.microsoft.Neg(y)
        }"""
    )
    assert producer(g, "y", "Abs", "Neg").op_type == "Neg"
    assert producer(g, "y", "Abs") is None
    assert producer(g, "z", "Neg") is None
    assert producer(g, "x", "Neg") is None


def test_axis_and_index() -> None:
    g = _optimizer(
        """agraph (float[a,b] x, int64 d) => (float[] y)
        <int64[1] i = {-1}, int64 j = {2}, int64[2] k = {0, 1}> {
            y = Gather <axis = -1> (x, j)
        }"""
    )
    node = g.node_before("y")
    assert axis_of(g, node, 2) == 1
    assert axis_of(g, node, None) is None
    assert axis_of(g, node, 0) is None
    assert [scalar_index(g, n) for n in "ijkdx"] == [-1, 2, None, None, None]
