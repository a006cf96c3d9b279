"""Reduce* followed by a Reshape, an Unsqueeze, another Reduce*."""

from __future__ import annotations

import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "ReduceOne": {
        f"{op}, {title}": (
            f"g (float[a, 1, b] x) => (float[{dims}] y) <int64[1] k = {{-2}}> {{"
            f" y = {op}<keepdims = {keepdims}>(x, k) }}",
            f"g (float[a, 1, b] x) => (float[{dims}] y) <int64[1] k = {{1}}> {{ y = {after} }}",
            {"opset": 20, "sizes": ({"a": 2, "b": 3}, {"a": 0, "b": 1}, {"a": 1, "b": 1})},
        )
        for op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
        for title, keepdims, dims, after in (
            ("kept", 1, "a, 1, b", "Identity(x)"),
            ("removed", 0, "a, b", "Squeeze(x, k)"),
        )
    }
    | {
        "every axis, an attribute": (
            "g (int64[1, 1] x) => (int64[1, 1] y) { y = ReduceMax<axes = [0, 1]>(x) }",
            "g (int64[1, 1] x) => (int64[1, 1] y) { y = Identity(x) }",
            {"opset": 13},
        ),
        "no axes": (
            "g (float[1, 1] x) => (float[1, 1] y) { y = ReduceProd(x) }",
            "g (float[1, 1] x) => (float[1, 1] y) { y = Identity(x) }",
        ),
    },
    "ReduceReshape": {
        "several axes": (
            """agraph (float[a,b,3,4] x) => (float[a,3] y)
            <int64[2] k = {-1, 1}, int64[2] s = {0, 3}> {
                r = ReduceSum(x, k)
                y = Reshape(r, s)
            }""",
            """agraph (float[a,b,3,4] x) => (float[a,3] y) <int64[2] k = {3, 1}> {
                y = ReduceSum <keepdims = 0> (x, k)
            }""",
        ),
        "every axis": (
            """agraph (float[a,3] x) => (float y) <int64[0] s = {}> {
                r = ReduceMax(x)
                y = Reshape(r, s)
            }""",
            "agraph (float[a,3] x) => (float y) { y = ReduceMax <keepdims = 0> (x) }",
        ),
        "-1 gives what is left": (
            """agraph (float[a,3,4] x) => (float[a] y) <int64[2] k = {1, 2}, int64[1] s = {-1}> {
                r = ReduceMin <keepdims = 1> (x, k)
                y = Reshape(r, s)
            }""",
            """agraph (float[a,3,4] x) => (float[a] y) <int64[2] k = {1, 2}> {
                y = ReduceMin <keepdims = 0> (x, k)
            }""",
        ),
        "a Squeeze of the same axes": (
            """agraph (float[a,3,b] x) => (float[3] y)
            <int64[2] k = {-1, 0}, int64[2] s = {0, 2}> {
                r = ReduceMean(x, k)
                y = Squeeze(r, s)
            }""",
            """agraph (float[a,3,b] x) => (float[3] y) <int64[2] k = {2, 0}> {
                y = ReduceMean <keepdims = 0> (x, k)
            }""",
        ),
        "a Squeeze of every axis": (
            """agraph (float[a,3] x) => (float y) <int64[2] s = {0, 1}> {
                r = ReduceMax(x)
                y = Squeeze(r, s)
            }""",
            "agraph (float[a,3] x) => (float y) { y = ReduceMax <keepdims = 0> (x) }",
        ),
        "a Reshape puts the axes back": (
            """agraph (float[a,3,b] x) => (float[a,1,1] y)
            <int64[2] k = {1, 2}, int64[3] s = {0, 1, 1}> {
                r = ReduceMin <keepdims = 0> (x, k)
                y = Reshape(r, s)
            }""",
            """agraph (float[a,3,b] x) => (float[a,1,1] y) <int64[2] k = {1, 2}> {
                y = ReduceMin <keepdims = 1> (x, k)
            }""",
        ),
        "other attributes stay": (
            """agraph (float[a,3] x) => (float[a] y) <int64[1] k = {1}, int64[1] s = {-1}> {
                r = ReduceL2 <noop_with_empty_axes = 1> (x, k)
                y = Reshape(r, s)
            }""",
            """agraph (float[a,3] x) => (float[a] y) <int64[1] k = {1}> {
                y = ReduceL2 <noop_with_empty_axes = 1, keepdims = 0> (x, k)
            }""",
        ),
    },
    "ReduceUnsqueeze": {
        "the same axes": (
            """agraph (float[a,b,3] x) => (float[a,1,1] y) <int64[2] k = {1, 2}, int64[2] u = {2, -2}> {
                r = ReduceSum <keepdims = 0> (x, k)
                y = Unsqueeze(r, u)
            }""",
            """agraph (float[a,b,3] x) => (float[a,1,1] y) <int64[2] k = {1, 2}> {
                y = ReduceSum <keepdims = 1> (x, k)
            }""",
        ),
        "every axis": (
            """agraph (float[a,b] x) => (float[1,1] y) <int64[2] u = {0, 1}> {
                r = ReduceMax <keepdims = 0> (x)
                y = Unsqueeze(r, u)
            }""",
            "agraph (float[a,b] x) => (float[1,1] y) { y = ReduceMax <keepdims = 1> (x) }",
        ),
    },
    "ReduceReduce": {
        "dimensions are kept": (
            """agraph (float[a,b,3,4] x) => (float[a,b,1,1] y) <int64[1] k = {-1}, int64[1] l = {-2}> {
                r = ReduceMean(x, k)
                y = ReduceMean(r, l)
            }""",
            """agraph (float[a,b,3,4] x) => (float[a,b,1,1] y) <int64[2] k = {2, 3}> {
                y = ReduceMean(x, k)
            }""",
        ),
        "dimensions are removed": (
            """agraph (float[a,b,3] x) => (float[a] y) <int64[1] k = {1}> {
                r = ReduceMax <keepdims = 0> (x, k)
                y = ReduceMax <keepdims = 0> (r, k)
            }""",
            """agraph (float[a,b,3] x) => (float[a] y) <int64[2] k = {1, 2}> {
                y = ReduceMax <keepdims = 0> (x, k)
            }""",
        ),
        "an axis twice": (
            """agraph (float[a,b,3] x) => (float[1,1,3] y) <int64[1] k = {1}, int64[2] l = {0, 1}> {
                r = ReduceSum(x, k)
                y = ReduceSum(r, l)
            }""",
            """agraph (float[a,b,3] x) => (float[1,1,3] y) <int64[2] k = {0, 1}> {
                y = ReduceSum(x, k)
            }""",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "ReduceOne": [
        (
            "g (float[a, 2] x) => (float[a, 1] y) <int64[1] k = {1}> { y = ReduceSum(x, k) }",
            "several",
        ),
        ("g (float[a, 1] x) => (float[1, 1] y) { y = ReduceSum(x) }", "several elements"),
        (
            "g (float[a, 1] x, int64[1] k) => (float[b, c] y) { y = ReduceSum(x, k) }",
            "the axes are not known",
        ),
        (
            "g (float[a, 1] x) => (float[a, 1] y) { y = ReduceSum<noop_with_empty_axes = 1>(x) }",
            "the axes are not known",
        ),
        (
            "g (float[] x) => (float[] y) <int64[1] k = {0}> { y = ReduceSum(x, k) }",
            "not known",
        ),
        ("g (float x) => (float y) { y = ReduceSum(x) }", "the axes are not known"),
    ],
    "ReduceUnsqueeze": [
        (
            """agraph (float[a,b] x) => (float[a,1] y, float[a] r) <int64[1] k = {1}> {
                r = ReduceSum <keepdims = 0> (x, k)
                y = Unsqueeze(r, k)
            }""",
            "its only use is not a Reshape",
        ),
        (
            """agraph (float[a,b] x) => (float[a,1,1] y) <int64[1] k = {1}> {
                r = ReduceSum <keepdims = 1> (x, k)
                y = Unsqueeze(r, k)
            }""",
            "the dimensions are kept",
        ),
        (
            """agraph (float[a,b] x) => (float[1,a] y) <int64[1] k = {1}, int64[1] l = {0}> {
                r = ReduceSum <keepdims = 0> (x, k)
                y = Unsqueeze(r, l)
            }""",
            "other axes are moved",
        ),
        (
            """agraph (float[] x) => (float[] y) <int64[1] k = {1}> {
                r = ReduceSum <keepdims = 0> (x, k)
                y = Unsqueeze(r, k)
            }""",
            "the rank is not known",
        ),
        (
            """agraph (float[a,b] x, int64[1] k) => (float[a,1] y) <int64[1] l = {1}> {
                r = ReduceSum <keepdims = 0> (x, k)
                y = Unsqueeze(r, l)
            }""",
            "the axes are not known",
        ),
    ],
    "ReduceReduce": [
        (
            """agraph (float[a,b] x) => (float[1,1] y) <int64[1] k = {1}, int64[1] l = {0}> {
                r = ReduceSum(x, k)
                y = ReduceMax(r, l)
            }""",
            "no ReduceMax before",
        ),
        (
            """agraph (float[a,b] x) => (float[1,1] y, float[a,1] r)
            <int64[1] k = {1}, int64[1] l = {0}> {
                r = ReduceSum(x, k)
                y = ReduceSum(r, l)
            }""",
            "used elsewhere",
        ),
        (
            """agraph (int64[a,b] x) => (int64[1,1] y) <int64[1] k = {1}, int64[1] l = {0}> {
                r = ReduceMean(x, k)
                y = ReduceMean(r, l)
            }""",
            "rounded in another order",
        ),
        (
            """agraph (int64[a,b] x) => (int64[1,1] y) <int64[1] k = {1}, int64[1] l = {0}> {
                r = ReduceSum(x, k)
                y = ReduceSum(r, l)
            }""",
            "rounded in another order",
        ),
        (
            """agraph (float[a,b] x) => (float[1] y) <int64[1] k = {1}, int64[1] l = {0}> {
                r = ReduceSum(x, k)
                y = ReduceSum <keepdims = 0> (r, l)
            }""",
            "the other does not",
        ),
        (
            """agraph (float[a,b] x, int64[1] k) => (float[1,1] y) <int64[1] l = {0}> {
                r = ReduceSum(x, k)
                y = ReduceSum(r, l)
            }""",
            "the axes are not known",
        ),
        (
            """agraph (float[a,b,c] x) => (float[1,b,1] y) <int64[1] k = {2}, int64[1] l = {0}> {
                r = ReduceSum(x, k)
                y = ReduceSum(r, l)
            }""",
            "not the first axes, nor the last ones",
        ),
        (
            """agraph (float[a,b,c,d] x) => (float[a,1,1,d] y) <int64[1] k = {2}, int64[1] l = {1}> {
                r = ReduceSum(x, k)
                y = ReduceSum(r, l)
            }""",
            "not the first axes, nor the last ones",
        ),
    ],
    "ReduceReshape": [
        *(
            (
                f"""agraph (float[a,{m},b] x) => (float[c,d] y)
                <int64[1] k = {{1}}, int64[1] s = {{{axis}}}> {{
                    r = ReduceSum(x, k)
                    y = Squeeze(r, s)
                }}""".replace("float[a", f"float[{a}"),
                "other axes are moved",
            )
            for a, m, axis in [(1, 3, 0), (1, 3, -3)]
        ),
        (
            """agraph (float[a,1,1,b] x) => (float[c,d] y)
            <int64[1] k = {1}, int64[2] s = {1, 2}> {
                r = ReduceSum(x, k)
                y = Squeeze(r, s)
            }""",
            "other axes are moved",
        ),
        (
            """agraph (float[a,3] x) => (float[a,1] y) <int64[1] k = {1}> {
                r = ReduceSum(x, k)
                y = Neg(r)
            }""",
            "its only use is not a Reshape",
        ),
        (
            """agraph (float[a,3] x) => (float[a] y, float[a,1] r)
            <int64[1] k = {1}, int64[1] s = {-1}> {
                r = ReduceSum(x, k)
                y = Reshape(r, s)
            }""",
            "its only use is not a Reshape",
        ),
        (
            """agraph (float[6] z, int64[a,3] x) => (float[b] y) {
                r = ReduceSum <keepdims = 1> (x)
                y = Reshape(z, r)
            }""",
            "its only use is not a Reshape",
        ),
        (
            """agraph (float[a,3] x) => (float[a] y) <int64[1] k = {1}, int64[1] s = {-1}> {
                r = ReduceSum <keepdims = 0> (x, k)
                y = Reshape(r, s)
            }""",
            "does more than moving the axes",
        ),
        (
            """agraph (float[a,1,3] x) => (float[a] y) <int64[1] k = {2}, int64[1] s = {1}> {
                r = ReduceSum <keepdims = 0> (x, k)
                y = Squeeze(r, s)
            }""",
            "the dimensions are not kept",
        ),
        (
            """agraph (float[] x) => (float[] y) <int64[1] k = {1}, int64[1] s = {-1}> {
                r = ReduceSum(x, k)
                y = Reshape(r, s)
            }""",
            "the rank is not known",
        ),
        # (0, 1) when a and b are null
        (
            """agraph (float[a,3,b] x) => (float[c,d] y) <int64[1] k = {1}, int64[2] i = {0, 2}> {
                r = ReduceSum(x, k)
                t = Shape(x)
                s = Gather(t, i)
                y = Reshape(r, s)
            }""",
            "a shape is not known for every size",
        ),
        (
            """agraph (float[a,3] x, int64[1] k) => (float[c] y) <int64[1] s = {-1}> {
                r = ReduceSum(x, k)
                y = Reshape(r, s)
            }""",
            "the axes are not known, or there is none",
        ),
        (
            """agraph (float[a,3] x) => (float[a,3] y) <int64[2] s = {0, 3}> {
                r = ReduceSum <noop_with_empty_axes = 1> (x)
                y = Reshape(r, s)
            }""",
            "the axes are not known, or there is none",
        ),
        (
            """agraph (float[a,3,4] x) => (float[a,2,2] y)
            <int64[1] k = {1}, int64[3] s = {0, 2, 2}> {
                r = ReduceSum(x, k)
                y = Reshape(r, s)
            }""",
            "does more than moving the axes",
        ),
        # both dimensions are kept
        (
            """agraph (float[a,3] x) => (float[1,a] y) <int64[1] k = {1}, int64[2] s = {1, -1}> {
                r = ReduceSum(x, k)
                y = Reshape(r, s)
            }""",
            "does more than moving the axes",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS, atol=1e-6, rtol=1e-5)


test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMean", "ReduceProd", "ReduceLogSumExp"])
@pytest.mark.parametrize("opset", [11, 12])
def test_axes_as_an_attribute(op_type: str, opset: int) -> None:
    check_pattern(
        f"""agraph (float[a,3,4] x) => (float[a,4] y) <int64[2] s = {{0, 4}}> {{
            r = {op_type} <axes = [1]> (x)
            y = Reshape(r, s)
        }}""",
        f"""agraph (float[a,3,4] x) => (float[a,4] y) {{
            y = {op_type} <axes = [1], keepdims = 0> (x)
        }}""",
        "ReduceReshape",
        opset=opset,
    )


def test_empty_tensors() -> None:
    check_pattern(
        *MODELS["ReduceReshape"]["several axes"], "ReduceReshape", sizes=[{"a": 0, "b": 2}]
    )
