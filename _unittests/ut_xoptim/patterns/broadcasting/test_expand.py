"""Expand and its neighbours."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

#: pattern -> case -> (before, after)
MODELS = {
    "Expand": {
        "a static shape": (
            "agraph (float[2,3] x) => (float[2,3] y) <int64[2] s = {2, 3}> { y = Expand(x, s) }",
            "agraph (float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
        ),
        "a shorter shape": (
            "agraph (float[2,3] x) => (float[2,3] y) <int64[1] s = {1}> { y = Expand(x, s) }",
            "agraph (float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
        ),
        "an empty tensor": (
            "agraph (float[0,3] x) => (float[0,3] y) <int64[2] s = {0, 1}> { y = Expand(x, s) }",
            "agraph (float[0,3] x) => (float[0,3] y) { y = Identity(x) }",
        ),
        "its own shape": (
            """agraph (float[a,b] x) => (float[a,b] y) {
                n = Neg(x)
                s = Shape(n)
                y = Expand(x, s)
            }""",
            "agraph (float[a,b] x) => (float[a,b] y) { y = Identity(x) }",
        ),
    },
    "ShapeBasedStaticExpand": {
        "unchanged and known dimensions": (
            """agraph (float[a,1,b] x, float[4,c] z) => (float[a,4,b] y) {
                d = Shape <start = 0, end = 1> (x)
                e = Shape <start = 0, end = 1> (z)
                f = Shape <start = 2> (x)
                s = Concat <axis = 0> (d, e, f)
                y = Expand(x, s)
            }""",
            """agraph (float[a,1,b] x, float[4,c] z) => (float[a,4,b] y) <int64[3] s = {1, 4, 1}> {
                y = Expand(x, s)
            }""",
        ),
        "a null dimension": (
            """agraph (float[a,1] x, float[0,b] z) => (float[a,0] y) {
                d = Shape <start = 0, end = 1> (x)
                e = Shape <start = 0, end = 1> (z)
                s = Concat <axis = 0> (d, e)
                y = Expand(x, s)
            }""",
            """agraph (float[a,1] x, float[0,b] z) => (float[a,0] y) <int64[2] s = {1, 0}> {
                y = Expand(x, s)
            }""",
        ),
    },
    "ShapeBasedConcatExpand": {
        "one dimension changes": (
            """agraph (float[a,1,b] x, float[c] z) => (float[a,c,b] y) {
                d = Shape <start = 0, end = 1> (x)
                e = Shape(z)
                f = Shape <start = 2> (x)
                s = Concat <axis = 0> (d, e, f)
                y = Expand(x, s)
            }""",
            """agraph (float[a,1,b] x, float[c] z) => (float[a,c,b] y) <int64[1] one = {1}> {
                e = Shape(z)
                s = Concat <axis = 0> (one, e, one)
                y = Expand(x, s)
            }""",
        ),
    },
    "ExpandBroadcast": {
        "on the left": (
            """agraph (float[1,3] x, float[4,3] z) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Sub(e, z)
            }""",
            "agraph (float[1,3] x, float[4,3] z) => (float[4,3] y) { y = Sub(x, z) }",
        ),
        "on the right, more dimensions": (
            """agraph (float[3] x, float[4,3] z) => (bool[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Less(z, e)
            }""",
            "agraph (float[3] x, float[4,3] z) => (bool[4,3] y) { y = Less(z, x) }",
        ),
    },
    "ShapeBasedExpandBroadcastMatMul": {
        "the other operand has the batch": (
            """agraph (float[1,b,4] x, float[a,4,c] z) => (float[a,b,c] y) {
                d = Shape <start = 0, end = 1> (z)
                f = Shape <start = 1> (x)
                s = Concat <axis = 0> (d, f)
                e = Expand(x, s)
                y = MatMul(e, z)
            }""",
            "agraph (float[1,b,4] x, float[a,4,c] z) => (float[a,b,c] y) { y = MatMul(x, z) }",
            {"atol": 1e-5},
        ),
        "the rank changes, on the right": (
            """agraph (float[2,a,4] x, float[4,c] z) => (float[2,a,c] y) {
                d = Shape <start = 0, end = 1> (x)
                f = Shape(z)
                s = Concat <axis = 0> (d, f)
                e = Expand(z, s)
                y = MatMul(x, e)
            }""",
            "agraph (float[2,a,4] x, float[4,c] z) => (float[2,a,c] y) { y = MatMul(x, z) }",
            {"atol": 1e-5},
        ),
        "both are expanded": (
            """agraph (float[1,b,3,4] x, float[a,1,4,5] z) => (float[a,b,3,5] y) {
                p = Shape <start = 0, end = 1> (z)
                q = Shape <start = 1> (x)
                s = Concat <axis = 0> (p, q)
                e = Expand(x, s)
                u = Shape <start = 1, end = 2> (x)
                v = Shape <start = 2> (z)
                t = Concat <axis = 0> (p, u, v)
                f = Expand(z, t)
                y = MatMul(e, f)
            }""",
            """agraph (float[1,b,3,4] x, float[a,1,4,5] z) => (float[a,b,3,5] y) {
                y = MatMul(x, z)
            }""",
            {"atol": 1e-5},
        ),
    },
    "ShapeBasedExpandBroadcast": {
        "a Tile of a dimension 1": (
            """agraph (float[a,1,384] x, float[a,8,384] z) => (float[a,8,384] y) <int64[3] r = {1, 8, 1}> {
                e = Tile(x, r)
                y = Mul(z, e)
            }""",
            "agraph (float[a,1,384] x, float[a,8,384] z) => (float[a,8,384] y) { y = Mul(z, x) }",
        ),
        "the other operand has the shape": (
            """agraph (float[1,b] x, float[a,b] z) => (float[a,b] y) {
                s = Shape(z)
                e = Expand(x, s)
                y = Sub(e, z)
            }""",
            "agraph (float[1,b] x, float[a,b] z) => (float[a,b] y) { y = Sub(x, z) }",
        ),
        "both are expanded": (
            """agraph (float[1,b] x, float[a,1] z) => (bool[a,b] y) {
                d = Shape <start = 0, end = 1> (z)
                f = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (d, f)
                e = Expand(x, s)
                g = Expand(z, s)
                y = Greater(e, g)
            }""",
            "agraph (float[1,b] x, float[a,1] z) => (bool[a,b] y) { y = Greater(x, z) }",
        ),
        "one is needed": (
            """agraph (float[1,b] x, float[1,b] z, float[a] w) => (float[a,b] y) {
                d = Shape(w)
                f = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (d, f)
                e = Expand(x, s)
                g = Expand(z, s)
                y = Mul(e, g)
            }""",
            """agraph (float[1,b] x, float[1,b] z, float[a] w) => (float[a,b] y) {
                d = Shape(w)
                f = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (d, f)
                g = Expand(z, s)
                y = Mul(x, g)
            }""",
        ),
        "the Expand is used elsewhere": (
            """agraph (float[b] x, float[a,b] z) => (float[a,b] y, float[a,b] t) {
                s = Shape(z)
                e = Expand(x, s)
                y = Sub(e, z)
                t = Neg(e)
            }""",
            """agraph (float[b] x, float[a,b] z) => (float[a,b] y, float[a,b] t) {
                y = Sub(x, z)
                s = Shape(z)
                e = Expand(x, s)
                t = Neg(e)
            }""",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "Expand": [
        (
            "agraph (float[] x, int64[2] s) => (float[] y) { y = Expand(x, s) }",
            "a shape is not known",
        ),
        (
            "agraph (float[1,3] x) => (float[2,3] y) <int64[2] s = {2, 1}> { y = Expand(x, s) }",
            "the shape may change",
        ),
        (
            "agraph (float[3] x) => (float[1,3] y) <int64[2] s = {1, 1}> { y = Expand(x, s) }",
            "the shape may change",
        ),
        # a may be 1
        (
            "agraph (float[a] x, float[b] z) => (float[c] y) { s = Shape(z) y = Expand(x, s) }",
            "the shape may change",
        ),
    ],
    "ShapeBasedStaticExpand": [
        (
            "agraph (float[a,1] x) => (float[a,4] y) <int64[2] s = {1, 4}> { y = Expand(x, s) }",
            "already constant",
        ),
        (
            "agraph (float[] x, int64[2] s) => (float[] y) { y = Expand(x, s) }",
            "a shape is not known",
        ),
        (
            "agraph (float[a] x, float[4,a] z) => (float[4,a] y) { s = Shape(z) y = Expand(x, s) }",
            "the rank changes",
        ),
        (
            "agraph (float[1] x, float[b] z) => (float[b] y) { s = Shape(z) y = Expand(x, s) }",
            "no Concat makes the shape",
        ),
    ],
    "ShapeBasedConcatExpand": [
        (
            """agraph (float[a,1,b] x, float[c] z) => (float[a,c,b] y, int64[3] s) {
                d = Shape <start = 0, end = 1> (x)
                e = Shape(z)
                f = Shape <start = 2> (x)
                s = Concat <axis = 0> (d, e, f)
                y = Expand(x, s)
            }""",
            "the shape is used elsewhere",
        ),
        (
            "agraph (float[1] x, float[b] z) => (float[b] y) { s = Shape(z) y = Expand(x, s) }",
            "no Concat makes the shape",
        ),
        (
            """agraph (float[a, 1] x, float[c] z) => (float[a, c] y) {
                d = Shape(z) s = Concat <axis = 0> (d) y = Expand(x, s) }""",
            "the rank changes",
        ),
        (
            """agraph (float[a,b,1] x, float[c] z) => (float[a,b,c] y) {
                d = Shape <start = 0, end = 2> (x)
                e = Shape(z)
                s = Concat <axis = 0> (d, e)
                y = Expand(x, s)
            }""",
            "a piece may not have one element",
        ),
        (
            """agraph (float[b] x, float[c] z) => (float[c,b] y) {
                d = Shape(x)
                e = Shape(z)
                s = Concat <axis = 0> (e, d)
                y = Expand(x, s)
            }""",
            "the rank changes",
        ),
        (
            """agraph (float[1,1] x, float[c] z, float[d] t) => (float[c,d] y) {
                e = Shape(z)
                f = Shape(t)
                s = Concat <axis = 0> (e, f)
                y = Expand(x, s)
            }""",
            "not one dimension changes",
        ),
        (
            """agraph (float[a,1] x, float[c] z) => (float[a,c] y) <int64[1] one = {1}> {
                e = Shape(z)
                s = Concat <axis = 0> (one, e)
                y = Expand(x, s)
            }""",
            "the others are already 1",
        ),
    ],
    "ExpandBroadcast": [
        (
            "agraph (float[] x, int64[2] s) => (float[] y) { e = Expand(x, s) y = Add(e, e) }",
            "a shape is not known",
        ),
        (
            """agraph (float[1,3] x, float[1,3] z) => (float[4,3] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Sub(e, z)
            }""",
            "the shape of the result would change",
        ),
    ],
    "ShapeBasedExpandBroadcastMatMul": [
        (
            "agraph (float[a,4] x, float[4,c] z) => (float[a,c] y) { y = MatMul(x, z) }",
            "no Expand before",
        ),
        (  # the batch is only in the expanded operand
            """agraph (float[1,b,4] x, float[4,c] z) => (float[3,b,c] y)
            <int64[3] s = {3, 1, 1}> { e = Expand(x, s) y = MatMul(e, z) }""",
            "the shape of the result would change",
        ),
        (  # rows are repeated
            """agraph (float[3,1,4] x, float[3,4,c] z) => (float[3,2,c] y)
            <int64[3] s = {1, 2, 1}> { e = Expand(x, s) y = MatMul(e, z) }""",
            "the shape of the result would change",
        ),
        (  # the sum is over a repeated element
            """agraph (float[3,b,1] x, float[3,4,c] z) => (float[3,b,c] y)
            <int64[3] s = {1, 1, 4}> { e = Expand(x, s) y = MatMul(e, z) }""",
            "the shape of the result would change",
        ),
        (  # a vector would not be a matrix of one row
            """agraph (float[4] x, float[4,c] z) => (float[1,c] y)
            <int64[2] s = {1, 4}> { e = Expand(x, s) y = MatMul(e, z) }""",
            "the shape of the result would change",
        ),
        (  # another dimension
            """agraph (float[1,b,4] x, float[a,4,c] z, float[d] w) => (float[e,b,c] y) {
                p = Shape(w)
                q = Shape <start = 1> (x)
                s = Concat <axis = 0> (p, q)
                e = Expand(x, s)
                y = MatMul(e, z)
            }""",
            "the shape of the result would change",
        ),
    ],
    "ShapeBasedExpandBroadcast": [
        (
            """agraph (float[a,2] x, float[a,8] z) => (float[a,8] y) <int64[2] r = {1, 4}> {
                e = Tile(x, r)
                y = Mul(z, e)
            }""",
            "no Expand before",
        ),
        (
            """agraph (float[1] x, float[4,8] z, int64[2] r) => (float[4,8] y) {
                t = Tile(z, r)
                y = Mul(t, x)
            }""",
            "no Expand before",
        ),
        ("agraph (float[a] x, float[a] z) => (float[a] y) { y = Add(x, z) }", "no Expand before"),
        (
            """agraph (float[] x, float[a,b] z, int64[n] s) => (float[] y) {
                e = Expand(x, s)
                y = Add(e, z)
            }""",
            "a shape is not known",
        ),
        (
            """agraph (float[a,1] x, float[] z) => (float[a,4] y) <int64[2] s = {1, 4}> {
                e = Expand(x, s)
                y = Add(e, z)
            }""",
            "a shape is not known",
        ),
        # z may have one row only
        (
            """agraph (float[1,b] x, float[c,b] z, float[a] w) => (float[d,b] y) {
                d = Shape(w)
                f = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (d, f)
                e = Expand(x, s)
                y = Mul(e, z)
            }""",
            "the shape of the result would change",
        ),
        # the dimensions are the same, not the number of them
        (
            """agraph (float[b] x, float[b] z) => (float[1,1,b] y) <int64[3] s = {1, 1, 1}> {
                e = Expand(x, s)
                y = Sub(e, z)
            }""",
            "the shape of the result would change",
        ),
        (
            """agraph (float[1,b] x, float[b] z) => (float[4,b] y) <int64[2] s = {4, 1}> {
                e = Expand(x, s)
                y = Mul(e, z)
            }""",
            "the shape of the result would change",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


#: x[a,c,1] reshaped to (a, 1, c) is (0, 1, 1) when a and c are 0
RESHAPED = """agraph (float[a,c,1] x, float[d] z) => (float[a,f,e] y)
<int64[1] one = {1}, int64[1] four = {4}> {
    d0 = Shape <start = 0, end = 1> (x)
    d1 = Shape <start = 1, end = 2> (x)
    s = Concat <axis = 0> (d0, one, d1)
    r = Reshape(x, s)
    t = Concat <axis = 0> (d0, NEW, d1)
    y = Expand(r, t)
}"""

#: x[a,1] reshaped to (a, c) is (a, 1) when c, the dimension of another tensor, is 0
OTHER = """agraph (float[a,1] x, float[c] z) => (float[a,c] y) {
    d = Shape <start = 0, end = 1> (x)
    e = Shape(z)
    s = Concat <axis = 0> (d, e)
    r = Reshape(x, s)
    n = Neg(r)
    y = Expand(n, s)
}"""


@pytest.mark.parametrize(
    ("pattern", "text", "reason"),
    [
        ("Expand", OTHER, "the shape may change"),
        ("ShapeBasedStaticExpand", OTHER, "the shape is used elsewhere"),
        ("Expand", RESHAPED.replace("NEW", "one"), "a shape is not known"),
        ("ShapeBasedStaticExpand", RESHAPED.replace("NEW", "four"), "a shape is not known"),
        ("ShapeBasedConcatExpand", RESHAPED.replace("NEW", "four"), "a shape is not known"),
    ],
)
def test_convention_of_reshape_is_not_a_proof(pattern: str, text: str, reason: str) -> None:
    """An element 0 of the target of a Reshape copies a dimension, what is stated is not proven."""
    check_no_match(text, pattern, reason)


@pytest.mark.parametrize(
    ("new", "sizes"),
    [
        *(("", {"a": a, "c": c}) for a, c in ((3, 0), (3, 1), (0, 0), (0, 2))),
        *((new, {"a": a, "c": c}) for new in ("one", "four") for a, c in ((3, 2), (0, 0), (0, 2))),
    ],
)
def test_expanded_reshape_on_sizes_zero(new: str, sizes: dict[str, int]) -> None:
    """All patterns, the result keeps its shape."""
    model = model_from_text(RESHAPED.replace("NEW", new) if new else OTHER, 18)
    x = np.ones((sizes["a"], sizes["c"], 1) if new else (sizes["a"], 1), dtype=np.float32)
    feeds = {"x": x, "z": np.ones(sizes["c"], dtype=np.float32)}
    optimized = optimize_with(model, "default")[0]
    shapes = []
    for proto in (model, optimized):
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        shapes.append(session.run(None, feeds)[0].shape)
    assert shapes[0] == shapes[1]


def test_broadcast_on_sizes_zero_and_one() -> None:
    sizes = [{"a": 0, "b": 3}, {"a": 1, "b": 0}, {"a": 1, "b": 1}]
    for case in ("the other operand has the shape", "both are expanded"):
        before, after = MODELS["ShapeBasedExpandBroadcast"][case]
        check_pattern(before, after, "ShapeBasedExpandBroadcast", sizes=sizes)
    before, after = MODELS["ShapeBasedStaticExpand"]["unchanged and known dimensions"]
    sizes = [{"a": 0, "b": 3, "c": 1}, {"a": 1, "b": 0, "c": 2}]
    check_pattern(before, after, "ShapeBasedStaticExpand", sizes=sizes)


# -- indices that are expanded before they are read, numbers before they are compared

#: what the documentation draws: pattern -> case -> (before, after)
GATHERED_MODELS = {
    "ExpandGatherBroadcast": {
        "positions of every sequence": (
            """agraph (float[9,3] t, int64[1,s] i, float[b,s,3] z) => (float[b,s,3] y) <int64[1] u = {1}> {
                n = Shape<start = 0, end = 1>(z)
                r = Concat<axis = 0>(n, u)
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(z, g)
            }""",
            """agraph (float[9,3] t, int64[1,s] i, float[b,s,3] z) => (float[b,s,3] y) {
                g = Gather(t, i)
                y = Add(z, g)
            }""",
            {"sizes": [{"b": 2, "s": 3}, {"b": 0, "s": 2}, {"b": 3, "s": 0}, {"b": 1, "s": 1}]},
        ),
        "an Expand, another axis, the first operand": (
            """agraph (float[2,9] t, int64[a,1] i, float[2,a,4] z) => (float[2,a,4] y) <int64[2] r = {1, 4}> {
                e = Expand(i, r)
                g = Gather<axis = 1>(t, e)
                y = Sub(g, z)
            }""",
            """agraph (float[2,9] t, int64[a,1] i, float[2,a,4] z) => (float[2,a,4] y) {
                g = Gather<axis = 1>(t, i)
                y = Sub(g, z)
            }""",
        ),
    },
}

#: as MODELS
CASES = {
    "ShapeBasedExpandBroadcast": {
        "the largest of three": (
            """agraph (float[a,b] x, float[a,b] z) => (float[a,b] y) <float c = {2}, float[1] d = {1}> {
                s = Shape(x)
                e = Expand(c, s)
                f = Expand(d, s)
                y = Max(x, e, f)
            }""",
            """agraph (float[a,b] x, float[a,b] z) => (float[a,b] y) <float c = {2}, float[1] d = {1}> {
                y = Max(x, c, d)
            }""",
        ),
    },
}

GATHERED_REFUSED = {
    "ExpandGatherBroadcast": [
        (
            """agraph (float[9,3] t, int64[2,s] i, float[4,s,3] z) => (float[4,s,3] y) <int64[2] r = {2, 1}> {
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(z, g)
            }""",
            "other dimensions than 1 are repeated",
        ),
        (
            """agraph (float[9,3] t, int64[1,s] i, float[3] z) => (float[4,s,3] y) <int64[2] r = {4, 1}> {
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(z, g)
            }""",
            "the other operand does not have this shape",
        ),
        (
            """agraph (float[9,3] t, int64[1,s] i, float[4,s,3] z) => (float[4,s,3] y, float[4,s,3] g) <int64[2] r = {4, 1}> {
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(z, g)
            }""",
            "is not the only use",
        ),
        (
            """agraph (float[9,3] t, int64[1,s] i) => (float[4,s,3] y) <int64[2] r = {4, 1}> {
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(g, g)
            }""",
            "the other operand does not have this shape|both operands are what is read|is not the only use",
        ),
        (
            """agraph (float[9,3] t, int64[1,s] i, float[1,s,3] z) => (float[1,s,3] y) {
                g = Gather(t, i)
                y = Add(z, g)
            }""",
            "no Expand nor Tile before",
        ),
    ],
}

test_gathered_rewrites = rewrite_tests(GATHERED_MODELS)
test_cases = rewrite_tests(CASES)
test_gathered_refuses = refusal_tests(GATHERED_REFUSED)


# -- Where whose operands are expanded

PATTERN = "ShapeBasedExpandBroadcast"


def model(body: str, inputs: str = "bool[b, 1, 3] c, float[b, 4, 1] u, float[b, 4, 1] v") -> str:
    """A choice between two results."""
    return f"""g ({inputs}) => (float[b, 4, 3] y) <int64[3] s = {{1, 4, 1}}, int64[3] t = {{1, 1, 3}},
        float k = {{0.5}}> {{ {body} }}"""


CHOSEN = "y = Where(c, u, v)"
ALL = "d = Expand(c, s) e = Expand(u, t) f = Expand(v, t) y = Where(d, e, f)"
SIZES = {"sizes": ({"b": 2}, {"b": 1}, {"b": 0})}
CHOSEN_MODELS = {
    PATTERN: {
        "all three are expanded": (model(ALL), model(CHOSEN), SIZES),
        "the condition": (model("d = Expand(c, s) y = Where(d, u, v)"), model(CHOSEN), SIZES),
        "a branch": (model("f = Expand(v, t) y = Where(c, u, f)"), model(CHOSEN), SIZES),
        "a number beside": (
            model("d = Expand(c, s) e = Expand(u, t) y = Where(d, e, k)"),
            model("y = Where(c, u, k)"),
            SIZES,
        ),
        "a Tile": (
            model("e = Tile(u, t) y = Where(c, e, k)"),
            model("y = Where(c, u, k)"),
            SIZES,
        ),
        "one Expand is needed": (
            model("e = Expand(u, t) f = Expand(v, t) y = Where(c, e, f)").replace(
                "b, 1, 3] c", "b, 1, 1] c"
            ),
            model("f = Expand(v, t) y = Where(c, u, f)").replace("b, 1, 3] c", "b, 1, 1] c"),
        ),
    }
}

CHOSEN_REFUSED = {
    PATTERN: {
        "the condition gives a dimension": (
            model("d = Expand(c, s) y = Where(d, k, k)"),
            "the shape of the result would change",
        ),
        "no Expand": (model(CHOSEN), "no Expand before"),
        "a dimension is not known": (
            """g (bool[a, 1] c, float[n] u, int64[2] s) => (float[p, q] y) {
            d = Expand(c, s) y = Where(d, u, u) }""",
            "would change|not known",
        ),
    }
}

test_chosen_rewrites = rewrite_tests(CHOSEN_MODELS)
test_chosen_refuses = refusal_tests(CHOSEN_REFUSED)
