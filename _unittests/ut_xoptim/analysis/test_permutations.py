"""Permutations are those of numpy."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from onnx import AttributeProto

from xoptim import GraphBuilderPatternOptimization
from xoptim.analysis.permutations import compose, inverse, perm_of
from xoptim.testing import optimizer_of


def _optimizer(text: str, opset: int = 18) -> GraphBuilderPatternOptimization:
    return optimizer_of(text, ["Reshape"], opset)


def test_permutations_are_numpy() -> None:
    x = np.arange(24).reshape((2, 3, 4))
    for p in permutations(range(3)):
        assert compose(p, inverse(p)) == (0, 1, 2)
        for q in permutations(range(3)):
            expected = x.transpose(p).transpose(q)
            assert (x.transpose(compose(p, q)) == expected).all()


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
