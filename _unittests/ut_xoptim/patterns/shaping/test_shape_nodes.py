"""Shape of what only moves dimensions."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests

#: an input whose rank the model does not tell
MATRIX = [{"x": np.ones((3, 4), np.float32)}]

#: pattern -> case -> (before, after)
MODELS = {
    "GatherShape": {
        "one dimension": (
            """agraph (float[a,b,c] x) => (int64[1] y) <int64[1] i = {-2}> {
                s = Shape(x)
                y = Gather(s, i)
            }""",
            "agraph (float[a,b,c] x) => (int64[1] y) { y = Shape <start = 1, end = 2> (x) }",
        ),
        "several, of a part": (
            """agraph (float[a,b,c,d] x) => (int64[2] y) <int64[2] i = {1, -1}> {
                s = Shape <start = 1> (x)
                y = Gather <axis = 0> (s, i)
            }""",
            "agraph (float[a,b,c,d] x) => (int64[2] y) { y = Shape <start = 2, end = 4> (x) }",
        ),
        "unknown rank": (
            """agraph (float[] x) => (int64[2] y) <int64[2] i = {0, 1}> {
                s = Shape(x)
                y = Gather(s, i)
            }""",
            "agraph (float[] x) => (int64[2] y) { y = Shape <start = 0, end = 2> (x) }",
            {"feeds": MATRIX},
        ),
        "the shape is used elsewhere": (
            """agraph (float[a,b,c] x) => (int64[1] y, int64[3] s) <int64[1] i = {0}> {
                s = Shape(x)
                y = Gather(s, i)
            }""",
            """agraph (float[a,b,c] x) => (int64[1] y, int64[3] s) {
                y = Shape <start = 0, end = 1> (x)
                s = Shape(x)
            }""",
        ),
    },
    "ShapeTranspose": {
        "the whole shape": (
            """agraph (float[a,b,c] x) => (int64[3] y) {
                t = Transpose <perm = [1, 2, 0]> (x)
                y = Shape(t)
            }""",
            """agraph (float[a,b,c] x) => (int64[3] y) <int64[3] i = {1, 2, 0}> {
                s = Shape(x)
                y = Gather <axis = 0> (s, i)
            }""",
        ),
        "two parts of it": (
            """agraph (float[a,b,c] x) => (int64[1] y, int64[2] z) {
                t = Transpose(x)
                y = Shape <start = -1> (t)
                z = Shape <start = 0, end = 2> (t)
            }""",
            """agraph (float[a,b,c] x) => (int64[1] y, int64[2] z)
            <int64[1] i = {0}, int64[2] j = {2, 1}> {
                s = Shape(x)
                y = Gather <axis = 0> (s, i)
                z = Gather <axis = 0> (s, j)
            }""",
        ),
    },
    "UnsqueezeShape": {
        "pieces and ones": (
            """agraph (float[a,b,c] x) => (int64[5] y) <int64[2] k = {0, -2}> {
                u = Unsqueeze(x, k)
                y = Shape(u)
            }""",
            """agraph (float[a,b,c] x) => (int64[5] y) <int64[1] one = {1}> {
                p = Shape <start = 0, end = 2> (x)
                q = Shape <start = 2, end = 3> (x)
                y = Concat <axis = 0> (one, p, one, q)
            }""",
        ),
        "one piece": (
            """agraph (float[a,b,c] x) => (int64[2] y) <int64[1] k = {0}> {
                u = Unsqueeze(x, k)
                y = Shape <start = 2> (u)
            }""",
            "agraph (float[a,b,c] x) => (int64[2] y) { y = Shape <start = 1, end = 3> (x) }",
        ),
        "a new dimension": (
            """agraph (float[a,b] x) => (int64[1] y) <int64[1] k = {1}> {
                u = Unsqueeze(x, k)
                s = Shape <start = 1, end = 2> (u)
                y = Neg(s)
            }""",
            "agraph (float[a,b] x) => (int64[1] y) <int64[1] one = {1}> { y = Neg(one) }",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "GatherShape": [
        (
            "agraph (int64[3] x) => (int64[1] y) <int64[1] i = {1}> { y = Gather(x, i) }",
            "no Shape before",
        ),
        (
            "agraph (float[a,b] x, int64[1] i) => (int64[1] y) { s = Shape(x) y = Gather(s, i) }",
            "the indices are not a constant vector",
        ),
        (
            """agraph (float[a,b] x) => (int64 y)
            <int64 i = {1}> { s = Shape(x) y = Gather(s, i) }""",
            "the indices are not a constant vector",
        ),
        (
            """agraph (float[a,b] x) => (int64[2] y) <int64[2] i = {1, 0}> {
                s = Shape(x)
                y = Gather(s, i)
            }""",
            "the indices do not follow each other",
        ),
        (
            """agraph (float[] x) => (int64[1] y) <int64[1] i = {-1}> {
                s = Shape(x)
                y = Gather(s, i)
            }""",
            "the rank is needed",
        ),
        (
            """agraph (float[] x) => (int64[1] y) <int64[1] i = {0}> {
                s = Shape <start = 1> (x)
                y = Gather(s, i)
            }""",
            "the rank is needed",
        ),
    ],
    "ShapeTranspose": [
        ("agraph (float[a,b] x) => (int64[2] y) { y = Shape(x) }", "no Transpose before"),
        (
            """agraph (float[a,b] x) => (int64[2] y, float[b,a] z) {
                t = Transpose(x)
                y = Shape(t)
                z = Neg(t)
            }""",
            "the inner result is used elsewhere",
        ),
        (
            """agraph (float[a,b] x) => (int64[2] y, int64[2] z) {
                t = Transpose(x)
                y = Shape(t)
                z = com.microsoft.Shape(t)
            }""",
            "the inner result is used elsewhere",
        ),
        (
            """agraph (float[a,b] x)
            => (int64[2] y, float[b,a] t) { t = Transpose(x) y = Shape(t) }""",
            "the inner result is used elsewhere",
        ),
        (
            "agraph (float[] x) => (int64[c] y) { t = Transpose(x) y = Shape(t) }",
            "the permutation is not known",
        ),
    ],
    "UnsqueezeShape": [
        (
            """agraph (float[a,b] x) => (int64[0] y) <int64[1] k = {0}> {
                u = Unsqueeze(x, k)
                y = Shape<start = 2, end = 1>(u)
            }""",
            "the axes or the rank are not known",
        ),
        ("agraph (float[a,b] x) => (int64[2] y) { y = Shape(x) }", "no Unsqueeze before"),
        (
            """agraph (float[a,b] x) => (int64[3] y, float[1,a,b] u) <int64[1] k = {0}> {
                u = Unsqueeze(x, k)
                y = Shape(u)
            }""",
            "the inner result is used elsewhere",
        ),
        (
            """agraph (float[a,b] x, int64[1] k) => (int64[3] y) {
                u = Unsqueeze(x, k)
                y = Shape(u)
            }""",
            "the axes or the rank are not known",
        ),
        (
            """agraph (float[] x) => (int64[c] y) <int64[1] k = {0}> {
                u = Unsqueeze(x, k)
                y = Shape(u)
            }""",
            "the axes or the rank are not known",
        ),
    ],
}

MODELS["ShapeBasedShapeShapeAdd"] = (
    """agraph (float[2,3] x, float[5,1] z) => (int64[2] y) {
        s = Shape(x)
        t = Shape(z)
        y = Add(s, t)
    }""",
    "agraph (float[2,3] x, float[5,1] z) => (int64[2] y) <int64[2] c = {7, 4}> { y = Identity(c) }",
)
REFUSED["ShapeBasedShapeShapeAdd"] = [
    (
        "agraph (float[2,3] x, int64[2] z) => (int64[2] y) { s = Shape(x) y = Add(s, z) }",
        "no Shape before",
    ),
    (
        """agraph (float[2,a] x, float[5,1] z) => (int64[2] y) {
            s = Shape(x)
            t = Shape(z)
            y = Add(s, t)
        }""",
        "a dimension is not known",
    ),
]


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)
