"""Concat with pieces that are not needed."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "ConcatEmpty": {
        "several pieces are left": (
            """agraph (float[a,3] x, float[a,0] e, float[a,b] z) => (float[a,c] y) {
                y = Concat <axis = -1> (e, x, e, z)
            }""",
            """agraph (float[a,3] x, float[a,0] e, float[a,b] z) => (float[a,c] y) {
                y = Concat <axis = -1> (x, z)
            }""",
        ),
        "one is left": (
            """agraph (float[a] x, float[0] e) => (float[a] y) {
                n = Neg(x)
                c = Concat <axis = 0> (n, e)
                y = Abs(c)
            }""",
            "agraph (float[a] x, float[0] e) => (float[a] y) { n = Neg(x) y = Abs(n) }",
        ),
        "there is one piece": (
            """agraph (float[a] x) => (float[a] y) { c = Concat <axis = -1> (x) y = Abs(c) }""",
            "agraph (float[a] x) => (float[a] y) { y = Abs(x) }",
        ),
        "all are empty": (
            """agraph (float[a,0] x, float[a,0] e) => (float[a,0] y) {
                y = Concat <axis = 1> (x, e)
            }""",
            "agraph (float[a,0] x, float[a,0] e) => (float[a,0] y) { y = Identity(x) }",
        ),
    },
    "ConcatTwiceUnary": {
        "unary": (
            """agraph (float[a,b] x) => (float[a,c] y) {
                t = Concat <axis = -1> (x, x, x)
                y = LeakyRelu <alpha = 0.5> (t)
            }""",
            """agraph (float[a,b] x) => (float[a,c] y) {
                u = LeakyRelu <alpha = 0.5> (x)
                y = Concat <axis = 1> (u, u, u)
            }""",
        ),
        "a scalar": (
            """agraph (float[a,b] x, float z) => (bool[c,b] y) {
                t = Concat <axis = 0> (x, x)
                y = Less(z, t)
            }""",
            """agraph (float[a,b] x, float z) => (bool[c,b] y) {
                u = Less(z, x)
                y = Concat <axis = 0> (u, u)
            }""",
        ),
        "Unsqueeze": (
            """agraph (float[a,b] x) => (float[1,a,1,c] y) <int64[2] k = {0, -2}> {
                t = Concat <axis = 1> (x, x)
                y = Unsqueeze(t, k)
            }""",
            """agraph (float[a,b] x) => (float[1,a,1,c] y) <int64[2] k = {0, -2}> {
                u = Unsqueeze(x, k)
                y = Concat <axis = 3> (u, u)
            }""",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "ConcatEmpty": [
        (
            "agraph (float[a] x, float[b] z) => (float[c] y) { y = Concat <axis = 0> (x, z) }",
            "no piece is known to be empty",
        ),
        (
            "agraph (float[] x, float[] z) => (float[] y) { y = Concat <axis = 0> (x, z) }",
            "no piece is known to be empty",
        ),
        # the null dimension is not the concatenated one
        (
            """agraph (float[a,0] x, float[b,0] z)
            => (float[c,0] y) { y = Concat <axis = 0> (x, z) }""",
            "no piece is known to be empty",
        ),
    ],
    "ConcatTwiceUnary": [
        (
            """agraph (float[a] x, float[b] z) => (float[c] y) {
                t = Concat <axis = 0> (x, z)
                y = Neg(t)
            }""",
            "the pieces are not the same",
        ),
        (
            """agraph (float[a] x) => (float[c] y, float[c] t) {
                t = Concat <axis = 0> (x, x)
                y = Neg(t)
            }""",
            "not one operator after",
        ),
        (
            """agraph (float[a,b] x) => (float[a,c] y) {
                t = Concat <axis = 1> (x, x)
                y = Softmax <axis = 1> (t)
            }""",
            "does not apply to each piece alone",
        ),
        # the slope is not the same for both pieces
        (
            """agraph (float[a,2] x, float[4] p) => (float[a,4] y) {
                t = Concat <axis = 1> (x, x)
                y = PRelu(t, p)
            }""",
            "does not apply to each piece alone",
        ),
        (
            """agraph (float[a,2] x, float[4] p) => (float[a,4] y) {
                t = Concat <axis = 1> (x, x)
                y = Add(t, p)
            }""",
            "does not apply to each piece alone",
        ),
        (
            """agraph (float[a] x, float low) => (float y) {
                t = Concat <axis = 0> (x, x)
                y = Clip(low, t)
            }""",
            "does not apply to each piece alone",
        ),
        (
            """agraph (float[a,2] x, int64[1] k) => (float[] y) {
                t = Concat <axis = 1> (x, x)
                y = Unsqueeze(t, k)
            }""",
            "does not apply to each piece alone",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)
