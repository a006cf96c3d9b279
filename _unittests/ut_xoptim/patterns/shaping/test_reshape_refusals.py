"""Reshape after something that keeps the order of the elements: what is refused."""

from __future__ import annotations

from xoptim.testing import refusal_tests

#: pattern -> [(model, reason)]
REFUSED = {
    "Reshape": [
        (
            "agraph (float[] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }",
            "the rank is not known",
        ),
        (
            """agraph (float[2,3] x) => (float[3,2] y)
            <int64[2] s = {3, 2}> { y = Reshape(x, s) }""",
            "the shape may change",
        ),
    ],
    "ShapedBasedReshape": [
        (
            """agraph (float[a,b] x) => (float[c,d] y) <int64[2] s = {0, 0}> {
                y = Reshape <allowzero = 1> (x, s)
            }""",
            "the shape may change",
        ),
        (
            "agraph (float[] x) => (float[a,b] y) <int64[2] s = {0, -1}> { y = Reshape(x, s) }",
            "the rank is not known",
        ),
        (
            """agraph (float[a,b,c] x) => (float[a,d] y) <int64[2] s = {0, -1}> {
                y = Reshape(x, s)
            }""",
            "the rank changes",
        ),
        (
            """agraph (float[a,b] x, int64[2] s) => (float[c,d] y) { y = Reshape(x, s) }""",
            "the shape may change",
        ),
        (
            """agraph (float[a,b] x) => (float[2,c] y)
            <int64[2] s = {2, -1}> { y = Reshape(x, s) }""",
            "the shape may change",
        ),
        (
            """agraph (float[a,b] x) => (float[c,d] y) <int64[2] s = {0, 0}> {
                y = Reshape <allowzero = 1> (x, s)
            }""",
            "the shape may change",
        ),
    ],
    "ReshapeReshape": [
        # c may be null: the 0 would copy a dimension of x, not of r
        (
            """agraph (float[a,b] x, float[c] z) => (float[d,e] y)
            <int64[1] s = {-1}, int64[1] m = {-1}> {
                r = Reshape(x, s)
                d = Shape(z)
                t = Concat <axis = 0> (d, m)
                y = Reshape(r, t)
            }""",
            "the second shape depends on the first one",
        ),
        (
            """agraph (float[a,b] x) => (float[c] y) <int64[1] s = {-1}> {
                n = Neg(x)
                y = Reshape(n, s)
            }""",
            "no Reshape before",
        ),
        # the zero copies b, and the other dimension of the second shape is not known
        (
            """agraph (float[a,b] x, int64[1] b1) => (float[b,d] y)
            <int64[1] m = {-1}, int64[2] t = {0, -1}> {
                b2 = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (b2, m)
                r = Reshape(x, s)
                y = Reshape(r, t)
            }""",
            "depends on the first one",
        ),
        # a null dimension would copy one of the first result
        (
            """agraph (float[a,b] x, int64[2] t) => (float[c,d] y) <int64[1] s = {-1}> {
                r = Reshape(x, s)
                y = Reshape(r, t)
            }""",
            "depends on the first one",
        ),
    ],
    "FlattenReshape": [
        (
            """agraph (float[a,b] x) => (float[c] y) <int64[1] s = {-1}> { y = Reshape(x, s) }""",
            "no Flatten before",
        ),
        (
            """agraph (float[a,b,6] x) => (float[d,c,3] y) <int64[3] t = {0, -1, 3}> {
                u = Flatten <axis = 2> (x)
                y = Reshape(u, t)
            }""",
            "copies a dimension that is flattened",
        ),
        (
            """agraph (float[a,b,c] x) => (float[1,d,1] y) <int64[3] t = {1, 0, -1}> {
                u = Flatten(x)
                y = Reshape(u, t)
            }""",
            "copies a dimension that is flattened",
        ),
    ],
    "UnsqueezeOrSqueezeReshape": [
        (
            """agraph (float[a,b] x) => (float[c] y) <int64[1] s = {-1}> { y = Reshape(x, s) }""",
            "no Squeeze nor Unsqueeze before",
        ),
        (
            """agraph (float[a,b] x) => (float[1,a,c] y)
            <int64[1] k = {0}, int64[3] t = {1, 0, -1}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            "copies a dimension after an axis",
        ),
        (
            """agraph (float[a,b,1] x, int64[1] k) => (float[a,c] y) <int64[2] t = {0, -1}> {
                u = Squeeze(x, k)
                y = Reshape(u, t)
            }""",
            "copies a dimension after an axis",
        ),
    ],
    "UnsqueezeReshape": [
        (
            """agraph (float[a,b,1,c] x) => (float[a,1,b,c] y) <int64[4] t = {0, 1, -1, 0}> {
                y = Reshape(x, t)
            }""",
            "no Unsqueeze before",
        ),
        (
            """agraph (float[a,b,c] x) => (float[a,1,b,c] y)
            <int64[1] k = {2}, int64[4] t = {0, 1, 0, -1}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            r"the shape is not \(0, 1, -1, 0\)",
        ),
        (
            """agraph (float[a,b,c] x) => (float[d,e,f,g] y)
            <int64[1] k = {2}, int64[4] t = {0, 1, -1, 0}> {
                u = Unsqueeze(x, k)
                y = Reshape <allowzero = 1> (u, t)
            }""",
            "allowzero is set",
        ),
        (
            """agraph (float[a,b,c,d] x) => (float[a,1,e,f] y)
            <int64[1] k = {2}, int64[4] t = {0, 1, -1, 0}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            "the rank is not 3",
        ),
        (
            """agraph (float[a,b,c] x) => (float[a,1,b,c] y)
            <int64[1] k = {1}, int64[4] t = {0, 1, -1, 0}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            "the axis is not 2",
        ),
    ],
    "ShapeBasedReshapeIsSqueeze": [
        (
            "agraph (float[] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }",
            "a shape is not known",
        ),
        # (0, 1) when a and b are 0: a null element copies a dimension
        (
            """agraph (float[a,1,b] x) => (float[a,b] y) {
                d0 = Shape <start = 0, end = 1> (x)
                d2 = Shape <start = 2, end = 3> (x)
                s = Concat <axis = 0> (d0, d2)
                y = Reshape(x, s)
            }""",
            "a shape is not known",
        ),
        (
            "agraph (float[a,1] x) => (float[1,a] y) <int64[2] s = {1, -1}> { y = Reshape(x, s) }",
            "the rank does not change",
        ),
        (
            """agraph (float[a,b] x) => (float[1,c,b] y) <int64[3] s = {1, -1, 4}> {
                y = Reshape(x, s)
            }""",
            "more than dimensions 1 are added",
        ),
        # a dimension 1 moves from one side of b to the other one
        (
            """agraph (float[1,b] x) => (float[b,1,1] y) <int64[3] s = {-1, 1, 1}> {
                y = Reshape(x, s)
            }""",
            "more than dimensions 1 are added",
        ),
        (
            "agraph (float[a] x) => (float[2,a] y) <int64[2] s = {2, 1}> { y = Expand(x, s) }",
            "more than dimensions 1 are added",
        ),
    ],
}


test_refuses = refusal_tests(REFUSED)
