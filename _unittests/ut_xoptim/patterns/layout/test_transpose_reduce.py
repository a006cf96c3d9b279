"""A Transpose before a Reduce*, an ArgMax, an ArgMin."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "TransposeReduce": {
        "the axes that stay are in order": (
            """agraph (float[a,3,b,4] x) => (float[a,3] y) <int64[2] k = {1, -2}> {
                t = Transpose <perm = [0, 2, 3, 1]> (x)
                y = ReduceMax <keepdims = 0> (t, k)
            }""",
            """agraph (float[a,3,b,4] x) => (float[a,3] y) <int64[2] k = {2, 3}> {
                y = ReduceMax <keepdims = 0> (x, k)
            }""",
        ),
        "the Transpose is used elsewhere, none is left": (
            """agraph (float[a,3,b] x) => (float[a,3] y, float[a,b,3] t) <int64[1] k = {1}> {
                t = Transpose <perm = [0, 2, 1]> (x)
                y = ReduceMax <keepdims = 0> (t, k)
            }""",
            """agraph (float[a,3,b] x) => (float[a,3] y, float[a,b,3] t) <int64[1] k = {2}> {
                t = Transpose <perm = [0, 2, 1]> (x)
                y = ReduceMax <keepdims = 0> (x, k)
            }""",
        ),
        "another Transpose is left": (
            """agraph (float[a,3,b] x) => (float[b,a] y) <int64[1] k = {1}> {
                t = Transpose <perm = [2, 1, 0]> (x)
                y = ReduceMin <keepdims = 0> (t, k)
            }""",
            """agraph (float[a,3,b] x) => (float[b,a] y) <int64[1] k = {1}> {
                r = ReduceMin <keepdims = 0> (x, k)
                y = Transpose <perm = [1, 0]> (r)
            }""",
        ),
        "the dimensions are kept": (
            """agraph (float[a,3,b] x) => (float[1,a,b] y) <int64[1] k = {0}> {
                t = Transpose <perm = [1, 0, 2]> (x)
                y = ReduceMax <keepdims = 1> (t, k)
            }""",
            """agraph (float[a,3,b] x) => (float[1,a,b] y) <int64[1] k = {1}> {
                r = ReduceMax <keepdims = 1> (x, k)
                y = Transpose <perm = [1, 0, 2]> (r)
            }""",
        ),
        "every axis": (
            """agraph (float[a,3] x) => (float y) {
                t = Transpose(x)
                y = ReduceMax <keepdims = 0> (t)
            }""",
            """agraph (float[a,3] x) => (float y) <int64[2] k = {0, 1}> {
                y = ReduceMax <keepdims = 0> (x, k)
            }""",
        ),
        "integers in the same order": (
            """agraph (int64[a,3,b] x) => (int64[3] y) <int64[2] k = {1, 0}> {
                t = Transpose <perm = [0, 2, 1]> (x)
                y = ReduceSum <keepdims = 0> (t, k)
            }""",
            """agraph (int64[a,3,b] x) => (int64[3] y) <int64[2] k = {0, 2}> {
                y = ReduceSum <keepdims = 0> (x, k)
            }""",
        ),
        "the place of the largest one": (
            """agraph (float[a,3,b,4] x) => (int64[a,b,4] y) {
                t = Transpose <perm = [0, 2, 3, 1]> (x)
                y = ArgMax <axis = -1, keepdims = 0, select_last_index = 1> (t)
            }""",
            """agraph (float[a,3,b,4] x) => (int64[a,b,4] y) {
                y = ArgMax <axis = 1, keepdims = 0, select_last_index = 1> (x)
            }""",
        ),
        "the place of the smallest one, along the first axis": (
            """agraph (int32[a,3] x) => (int64[1,a] y) {
                t = Transpose <perm = [1, 0]> (x)
                y = ArgMin(t)
            }""",
            """agraph (int32[a,3] x) => (int64[1,a] y) {
                r = ArgMin <axis = 1> (x)
                y = Transpose <perm = [1, 0]> (r)
            }""",
        ),
    }
}

#: pattern -> [(model, reason)]
REFUSED = {
    "TransposeReduce": [
        (
            """agraph (float[a,3,b] x) => (float[b,a] y, float[b,3,a] t) <int64[1] k = {1}> {
                t = Transpose <perm = [2, 1, 0]> (x)
                y = ReduceMax <keepdims = 0> (t, k)
            }""",
            "the Transpose is used elsewhere, another one would be left",
        ),
        (
            """agraph (float[a,3] x, int64[1] k) => (float[b] y) {
                t = Transpose(x)
                y = ReduceMax <keepdims = 0> (t, k)
            }""",
            "the axes are not known, or there is none",
        ),
        (
            """agraph (float[a,3] x) => (float[3,a] y) <int64[0] k = {}> {
                t = Transpose(x)
                y = ReduceSum <noop_with_empty_axes = 1> (t, k)
            }""",
            "the axes are not known, or there is none",
        ),
        (
            """agraph (float[a,3] x) => (float[a] y) <int64[1] k = {1}> {
                y = ReduceMax <keepdims = 0> (x, k)
            }""",
            "no Transpose before",
        ),
        (
            """agraph (float[] x) => (float[] y) <int64[1] k = {1}> {
                t = Transpose(x)
                y = ReduceMax <keepdims = 0> (t, k)
            }""",
            "the permutation is not known",
        ),
        (
            """agraph (int64[a,3,b] x) => (int64[a] y) <int64[2] k = {1, 2}> {
                t = Transpose <perm = [0, 2, 1]> (x)
                y = ReduceSum <keepdims = 0> (t, k)
            }""",
            "integers may be rounded in another order",
        ),
    ],
}

test_rewrite = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("opset", [11, 13])
def test_axes_are_an_attribute(opset):
    before, after = (
        f"""agraph (float[a,3,b] x) => (float[a,b] y) {{
            {transpose} y = ReduceMax <axes = [{axis}], keepdims = 0> ({name})
        }}"""
        for transpose, axis, name in (
            ("t = Transpose <perm = [0, 2, 1]> (x)", -1, "t"),
            ("", 1, "x"),
        )
    )
    check_pattern(before, after, "TransposeReduce", opset=opset)


@settings(max_examples=60, deadline=None)
@given(
    st.permutations(range(4)),
    st.sets(st.integers(-4, 3), min_size=1),
    st.booleans(),
    st.sampled_from(["ReduceMax", "ReduceSum", "ReduceProd"]),
)
def test_any_permutation_and_axes(perm, axes, keeps, op_type):
    """The largest integer is the same whatever the order, floats are rounded."""
    kind = "int32" if op_type == "ReduceMax" else "float"
    axes = sorted({axis % 4 for axis in axes})
    dims = [("a", 2, "b", 3)[p] for p in perm]
    left = [1 if i in axes else d for i, d in enumerate(dims) if keeps or i not in axes]
    check_pattern(
        f"""agraph ({kind}[a,2,b,3] x) => ({kind}[{",".join(map(str, left))}] y)
        <int64[{len(axes)}] k = {{{", ".join(map(str, axes))}}}> {{
            t = Transpose <perm = {list(perm)}> (x)
            y = {op_type} <keepdims = {int(keeps)}> (t, k)
        }}""",
        None,
        "TransposeReduce",
        sizes=[{"a": 1, "b": 5}, {"a": 3, "b": 1}, {"a": 2, "b": 4}],
        rtol=1e-4,
        atol=1e-4,
    )
