"""Short vectors whose pieces change their places."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests

H = "g (int64[1] a, int64[1] b) => (int64[n] y)"
C = """int64[2] two = {7, 8}, int64[2] rows = {-1, 2}, int64[1] all = {-1}, int64[1] last = {-1},
    int64[1] first = {-9223372036854775807}, int64[1] zero = {0}, int64[1] back = {-1}"""
#: one element is proven by the inputs
FEEDS = {"feeds": [{"a": np.array([3], np.int64), "b": np.array([4], np.int64)}]}
REVERSED = """r = Reshape(c, rows) s = Slice(r, last, first, zero, back)
    t = Transpose<perm=[1, 0]>(s) y = Reshape(t, all)"""

MODELS = {
    "MovedPieces": {
        "pads of torch": (
            f"{H} <{C}> {{ c = Concat<axis=0>(a, b, two, zero, zero) {REVERSED} }}",
            f"""{H} <int64[2] k = {{0, 7}}, int64[2] l = {{0, 8}}> {{
                y = Concat<axis=0>(k, a, l, b)
            }}""",
            FEEDS,
        ),
        "a part of them": (
            f"""{H} <{C}> {{ c = Concat<axis=0>(a, two, b) r = Reshape(c, rows)
                s = Slice(r, zero, last, zero) y = Reshape(s, all) }}""",
            f"{H} <int64[1] k = {{7}}> {{ y = Concat<axis=0>(a, k) }}",
            FEEDS,
        ),
        "a piece that stays whole": (
            "g (int64[2] a, int64[2] b) => (int64[4] y) <int64[2] rows = {-1, 2}, int64[1] z = {0},"
            " int64[1] last = {-1}, int64[1] first = {-5}, int64[1] all = {-1}>"
            "{ c = Concat<axis=0>(a, b) r = Reshape(c, rows) s = Slice(r, last, first, z, last)"
            " y = Reshape(s, all) }",
            "g (int64[2] a, int64[2] b) => (int64[4] y) { y = Concat<axis=0>(b, a) }",
        ),
    },
}

REFUSED = {
    "MovedPieces": [
        (
            f"g (int64[2] a) => (int64[n] y) <{C}> {{ c = Concat<axis=0>(a, two) {REVERSED} }}",
            "a piece is cut",
        ),
        (
            f"g (int64[m] a) => (int64[n] y) <{C}> {{ c = Concat<axis=0>(a, two) {REVERSED} }}",
            "the length of a piece is not known",
        ),
        (f"g (int64[4] c) => (int64[n] y) <{C}> {{ {REVERSED} }}", "no Concat before"),
        (
            f"g (int64[1] a, int64[1] b) => (int64[1, n] y) <{C}> {{ c = Concat<axis=0>(a, b) r = Reshape(c, rows)"
            " t = Transpose<perm=[1, 0]>(r) y = Reshape(t, rows) }",
            "the result is not a vector",
        ),
        (
            f"g (int64[1] a, int64[1] b, int64[2] v) => (int64[n] y) <{C}> {{"
            " c = Concat<axis=0>(a, b) r = Reshape(c, v) t = Transpose<perm=[1, 0]>(r)"
            " y = Reshape(t, all) }",
            "a shape is not constant",
        ),
        (
            f"g (int64[1] a, int64[1] b, int64[1] v) => (int64[n] y) <{C}> {{"
            " c = Concat<axis=0>(a, b) r = Reshape(c, rows) t = Slice(r, v, last, zero)"
            " y = Reshape(t, all) }",
            "the bounds are not constant",
        ),
        # onnx reads the first row, python none
        (
            f"g (int64[1] a, int64[1] b) => (int64[n] y) <{C}, int64[1] far = {{-9}}> {{"
            " c = Concat<axis=0>(a, two, b) r = Reshape(c, rows)"
            " s = Slice(r, far, first, zero, back) y = Reshape(s, all) }",
            "what a Slice keeps is not known",
        ),
        (
            "g (float[1, 2] a, float[1, 2] b) => (float[4] y) <int64[1] all = {-1}> {"
            " c = Concat<axis=1>(a, b) t = Transpose<perm=[1, 0]>(c) y = Reshape(t, all) }",
            "no Concat of vectors",
        ),
        # backward to the largest integer: onnxruntime takes everything, numpy nothing
        (
            "g (int64[2] a, int64[2] b) => (int64[n] y) <int64[2] rows = {-1, 2}, int64[1] z = {0},"
            f" int64[1] last = {{-1}}, int64[1] end = {{{2**63 - 1}}}, int64[1] all = {{-1}}>"
            "{ c = Concat<axis=0>(a, b) r = Reshape(c, rows) s = Slice(r, last, end, z, last)"
            " y = Reshape(s, all) }",
            "what a Slice keeps is not known",
        ),
    ],
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)
