"""Neg beside a sum, before the largest of numbers."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests

H = "g (float[a, b] x, float[b] u) => (float[a, b] y)"

MODELS = {
    "NegSum": {
        "x + -u": (f"{H} {{ n = Neg(u) y = Add(x, n) }}", f"{H} {{ y = Sub(x, u) }}"),
        "-u + x": (f"{H} {{ n = Neg(u) y = Add(n, x) }}", f"{H} {{ y = Sub(x, u) }}"),
        "x - -u": (f"{H} {{ n = Neg(u) y = Sub(x, n) }}", f"{H} {{ y = Add(x, u) }}"),
        "integers": (
            "g (int64[a] x, int64 u) => (int64[a] y) { n = Neg(u) y = Add(x, n) }",
            "g (int64[a] x, int64 u) => (int64[a] y) { y = Sub(x, u) }",
        ),
    },
    "NegArgMax": {
        "the last dimension": (
            """g (float[a, 4] x) => (int64[a] y) {
                n = Neg(x)
                y = ArgMax<axis=1, keepdims=0>(n)
            }""",
            "g (float[a, 4] x) => (int64[a] y) { y = ArgMin<axis=1, keepdims=0>(x) }",
        ),
        "the smallest one, the last of equal values": (
            """g (float[4, a] x) => (int64[1, a] y) {
                n = Neg(x)
                y = ArgMin<select_last_index=1>(n)
            }""",
            "g (float[4, a] x) => (int64[1, a] y) { y = ArgMax<select_last_index=1>(x) }",
            {"feeds": [{"x": np.array([[1, 2], [0, 2], [0, 2], [1, 2]], np.float32)}]},
        ),
    },
}

REFUSED = {
    "NegArgMax": [
        ("g (int32[a] x) => (int64[1] y) { n = Neg(x) y = ArgMax(n) }", "the type is not a float"),
        (
            "g (float[a] x) => (int64[1] y, float[a] n) { n = Neg(x) y = ArgMax(n) }",
            "used elsewhere",
        ),
    ],
    "NegSum": [
        (
            "g (float[a] x, float[a] u) => (float[a] y, float[a] n) { n = Neg(u) y = Add(x, n) }",
            "used elsewhere",
        ),
    ],
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)
