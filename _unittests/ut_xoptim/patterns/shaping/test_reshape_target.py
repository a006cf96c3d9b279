"""The shape a Reshape is given."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "StaticConcatReshape": {
        "one dimension": (
            """agraph (float[a,6] x) => (float[a,2,3] y) <int64[2] c = {2, 3}> {
                d = Shape <start = 0, end = 1> (x)
                s = Concat <axis = 0> (d, c)
                y = Reshape(x, s)
            }""",
            """agraph (float[a,6] x) => (float[a,2,3] y) <int64[3] s = {-1, 2, 3}> {
                y = Reshape(x, s)
            }""",
        ),
        "a zero that copies a known dimension": (
            """agraph (float[2,a,6] x) => (float[2,c,3] y) <int64[1] z = {0}, int64[1] t = {3}> {
                d = Shape <start = 1, end = 2> (x)
                e = Add(d, d)
                s = Concat <axis = -1> (z, e, t)
                y = Reshape(x, s)
            }""",
            """agraph (float[2,a,6] x) => (float[2,c,3] y) <int64[3] s = {0, -1, 3}> {
                y = Reshape(x, s)
            }""",
        ),
        "the Concat is used elsewhere": (
            """agraph (float[a,6] x) => (float[a,2,3] y, int64[3] s) <int64[2] c = {2, 3}> {
                d = Shape <start = 0, end = 1> (x)
                s = Concat <axis = 0> (d, c)
                y = Reshape <allowzero = 1> (x, s)
            }""",
            """agraph (float[a,6] x) => (float[a,2,3] y, int64[3] s)
            <int64[2] c = {2, 3}, int64[3] t = {-1, 2, 3}> {
                y = Reshape(x, t)
                d = Shape <start = 0, end = 1> (x)
                s = Concat <axis = 0> (d, c)
            }""",
        ),
    },
    "ConcatReshape": {
        "the others are not null": (
            """agraph (float[a,b,6] x, float[1,b,6] w) => (float[c,d,e] y) <int64[1] six = {6}> {
                p = Concat <axis = 0> (x, w)
                d = Shape <start = 0, end = 1> (p)
                e = Shape <start = 1, end = 2> (p)
                s = Concat <axis = 0> (e, d, six)
                y = Reshape(p, s)
            }""",
            """agraph (float[a,b,6] x, float[1,b,6] w) => (float[c,d,e] y)
            <int64[1] m = {-1}, int64[1] six = {6}> {
                p = Concat <axis = 0> (x, w)
                d = Shape <start = 0, end = 1> (p)
                s = Concat <axis = 0> (m, d, six)
                y = Reshape(p, s)
            }""",
        ),
        "a constant of several elements": (
            """agraph (float[a,b,6] x, float[1,b,6] w) => (float[c,d,e,f] y) <int64[2] six = {2, 3}> {
                p = Concat <axis = 0> (x, w)
                d = Shape <start = 0, end = 1> (p)
                e = Shape <start = 1, end = 2> (p)
                s = Concat <axis = 0> (e, six, d)
                y = Reshape(p, s)
            }""",
            """agraph (float[a,b,6] x, float[1,b,6] w) => (float[c,d,e,f] y)
            <int64[1] m = {-1}, int64[2] six = {2, 3}> {
                p = Concat <axis = 0> (x, w)
                d = Shape <start = 0, end = 1> (p)
                s = Concat <axis = 0> (m, six, d)
                y = Reshape(p, s)
            }""",
        ),
    },
    "ShapeBasedEditDistanceReshape": {
        "copies and known dimensions": (
            """agraph (float[a,b,6] x) => (float[a,b,2,3] y) <int64[2] c = {2, 3}> {
                d = Shape <start = 0, end = 2> (x)
                s = Concat <axis = 0> (d, c)
                y = Reshape(x, s)
            }""",
            """agraph (float[a,b,6] x) => (float[a,b,2,3] y) <int64[4] s = {0, 0, 2, 3}> {
                y = Reshape(x, s)
            }""",
        ),
        "the shape has its own -1": (
            """agraph (float[a,b,4] x) => (float[a,c,2] y) <int64[1] m = {-1}, int64[1] two = {2}> {
                d = Shape <start = 0, end = 1> (x)
                s = Concat <axis = 0> (d, m, two)
                y = Reshape(x, s)
            }""",
            """agraph (float[a,b,4] x) => (float[a,c,2] y) <int64[3] s = {0, -1, 2}> {
                y = Reshape(x, s)
            }""",
        ),
        "copies only, null or not": (
            """agraph (float[a,b,c] x) => (float[a,d] y) <int64[1] m = {-1}> {
                d = Shape <start = 0, end = 1> (x)
                s = Concat <axis = 0> (d, m)
                r = Reshape(x, s)
                y = Neg(r)
            }""",
            """agraph (float[a,b,c] x) => (float[a,d] y) <int64[2] s = {0, -1}> {
                r = Reshape(x, s)
                y = Neg(r)
            }""",
        ),
        "one dimension is left": (
            """agraph (float[2,a,6] x) => (float[2,c,3] y) <int64[1] t = {2}, int64[1] u = {3}> {
                d = Shape <start = 1, end = 2> (x)
                e = Mul(d, t)
                s = Concat <axis = 0> (t, e, u)
                y = Reshape(x, s)
            }""",
            """agraph (float[2,a,6] x) => (float[2,c,3] y) <int64[3] s = {2, -1, 3}> {
                y = Reshape(x, s)
            }""",
        ),
    },
}
#: pattern -> [(model, reason)]
REFUSED = {
    "StaticConcatReshape": [
        (
            "agraph (float[a,6] x, int64[2] s) => (float[b,c] y) { y = Reshape(x, s) }",
            "no Concat makes the shape",
        ),
        (
            """agraph (float[a,6,b] x) => (float[a,6,b] y) <int64[1] c = {6}> {
                d = Shape <start = 0, end = 1> (x)
                e = Shape <start = 2, end = 3> (x)
                s = Concat <axis = 0> (d, c, e)
                y = Reshape(x, s)
            }""",
            "not one element is unknown",
        ),
        # one piece holds two dimensions
        (
            """agraph (float[a,b,6] x) => (float[a,b,2,3] y) <int64[2] c = {2, 3}> {
                d = Shape <start = 0, end = 2> (x)
                s = Concat <axis = 0> (d, c)
                y = Reshape(x, s)
            }""",
            "not one element is unknown",
        ),
        (
            """agraph (float[a,6] x) => (float[a,b,3] y) <int64[2] c = {-1, 3}> {
                d = Shape <start = 0, end = 1> (x)
                s = Concat <axis = 0> (d, c)
                y = Reshape(x, s)
            }""",
            "-1 would not be safe",
        ),
        # the zero copies a dimension that may be null
        (
            """agraph (float[a,b] x) => (float[a,b] y) <int64[1] c = {0}> {
                d = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (c, d)
                y = Reshape(x, s)
            }""",
            "-1 would not be safe",
        ),
        (
            """agraph (float[0,b] x) => (float[0,b] y) <int64[1] c = {0}> {
                d = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (c, d)
                y = Reshape <allowzero = 1> (x, s)
            }""",
            "-1 would not be safe",
        ),
    ],
    "ConcatReshape": [
        (
            "agraph (float[a,6] x, int64[2] s) => (float[b,c] y) { y = Reshape(x, s) }",
            "no Concat makes the shape",
        ),
        (
            """agraph (float[a,6] x) => (float[a,6] y, int64[2] s) <int64[1] c = {6}> {
                d = Shape <start = 0, end = 1> (x)
                s = Concat <axis = 0> (d, c)
                y = Reshape(x, s)
            }""",
            "the shape is used elsewhere",
        ),
        # a piece with two dimensions is not one -1
        (
            """agraph (float[a,b,6] x) => (float[a,b,6] y) <int64[1] c = {6}> {
                d = Shape <start = 0, end = 2> (x)
                s = Concat <axis = 0> (d, c)
                y = Reshape(x, s)
            }""",
            "a piece may not have one element",
        ),
        # another -1; b is not null, as its place in the target has no dimension to copy
        (
            """agraph (float[a,b,6] x, float[1,b,6] w) => (float[c,d,e,f] y) <int64[2] k = {-1, 6}> {
                p = Concat <axis = 0> (x, w)
                d = Shape <start = 0, end = 1> (p)
                e = Shape <start = 1, end = 2> (p)
                s = Concat <axis = 0> (d, k, e)
                y = Reshape(p, s)
            }""",
            "-1 would not be safe",
        ),
        # a or b may be null
        (
            """agraph (float[a,b] x) => (float[b,a] y) {
                d = Shape <start = 0, end = 1> (x)
                e = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (e, d)
                y = Reshape(x, s)
            }""",
            "-1 would not be safe",
        ),
    ],
    "ShapeBasedEditDistanceReshape": [
        (
            """agraph (float[a,6] x) => (float[a,2,3] y) <int64[3] s = {0, 2, 3}> {
                y = Reshape(x, s)
            }""",
            "already constant",
        ),
        (
            "agraph (float[] x, int64[2] s) => (float[b,c] y) { y = Reshape(x, s) }",
            "a shape is not known",
        ),
        # (4, 0) when a is 0
        (
            """agraph (float[4,2,a] x) => (float[b,c] y) <int64[1] m = {-1}> {
                d = Shape <start = 2> (x)
                s = Concat <axis = 0> (d, m)
                y = Reshape(x, s)
            }""",
            "a shape is not known",
        ),
        # the dimensions are at other positions and may be null
        (
            """agraph (float[a,b] x) => (float[b,a] y) {
                d = Shape <start = 0, end = 1> (x)
                e = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (e, d)
                y = Reshape(x, s)
            }""",
            "a shape is not known for every size",
        ),
        (
            """agraph (float[a,b,4] x) => (float[c,d] y) <int64[1] m = {-1}> {
                d = Shape <start = 0, end = 1> (x)
                s = Concat <axis = 0> (d, m)
                y = Reshape <allowzero = 1> (x, s)
            }""",
            "0 and -1 cannot replace",
        ),
        (
            """agraph (float[a,b,4] x) => (float[c,d] y) <int64[1] m = {-1}> {
                d = Shape <start = 1, end = 2> (x)
                s = Concat <axis = 0> (d, m)
                y = Reshape(x, s)
            }""",
            "a shape is not known for every size",
        ),
        (
            "agraph (float[a,b] x, int64[2] s) => (float[c,d] y) { y = Reshape(x, s) }",
            "0 and -1 cannot replace",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize(
    ("pattern", "case"),
    [
        ("StaticConcatReshape", "one dimension"),
        ("StaticConcatReshape", "a zero that copies a known dimension"),
        ("ShapeBasedEditDistanceReshape", "copies and known dimensions"),
        ("ShapeBasedEditDistanceReshape", "one dimension is left"),
    ],
)
def test_empty_tensors(pattern: str, case: str) -> None:
    check_pattern(*MODELS[pattern][case], pattern, sizes=[{"a": 0, "b": 3}, {"a": 1, "b": 0}])


def test_a_piece_that_is_minus_one_or_zero_at_run_time() -> None:
    check_pattern(
        """agraph (float[2,6] x, int64[1] d) => (float[b,3] y) <int64[1] c = {3}> {
            s = Concat <axis = 0> (d, c)
            y = Reshape(x, s)
        }""",
        """agraph (float[2,6] x, int64[1] d) => (float[b,3] y) <int64[2] s = {-1, 3}> {
            y = Reshape(x, s)
        }""",
        "StaticConcatReshape",
        feeds=[
            {"x": np.arange(12, dtype=np.float32).reshape((2, 6)), "d": np.array([i], np.int64)}
            for i in (4, -1)
        ],
    )
