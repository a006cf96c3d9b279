"""Transpose and its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "TransposeSqueezeUnsqueeze": {
        "a dimension 1 changes its place": (
            """g (float[a, 3, 1, b] x) => (float[a, b, 3, 1] y) <int64[1] one = {1}, int64[1] last = {-1}>
            { t = Transpose<perm = [0, 2, 3, 1]>(x) s = Squeeze(t, one) y = Unsqueeze(s, last) }""",
            "g (float[a, 3, 1, b] x) => (float[a, b, 3, 1] y) { y = Transpose<perm = [0, 3, 1, 2]>(x) }",
        ),
        "it goes back": (
            """g (float[a, 3, 1, b] x) => (float[a, 3, 1, b] y) <int64[1] one = {1}, int64[1] two = {2}>
            { t = Transpose<perm = [0, 2, 1, 3]>(x) s = Squeeze(t, one) y = Unsqueeze(s, two) }""",
            "g (float[a, 3, 1, b] x) => (float[a, 3, 1, b] y) { y = Identity(x) }",
        ),
        "two dimensions": (
            """g (float[1, a, b, 1] x) => (float[b, 1, a, 1] y) <int64[2] in = {0, 3}, int64[2] out = {1, 3}>
            { t = Transpose<perm = [0, 2, 1, 3]>(x) s = Squeeze(t, in) y = Unsqueeze(s, out) }""",
            "g (float[1, a, b, 1] x) => (float[b, 1, a, 1] y) { y = Transpose<perm = [2, 0, 1, 3]>(x) }",
        ),
        "inner results are read elsewhere": (
            """g (float[a, 3, 1, b] x) => (float[a, b, 3, 1] y, float[a, b, 3] s)
            <int64[1] one = {1}, int64[1] last = {-1}>
            { t = Transpose<perm = [0, 2, 3, 1]>(x) s = Squeeze(t, one) y = Unsqueeze(s, last) }""",
            """g (float[a, 3, 1, b] x) => (float[a, b, 3, 1] y, float[a, b, 3] s) <int64[1] one = {1}>
            { t = Transpose<perm = [0, 2, 3, 1]>(x) s = Squeeze(t, one)
            y = Transpose<perm = [0, 3, 1, 2]>(x) }""",
        ),
    },
    "TransposeConcat": {
        "two pieces": (
            """agraph (float[a,b,3] x, float[a,c,3] z) => (float[a,3,d] y) {
                t = Transpose <perm = [0, 2, 1]> (x)
                u = Transpose <perm = [0, 2, 1]> (z)
                y = Concat <axis = 2> (t, u)
            }""",
            """agraph (float[a,b,3] x, float[a,c,3] z) => (float[a,3,d] y) {
                c = Concat <axis = 1> (x, z)
                y = Transpose <perm = [0, 2, 1]> (c)
            }""",
        ),
        "an axis counted from the end, reversed dimensions": (
            """agraph (float[a,2,c] x, float[a,3,c] z, float[a,1,c] w) => (float[c,6,a] y) {
                t = Transpose(x)
                u = Transpose <perm = [2, 1, 0]> (z)
                v = Transpose(w)
                y = Concat <axis = -2> (t, u, v)
            }""",
            """agraph (float[a,2,c] x, float[a,3,c] z, float[a,1,c] w) => (float[c,6,a] y) {
                c = Concat <axis = 1> (x, z, w)
                y = Transpose <perm = [2, 1, 0]> (c)
            }""",
        ),
    },
    "TransposeTranspose": {
        "cancels": (
            """agraph (float[a,b,c] x) => (float[a,b,c] y) {
                t = Transpose <perm = [1, 2, 0]> (x)
                y = Transpose <perm = [2, 0, 1]> (t)
            }""",
            "agraph (float[a,b,c] x) => (float[a,b,c] y) { y = Identity(x) }",
        ),
        "cancels inside": (
            """agraph (float[a,b,c] x) => (float[a,b,c] y) {
                n = Neg(x)
                t = Transpose <perm = [0, 2, 1]> (n)
                u = Transpose <perm = [0, 2, 1]> (t)
                y = Abs(u)
            }""",
            "agraph (float[a,b,c] x) => (float[a,b,c] y) { n = Neg(x) y = Abs(n) }",
        ),
        "one Transpose": (
            """agraph (float[a,b,c,4] x) => (float[c,4,b,a] y) {
                t = Transpose <perm = [1, 2, 3, 0]> (x)
                y = Transpose <perm = [1, 2, 0, 3]> (t)
            }""",
            """agraph (float[a,b,c,4] x) => (float[c,4,b,a] y) {
                y = Transpose <perm = [2, 3, 1, 0]> (x)
            }""",
        ),
        "a chain of three": (
            """agraph (float[a,b,c] x) => (float[b,c,a] y) {
                t = Transpose <perm = [1, 2, 0]> (x)
                u = Transpose <perm = [1, 2, 0]> (t)
                y = Transpose <perm = [2, 0, 1]> (u)
            }""",
            """agraph (float[a,b,c] x) => (float[b,c,a] y) {
                y = Transpose <perm = [1, 2, 0]> (x)
            }""",
        ),
        "no perm at all": (
            """agraph (float[a,b,c] x) => (float[a,b,c] y) {
                t = Transpose(x)
                y = Transpose(t)
            }""",
            "agraph (float[a,b,c] x) => (float[a,b,c] y) { y = Identity(x) }",
        ),
        "no perm first": (
            """agraph (float[a,b,c] x) => (float[b,c,a] y) {
                t = Transpose(x)
                y = Transpose <perm = [1, 0, 2]> (t)
            }""",
            """agraph (float[a,b,c] x) => (float[b,c,a] y) {
                y = Transpose <perm = [1, 2, 0]> (x)
            }""",
        ),
        "no perm second": (
            """agraph (float[a,b,c] x) => (float[a,c,b] y) {
                t = Transpose <perm = [1, 2, 0]> (x)
                y = Transpose(t)
            }""",
            """agraph (float[a,b,c] x) => (float[a,c,b] y) {
                y = Transpose <perm = [0, 2, 1]> (x)
            }""",
        ),
        "the inner result has another reader": (
            """agraph (float[a,b,c] x) => (float[c,b,a] y, float[b,c,a] z) {
                t = Transpose <perm = [1, 2, 0]> (x)
                y = Transpose <perm = [1, 0, 2]> (t)
                z = Neg(t)
            }""",
            """agraph (float[a,b,c] x) => (float[c,b,a] y, float[b,c,a] z) {
                y = Transpose <perm = [2, 1, 0]> (x)
                t = Transpose <perm = [1, 2, 0]> (x)
                z = Neg(t)
            }""",
        ),
        "the inner result is an output": (
            """agraph (float[a,b] x) => (float[a,b] y, float[b,a] t) {
                t = Transpose <perm = [1, 0]> (x)
                u = Transpose <perm = [1, 0]> (t)
                y = Neg(u)
            }""",
            """agraph (float[a,b] x) => (float[a,b] y, float[b,a] t) {
                y = Neg(x)
                t = Transpose <perm = [1, 0]> (x)
            }""",
        ),
    },
    "SwapUnsqueezeTranspose": {
        "a cyclic permutation": (
            """agraph (float[a,b] x) => (float[b,1,a] y) <int64[1] k = {0}> {
                u = Unsqueeze(x, k)
                y = Transpose <perm = [2, 0, 1]> (u)
            }""",
            """agraph (float[a,b] x) => (float[b,1,a] y) <int64[1] k = {1}> {
                t = Transpose <perm = [1, 0]> (x)
                y = Unsqueeze(t, k)
            }""",
        ),
        "several axes, one negative": (
            """agraph (float[a,b,c] x) => (float[1,c,a,1,b] y) <int64[2] k = {-1, 1}> {
                u = Unsqueeze(x, k)
                y = Transpose <perm = [4, 3, 0, 1, 2]> (u)
            }""",
            """agraph (float[a,b,c] x) => (float[1,c,a,1,b] y) <int64[2] k = {0, 3}> {
                t = Transpose <perm = [2, 0, 1]> (x)
                y = Unsqueeze(t, k)
            }""",
        ),
        "only the new axis moves": (
            """agraph (float[a,b] x) => (float[a,1,b] y) <int64[1] k = {0}> {
                u = Unsqueeze(x, k)
                y = Transpose <perm = [1, 0, 2]> (u)
            }""",
            """agraph (float[a,b] x) => (float[a,1,b] y) <int64[1] k = {1}> {
                y = Unsqueeze(x, k)
            }""",
        ),
        "no perm": (
            """agraph (float[a,b] x) => (float[b,a,1] y) <int64[1] k = {0}> {
                u = Unsqueeze(x, k)
                y = Transpose(u)
            }""",
            """agraph (float[a,b] x) => (float[b,a,1] y) <int64[1] k = {2}> {
                t = Transpose <perm = [1, 0]> (x)
                y = Unsqueeze(t, k)
            }""",
        ),
    },
    "TransposeEqualReshape": {
        "a static shape": (
            """agraph (float[2,1,3,1] x) => (float[1,2,3,1] y) {
                y = Transpose <perm = [1, 0, 2, 3]> (x)
            }""",
            """agraph (float[2,1,3,1] x) => (float[1,2,3,1] y) <int64[4] s = {1, 2, 3, 1}> {
                y = Reshape(x, s)
            }""",
        ),
        "unknown dimensions stay": (
            """agraph (float[a,1,3,1,b] x) => (float[a,3,1,1,b] y) {
                y = Transpose <perm = [0, 2, 1, 3, 4]> (x)
            }""",
            """agraph (float[a,1,3,1,b] x) => (float[a,3,1,1,b] y) <int64[5] s = {0, 3, 1, 1, 0}> {
                y = Reshape(x, s)
            }""",
        ),
        "an unknown dimension moves": (
            """agraph (float[2,a,1] x) => (float[2,1,a] y) {
                y = Transpose <perm = [0, 2, 1]> (x)
            }""",
            """agraph (float[2,a,1] x) => (float[2,1,a] y) <int64[3] s = {2, 1, -1}> {
                y = Reshape(x, s)
            }""",
        ),
        "no perm": (
            "agraph (float[1,a] x) => (float[a,1] y) { y = Transpose(x) }",
            """agraph (float[1,a] x) => (float[a,1] y) <int64[2] s = {-1, 1}> {
                y = Reshape(x, s)
            }""",
        ),
        "an empty tensor": (
            "agraph (float[1,0] x) => (float[0,1] y) { y = Transpose(x) }",
            """agraph (float[1,0] x) => (float[0,1] y) <int64[2] s = {-1, 1}> {
                y = Reshape(x, s)
            }""",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "TransposeSqueezeUnsqueeze": {
        "no Transpose": (
            "g (float[a, 1, b] x) => (float[a, b, 1] y) <int64[1] one = {1}, int64[1] last = {-1}>"
            "{ s = Squeeze(x, one) y = Unsqueeze(s, last) }",
            "no Transpose before",
        ),
        "fewer dimensions": (
            """g (float[1, 1, a, b] x) => (float[b, a, 1] y) <int64[2] in = {2, 3}, int64[1] last = {-1}>
            { t = Transpose<perm = [3, 2, 0, 1]>(x) s = Squeeze(t, in) y = Unsqueeze(s, last) }""",
            "other dimensions are left",
        ),
        "the axes are an input": (
            """g (float[a, 3, 1, b] x, int64[1] k) => (float[c, d, e, f] y) <int64[1] one = {1}>
            { t = Transpose<perm = [0, 2, 3, 1]>(x) s = Squeeze(t, one) y = Unsqueeze(s, k) }""",
            "the axes are not known",
        ),
    },
    "TransposeConcat": [
        (
            """agraph (float[a,b] x, float[b,a] z) => (float[c,a] y) {
                t = Transpose(x)
                y = Concat <axis = 0> (t, z)
            }""",
            "a piece is not transposed",
        ),
        (
            "agraph (float[a,b] x) => (float[b,a] y) { t = Transpose(x) y = Concat <axis = 0> (t) }",
            "a piece is not transposed",
        ),
        (
            """agraph (float[a,b] x, float[a,b] z) => (float[c,a] y, float[b,a] t) {
                t = Transpose(x)
                u = Transpose(z)
                y = Concat <axis = 0> (t, u)
            }""",
            "a piece is used elsewhere",
        ),
        (
            """agraph (float[a,b] x) => (float[c,a] y) {
                t = Transpose(x)
                y = Concat <axis = 0> (t, t)
            }""",
            "a piece is used elsewhere",
        ),
        (
            """agraph (float[] x, float[] z) => (float[] y) {
                t = Transpose(x)
                u = Transpose(z)
                y = Concat <axis = 0> (t, u)
            }""",
            "the permutation is not known",
        ),
        (
            """agraph (float[a,a,3] x, float[a,a,3] z) => (float[b,a,3] y) {
                t = Transpose <perm = [1, 0, 2]> (x)
                u = Transpose <perm = [0, 1, 2]> (z)
                y = Concat <axis = 0> (t, u)
            }""",
            "the permutations are not the same",
        ),
    ],
    "TransposeTranspose": [
        (
            """agraph (float[a,b] x) => (float[b,a] y) {
                t = Neg(x)
                y = Transpose <perm = [1, 0]> (t)
            }""",
            "no Transpose before",
        ),
        ("agraph (float[a,b] x) => (float[b,a] y) { y = Transpose(x) }", "no Transpose before"),
        (
            """agraph (float[a,b] x) => (float[a,b] y) {
                t = Transpose <perm = [1, 2]> (x)
                y = Transpose <perm = [1, 0]> (t)
            }""",
            "the permutations are not known",
        ),
    ],
    "SwapUnsqueezeTranspose": [
        (
            "agraph (float[a,b] x) => (float[b,a] y) { y = Transpose <perm = [1, 0]> (x) }",
            "no Unsqueeze before",
        ),
        (
            """agraph (float[a,b] x) => (float[b,1,a] y, float[1,a,b] u) <int64[1] k = {0}> {
                u = Unsqueeze(x, k)
                y = Transpose <perm = [2, 0, 1]> (u)
            }""",
            "an inner result is used elsewhere",
        ),
        (
            """agraph (float[a,b] x, int64[n] k) => (float[] y) {
                u = Unsqueeze(x, k)
                y = Transpose(u)
            }""",
            "the permutation is not known",
        ),
        (
            """agraph (float[a,b] x, int64[1] k) => (float[a,b,c] y) {
                u = Unsqueeze(x, k)
                y = Transpose <perm = [2, 0, 1]> (u)
            }""",
            "the axes are not known",
        ),
    ],
    "TransposeEqualReshape": [
        (
            "agraph (float[1,a,b] x) => (float[a,b,1] y) { y = Transpose <perm = [1, 2, 0]> (x) }",
            "cannot be a constant",
        ),
        ("agraph (float[] x) => (float[] y) { y = Transpose(x) }", "the shape is not known"),
        (
            "agraph (float[1,a] x) => (float[] y) { y = Transpose <perm = [1, 0, 2]> (x) }",
            "the permutation is not known",
        ),
        (
            "agraph (float[1,a,b] x) => (float[b,a,1] y) { y = Transpose(x) }",
            "moves dimensions that are not 1",
        ),
        (
            "agraph (float[1,a] x) => (float[1,a] y) { y = Transpose <perm = [0, 1]> (x) }",
            "does not move anything",
        ),
        # Reshape(x, (0, 1, -1)) fails when a is 0
        (
            "agraph (float[a,b,1] x) => (float[a,1,b] y) { y = Transpose <perm = [0, 2, 1]> (x) }",
            "cannot be a constant",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


def test_transpose_transpose_without_perm_needs_a_rank() -> None:
    text = """agraph (float[] x) => (float[] y) {
        t = Transpose(x)
        y = Transpose <perm = [1, 0]> (t)
    }"""
    # the second permutation gives the rank
    check_pattern(
        text,
        "agraph (float[] x) => (float[] y) { y = Identity(x) }",
        "TransposeTranspose",
        feeds=[{"x": np.arange(6, dtype=np.float32).reshape((2, 3))}],
    )


def test_transpose_transpose_captured_by_a_subgraph() -> None:
    before = """agraph (float[a,b] x, bool c) => (float[a,b] y, float[u,v] z) {
        t = Transpose <perm = [1, 0]> (x)
        y = Transpose <perm = [1, 0]> (t)
        z = If (c) <
            then_branch = g1 () => (float[u,v] z1) { z1 = Neg(t) },
            else_branch = g2 () => (float[u,v] z2) { z2 = Abs(t) }
        >
    }"""
    result = check_pattern(before, None, "TransposeTranspose")
    assert [n.op_type for n in result.graph.node].count("Transpose") == 1


@pytest.mark.parametrize("opset", [1, 9, 13, 21])
def test_transpose_transpose_in_any_opset(opset: int) -> None:
    before, after = MODELS["TransposeTranspose"]["one Transpose"]
    check_pattern(before, after, "TransposeTranspose", opset=opset, runtime=opset > 6)


def test_equal_reshape_on_empty_tensors() -> None:
    before, after = MODELS["TransposeEqualReshape"]["unknown dimensions stay"]
    check_pattern(
        before, after, "TransposeEqualReshape", sizes=[{"a": 0, "b": 2}, {"a": 1, "b": 0}]
    )
    before, after = MODELS["TransposeEqualReshape"]["an unknown dimension moves"]
    check_pattern(before, after, "TransposeEqualReshape", sizes=[{"a": 0}, {"a": 1}])
