"""Reshape and its neighbours."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_reference,
)

#: pattern -> case -> (before, after)
MODELS = {
    "Reshape": {
        "a static shape": (
            """agraph (float[2,3] x) => (float[2,3] y) <int64[2] s = {2, -1}> {
                y = Reshape(x, s)
            }""",
            "agraph (float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
        ),
        "an empty tensor": (
            """agraph (float[0,3] x) => (float[0,3] y) <int64[2] s = {0, 3}> {
                y = Reshape(x, s)
            }""",
            "agraph (float[0,3] x) => (float[0,3] y) { y = Identity(x) }",
        ),
    },
    "ShapedBasedReshape": {
        "copies but the last one": (
            """agraph (float[a,b,c] x) => (float[a,b,c] y) <int64[3] s = {0, 0, -1}> {
                y = Reshape(x, s)
            }""",
            "agraph (float[a,b,c] x) => (float[a,b,c] y) { y = Identity(x) }",
        ),
        "copies everything": (
            """agraph (float[a,b] x) => (float[a,b] y) <int64[2] s = {0, 0}> {
                y = Reshape(x, s)
            }""",
            "agraph (float[a,b] x) => (float[a,b] y) { y = Identity(x) }",
        ),
        "a vector": (
            """agraph (float[a] x) => (float[a] y) <int64[1] s = {-1}> { y = Reshape(x, s) }""",
            "agraph (float[a] x) => (float[a] y) { y = Identity(x) }",
        ),
        "its own shape": (
            """agraph (float[a,b] x) => (float[a,b] y) {
                n = Neg(x)
                s = Shape(n)
                y = Reshape(x, s)
            }""",
            "agraph (float[a,b] x) => (float[a,b] y) { y = Identity(x) }",
        ),
    },
    "ReshapeReshape": {
        "a product of dimensions copies one that is null with it": (
            """agraph (float[a,4,b,8] x) => (float[c,b,8] y)
            <int64[1] axis = {3}, int64[2] u = {-1, 8}> {
                r = Unsqueeze(x, axis)
                d = Shape <start = 0, end = 2> (r)
                n = ReduceProd <keepdims = 1> (d)
                t = Concat <axis = 0> (n, u)
                y = Reshape(r, t)
            }""",
            """agraph (float[a,4,b,8] x) => (float[c,b,8] y)
            <int64[1] axis = {3}, int64[2] u = {-1, 8}> {
                r = Unsqueeze(x, axis)
                d = Shape <start = 0, end = 2> (r)
                n = ReduceProd <keepdims = 1> (d)
                t = Concat <axis = 0> (n, u)
                y = Reshape(x, t)
            }""",
        ),
        "the shape of the data is given back": (
            """agraph (float[a,b] x) => (float[a,b] z, float[n] r) <int64[1] t = {-1}> {
                s = Shape(x)
                r = Reshape(x, t)
                y = Reshape(r, s)
                z = Neg(y)
            }""",
            """agraph (float[a,b] x) => (float[a,b] z, float[n] r) <int64[1] t = {-1}> {
                r = Reshape(x, t)
                z = Neg(x)
            }""",
        ),
        "the shape of the data before Flatten": (
            """agraph (float[a,2,b] x) => (float[a,2,b] z) {
                s = Shape(x)
                r = Flatten(x)
                y = Reshape(r, s)
                z = Neg(y)
            }""",
            "agraph (float[a,2,b] x) => (float[a,2,b] z) { z = Neg(x) }",
        ),
        "no zero": (
            """agraph (float[a,2,3] x) => (float[b,2] y)
            <int64[2] s = {0, -1}, int64[2] t = {-1, 2}> {
                r = Reshape(x, s)
                y = Reshape(r, t)
            }""",
            """agraph (float[a,2,3] x) => (float[b,2] y) <int64[2] t = {-1, 2}> {
                y = Reshape(x, t)
            }""",
        ),
        "a chain": (
            """agraph (float[a,2,3] x) => (float[b,2] y)
            <int64[2] s = {0, -1}, int64[1] r = {-1}, int64[2] t = {-1, 2}> {
                u = Reshape(x, s)
                v = Reshape(u, r)
                y = Reshape(v, t)
            }""",
            """agraph (float[a,2,3] x) => (float[b,2] y) <int64[2] t = {-1, 2}> {
                y = Reshape(x, t)
            }""",
        ),
        "a zero copies the same dimension": (
            """agraph (float[a,2,3] x) => (float[a,3,2] y)
            <int64[2] s = {0, 6}, int64[3] t = {0, 3, 2}> {
                r = Reshape(x, s)
                y = Reshape(r, t)
            }""",
            """agraph (float[a,2,3] x) => (float[a,3,2] y) <int64[3] t = {0, 3, 2}> {
                y = Reshape(x, t)
            }""",
        ),
        "a zero copies a known dimension": (
            """agraph (float[a,2,3] x) => (float[6,b] y)
            <int64[2] s = {6, -1}, int64[2] t = {0, -1}> {
                r = Reshape(x, s)
                y = Reshape(r, t)
            }""",
            """agraph (float[a,2,3] x) => (float[6,b] y) <int64[2] t = {6, -1}> {
                y = Reshape(x, t)
            }""",
        ),
        "a zero copies another dimension": (
            """agraph (float[2,a,6] x) => (float[b,3,2] y)
            <int64[2] s = {-1, 6}, int64[3] t = {0, 3, 2}> {
                r = Reshape(x, s)
                y = Reshape(r, t)
            }""",
            """agraph (float[2,a,6] x) => (float[b,3,2] y) <int64[3] t = {-1, 3, 2}> {
                y = Reshape(x, t)
            }""",
        ),
        "zeros mean zero": (
            """agraph (float[0,6,2] x) => (float[0,0,3] y)
            <int64[3] s = {3, 2, -1}, int64[3] t = {0, 0, 3}> {
                r = Reshape(x, s)
                y = Reshape <allowzero = 1> (r, t)
            }""",
            """agraph (float[0,6,2] x) => (float[0,0,3] y) <int64[3] t = {0, 0, 3}> {
                y = Reshape <allowzero = 1> (x, t)
            }""",
        ),
        "the inner result is an output": (
            """agraph (float[a,2,3] x) => (float[b,2] y, float[a,6] r)
            <int64[2] s = {0, 6}, int64[2] t = {-1, 2}> {
                r = Reshape(x, s)
                y = Reshape(r, t)
            }""",
            """agraph (float[a,2,3] x) => (float[b,2] y, float[a,6] r)
            <int64[2] s = {0, 6}, int64[2] t = {-1, 2}> {
                y = Reshape(x, t)
                r = Reshape(x, s)
            }""",
        ),
    },
    "FlattenReshape": {
        "no 0": (
            """agraph (float[a,b,6] x) => (float[c,3] y) <int64[2] t = {-1, 3}> {
                u = Flatten <axis = 2> (x)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,b,6] x) => (float[c,3] y) <int64[2] t = {-1, 3}> {
                y = Reshape(x, t)
            }""",
            {"sizes": {"a": 2, "b": 3, "c": 12}},
        ),
        "the first dimension": (
            """agraph (float[a,b,6] x) => (float[a,c,3] y) <int64[3] t = {0, -1, 3}> {
                u = Flatten(x)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,b,6] x) => (float[a,c,3] y) <int64[3] t = {0, -1, 3}> {
                y = Reshape(x, t)
            }""",
            {"sizes": {"a": 2, "b": 3, "c": 6}},
        ),
    },
    "UnsqueezeOrSqueezeReshape": {
        "Unsqueeze": (
            """agraph (float[a,b,6] x) => (float[a,c,3] y)
            <int64[1] k = {1}, int64[3] t = {0, -1, 3}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,b,6] x) => (float[a,c,3] y) <int64[3] t = {0, -1, 3}> {
                y = Reshape(x, t)
            }""",
        ),
        "Squeeze": (
            """agraph (float[a,b,1,6] x) => (float[a,b,3,2] y)
            <int64[1] k = {-2}, int64[4] t = {0, 0, 3, 2}> {
                u = Squeeze(x, k)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,b,1,6] x) => (float[a,b,3,2] y) <int64[4] t = {0, 0, 3, 2}> {
                y = Reshape(x, t)
            }""",
        ),
        "axes that nobody knows": (
            """agraph (float[a,4] x, int64[1] k) => (float[b,2] y) <int64[2] t = {-1, 2}> {
                u = Squeeze(x)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,4] x, int64[1] k) => (float[b,2] y) <int64[2] t = {-1, 2}> {
                y = Reshape(x, t)
            }""",
        ),
        "an inner result is used elsewhere": (
            """agraph (float[a,6] x) => (float[b,2] y, float[a,1,6] z)
            <int64[1] k = {1}, int64[2] t = {-1, 2}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
                z = Neg(u)
            }""",
            """agraph (float[a,6] x) => (float[b,2] y, float[a,1,6] z)
            <int64[1] k = {1}, int64[2] t = {-1, 2}> {
                y = Reshape(x, t)
                u = Unsqueeze(x, k)
                z = Neg(u)
            }""",
        ),
    },
    "UnsqueezeReshape": {
        "one case": (
            """agraph (float[a,b,c] x) => (float[a,1,b,c] y)
            <int64[1] k = {-2}, int64[4] t = {0, 1, -1, 0}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,b,c] x) => (float[a,1,b,c] y) <int64[1] k = {1}> {
                y = Unsqueeze(x, k)
            }""",
        ),
        "the inner result is an output": (
            """agraph (float[a,b,c] x) => (float[a,1,b,c] y, float[a,b,1,c] u)
            <int64[1] k = {2}, int64[4] t = {0, 1, -1, 0}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,b,c] x) => (float[a,1,b,c] y, float[a,b,1,c] u)
            <int64[1] k = {2}, int64[1] l = {1}> {
                y = Unsqueeze(x, l)
                u = Unsqueeze(x, k)
            }""",
        ),
        "the dimension 1 stays where it is": (
            """agraph (float[a,b,c] x) => (float[a,1,b,c] y)
            <int64[1] k = {1}, int64[4] t = {0, 1, -1, 0}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,b,c] x) => (float[a,1,b,c] y) <int64[1] k = {1}> {
                y = Unsqueeze(x, k)
            }""",
        ),
        "one that is removed": (
            """agraph (float[a,1,b,1,c] x) => (float[a,b,1,c] y)
            <int64[1] k = {3}, int64[4] t = {0, -1, 1, 0}> {
                u = Squeeze(x, k)
                y = Reshape(u, t)
            }""",
            """agraph (float[a,1,b,1,c] x) => (float[a,b,1,c] y) <int64[1] k = {1}> {
                y = Squeeze(x, k)
            }""",
        ),
    },
    "ShapeBasedReshapeIsSqueeze": {
        "Unsqueeze": (
            """agraph (float[a,3,b] x) => (float[1,a,3,1,b] y)
            <int64[1] one = {1}, int64[1] three = {3}> {
                d0 = Shape <start = 0, end = 1> (x)
                d2 = Shape <start = 2, end = 3> (x)
                s = Concat <axis = 0> (one, d0, three, one, d2)
                y = Reshape(x, s)
            }""",
            """agraph (float[a,3,b] x) => (float[1,a,3,1,b] y) <int64[2] k = {0, 3}> {
                y = Unsqueeze(x, k)
            }""",
        ),
        "Squeeze": (
            """agraph (float[a,1,3,1] x) => (float[a,1,3] y) <int64[3] s = {-1, 1, 3}> {
                y = Reshape(x, s)
            }""",
            """agraph (float[a,1,3,1] x) => (float[a,1,3] y) <int64[1] k = {3}> {
                y = Squeeze(x, k)
            }""",
        ),
        "Expand": (
            """agraph (float[a,3] x) => (float[1,1,a,3] y) <int64[4] s = {1, 1, 1, 3}> {
                y = Expand(x, s)
            }""",
            """agraph (float[a,3] x) => (float[1,1,a,3] y) <int64[2] k = {0, 1}> {
                y = Unsqueeze(x, k)
            }""",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)


def test_reshape_reshape_second_shape_is_an_input() -> None:
    # with allowzero the second shape means the same whatever it is applied to
    check_pattern(
        """agraph (float[a,b] x, int64[2] t) => (float[c,d] y) <int64[1] s = {-1}> {
            r = Reshape(x, s)
            y = Reshape <allowzero = 1> (r, t)
        }""",
        """agraph (float[a,b] x, int64[2] t) => (float[c,d] y) {
            y = Reshape <allowzero = 1> (x, t)
        }""",
        "ReshapeReshape",
        feeds=[
            {"x": np.ones((2, 3), np.float32), "t": np.array([3, 2], np.int64)},
            {"x": np.ones((2, 0), np.float32), "t": np.array([0, 5], np.int64)},
        ],
    )


def test_reshape_reshape_zero_on_empty_tensors() -> None:
    sizes = [{"a": 0}, {"a": 1}, {"a": 3}]
    for case in ("a zero copies the same dimension", "a zero copies another dimension"):
        check_pattern(*MODELS["ReshapeReshape"][case], "ReshapeReshape", sizes=sizes)


def test_reshape_reshape_zero_of_a_null_dimension() -> None:
    # 0 copies the null dimension of the inner result: x has another one there
    check_pattern(
        """agraph (float[5,0] x) => (float[0,5] y) <int64[2] s = {0, 5}, int64[2] t = {0, 5}> {
            r = Reshape <allowzero = 1> (x, s)
            y = Reshape(r, t)
        }""",
        """agraph (float[5,0] x) => (float[0,5] y) <int64[2] t = {-1, 5}> {
            y = Reshape(x, t)
        }""",
        "ReshapeReshape",
    )


def _text(items: tuple) -> str:
    return ",".join(str(i) for i in items)


@pytest.mark.parametrize("x", [(2, 3), (0, 3), (3, 0), (1, 0, 2), (1, 2, 3), (6, 1)], ids=_text)
@pytest.mark.parametrize("static", [True, False])
def test_reshape_reshape_by_brute_force(x: tuple[int, ...], static: bool) -> None:
    """Every valid pair of shapes: the rewritten model gives what the original one does."""
    data = np.arange(np.prod(x), dtype=np.float32).reshape(x)
    dims = x if static else tuple("uvw"[: len(x)])
    shapes = [(-1,), (0,), *product((-1, 0, 2, 3), repeat=2), (0, 3, -1), (1, 0, 0)]
    applied = 0
    for s, t, zero in product(shapes, shapes, (0, 1)):
        if s.count(-1) > 1 or t.count(-1) > 1 or (zero and -1 in t and 0 in t):
            continue
        text = f"""agraph (float[{_text(dims)}] x) => (float[] y)
        <int64[{len(s)}] s = {{{_text(s)}}}, int64[{len(t)}] t = {{{_text(t)}}}> {{
            r = Reshape(x, s)
            y = Reshape <allowzero = {zero}> (r, t)
        }}"""
        model = model_from_text(text)
        try:
            expected = run_reference(model, {"x": data})[0]
        except (ValueError, IndexError):
            continue
        result, _, _ = optimize_with(model, "ReshapeReshape")
        applied += len(result.graph.node) == 1
        assert run_reference(result, {"x": data})[0].shape == expected.shape, (s, t, zero)
    assert applied > 10


# -- Reshape after something that keeps the order of the elements: what is refused

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
            "no Flatten nor Reshape nor Squeeze nor Unsqueeze before",
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
            "no Flatten nor Reshape nor Squeeze nor Unsqueeze before",
        ),
        (
            """agraph (float[a,b,6] x) => (float[d,c,3] y) <int64[3] t = {0, -1, 3}> {
                u = Flatten <axis = 2> (x)
                y = Reshape(u, t)
            }""",
            "depends on the first one",
        ),
        (
            """agraph (float[a,b,c] x) => (float[1,d,1] y) <int64[3] t = {1, 0, -1}> {
                u = Flatten(x)
                y = Reshape(u, t)
            }""",
            "depends on the first one",
        ),
    ],
    "UnsqueezeOrSqueezeReshape": [
        (
            """agraph (float[a,b] x) => (float[c] y) <int64[1] s = {-1}> { y = Reshape(x, s) }""",
            "no Flatten nor Reshape nor Squeeze nor Unsqueeze before",
        ),
        (
            """agraph (float[a,b,e] x) => (float[1,a,c] y)
            <int64[1] k = {0}, int64[3] t = {1, 0, -1}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            "depends on the first one",
        ),
        (
            """agraph (float[a,b,1] x, int64[1] k) => (float[a,c] y) <int64[2] t = {0, -1}> {
                u = Squeeze(x, k)
                y = Reshape(u, t)
            }""",
            "depends on the first one",
        ),
    ],
    "UnsqueezeReshape": [
        (
            """agraph (float[a,b,1,c] x) => (float[a,1,b,c] y) <int64[4] t = {0, 1, -1, 0}> {
                y = Reshape(x, t)
            }""",
            "no Flatten nor Reshape nor Squeeze nor Unsqueeze before",
        ),
        (
            """agraph (float[a,b,c,d] x) => (float[a,1,e,f] y)
            <int64[1] k = {2}, int64[4] t = {0, 1, -1, 0}> {
                u = Unsqueeze(x, k)
                y = Reshape(u, t)
            }""",
            "depends on the first one",
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
