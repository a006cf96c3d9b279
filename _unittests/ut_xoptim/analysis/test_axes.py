"""Axes given by an attribute or an input."""

from __future__ import annotations

import pytest

from xoptim import GraphBuilderPatternOptimization
from xoptim.analysis.axes import axes_of, axis_of
from xoptim.analysis.constants import scalar_index
from xoptim.testing import optimizer_of


def _optimizer(text: str, opset: int = 18) -> GraphBuilderPatternOptimization:
    return optimizer_of(text, ["Reshape"], opset)


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
