"""Shapes that differ by dimensions 1."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.analysis.shapes import ones_difference, padded
from xoptim.testing import model_from_text


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


_ROOT = "w = Add(v, e) s = Sqrt(w)"
_CENTERED = "m = ReduceMean(x, ax) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, ax)"
_MATRIX = "g (float[a, b] x) => (float[a, b] y) <int64[1] ax = {-1}, float e = {0.00001}>"
#: rewrites that wait for a proof that a dimension is not 0: the model, this dimension, the result
POSITIVE = {
    "LayerNormalization": (
        f"{_MATRIX} {{ {_CENTERED} {_ROOT} y = Div(d, s) }}",
        "b",
        ["Shape", "Expand", "LayerNormalization"],
    ),
    "SimplifiedLayerNormalization": (
        f"{_MATRIX} {{ q = Mul(x, x) v = ReduceMean(q, ax) {_ROOT} y = Div(x, s) }}",
        "b",
        ["Shape", "Expand", "SimplifiedLayerNormalization"],
    ),
    "InstanceNormalization": (
        "g (float16[1, 3, b, 5] x) => (float16[1, 3, b, 5] y)"
        "<int64[2] ax = {2, 3}, float16 e = {10}>"
        f"{{ {_CENTERED} {_ROOT} y = Div(d, s) }}",
        "b",
        ["InstanceNormalization"],
    ),
    "ReduceArgTopK": (
        "g (int64[c, b] x) => (int64[p, q] v, int64[p, q] i) <int64[1] a = {0}>"
        "{ v = ReduceMax <keepdims = 1> (x, a) i = ArgMax <axis = 0, keepdims = 1> (x) }",
        "c",
        ["TopK"],
    ),
    "ConcatReshape": (
        "g (float[a, b] x) => (float[b, a] y) { d = Shape <end = 1> (x)"
        "e = Shape <start = 1, end = 2> (x) s = Concat <axis = 0> (e, d) y = Reshape(x, s) }",
        "b",
        ["Shape", "Concat", "Reshape"],
    ),
    "ReshapeReshape": (
        "g (float[a, b] x, float[c] z) => (float[d, e] y) <int64[1] n = {-1}> {"
        "r = Reshape(x, n) d = Shape(z) t = Concat <axis = 0> (d, n) y = Reshape(r, t) }",
        "c",
        ["Shape", "Concat", "Reshape"],
    ),
    "SoftmaxCrossEntropyLossCast": (
        "g (float[a, 5] x, int64[a] l) => (float y)"
        "<int64 m = {-100}, int64 zi = {0}, int64[1] one = {1}, float zf = {0}> {"
        "e = Equal(l, m) keep = Not(e) w = Where(keep, l, zi) u = Unsqueeze(w, one)"
        "p = LogSoftmax <axis = 1> (x) q = GatherElements <axis = 1> (p, u)"
        "s = Squeeze(q, one) n = Neg(s) o = Where(keep, n, zf) t = ReduceSum <keepdims = 0> (o)"
        "k = Cast <to = 1> (keep) c = ReduceSum <keepdims = 0> (k) y = Div(t, c) }",
        "a",
        ["SoftmaxCrossEntropyLoss"],
    ),
    "FusedMatMul": (
        "g (float[k, a, b] x, float[k, a, c] z) => (float[k, b, c] y) {"
        "t = Transpose <perm = [0, 2, 1]> (x) y = MatMul(t, z) }",
        "a",
        ["FusedMatMul"],
    ),
}


@pytest.mark.parametrize("name", POSITIVE)
def test_dimensions_that_are_not_0(name: str) -> None:
    """A user says so for one dimension, or for all."""
    text, dim, expected = POSITIVE[name]
    model = model_from_text(text)
    found = []
    for dims in (False, [dim], True):
        # no kernel of a CPU computes the loss
        processor = "CUDA" if name.startswith("Softmax") else "CPU"
        options = OptimizationOptions(patterns=[name], positive_dims=dims, processor=processor)
        onx = GraphBuilder(model, optimization_options=options).to_onnx()
        found.append([node.op_type for node in onx.graph.node])
    assert sorted(found[0]) == sorted(node.op_type for node in model.graph.node)
    assert found[1:] == [expected, expected]
