"""Products that are split."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def model(
    body: str,
    out: str = "float[a, b, 1] y, float[a, b, 3] z",
    weight: str = "float[2, 4] w = {1, 2, 3, 4, 5, 6, 7, 8}",
    x: str = "float[a, b, 2] x",
    lengths: str = "int64[2] n = {1, 3}",
) -> str:
    """A product by a matrix."""
    return f"g ({x}) => ({out}) <{weight}, {lengths}> {{ {body} }}"


PRODUCT = "p = MatMul(x, w) "
SPLIT = PRODUCT + "y, z = Split<axis = -1>(p, n)"
PARTS = "float[2, 1] u = {1, 5}, float[2, 3] v = {2, 3, 4, 6, 7, 8}"

#: what the documentation draws: pattern -> case -> (before, after)
MODELS = {
    "SplitProduct": {
        "two parts": (
            model(SPLIT),
            model("y = MatMul(x, u) z = MatMul(x, v)", weight=PARTS),
            {"sizes": [{"a": 2, "b": 3}, {"a": 1, "b": 1}, {"a": 0, "b": 2}]},
        ),
        "a matrix, double": (
            model(SPLIT.replace("-1", "1"), x="float[a, 2] x", out="float[a, 1] y, float[a, 3] z")
            .replace("float", "double"),
            model("y = MatMul(x, u) z = MatMul(x, v)", weight=PARTS, x="float[a, 2] x",
                  out="float[a, 1] y, float[a, 3] z").replace("float", "double"),
        ),
    },
}  # fmt: skip

REFUSED = {
    "SplitProduct": {
        "used elsewhere": (
            model(SPLIT + " q = Neg(p)", "float[a, b, 1] y, float[a, b, 3] z, float[a, b, 4] q"),
            "the product is used elsewhere",
        ),
        "no constant": (
            """g (float[a, 2] x, float[2, 4] w) => (float[a, 1] y, float[a, 3] z)
            <int64[2] n = {1, 3}> { p = MatMul(x, w) y, z = Split<axis = 1>(p, n) }""",
            "the weight is not a constant",
        ),
        "another axis": (
            model(PRODUCT + "y, z = Split<axis = 0>(p, n)", "float[1, b, 4] y, float[3, b, 4] z",
                  x="float[4, b, 2] x"),
            "it is not split along the columns",
        ),
        "batches of weights": (
            model(SPLIT, weight="float[1, 2, 4] w = {1, 2, 3, 4, 5, 6, 7, 8}"),
            "it is not split along the columns",
        ),
        "an empty part": (
            model(SPLIT, "float[a, b, 0] y, float[a, b, 4] z", lengths="int64[2] n = {0, 4}"),
            "the parts are not known, or empty",
        ),
        "unknown parts": (
            """g (float[a, 2] x, int64[2] n) => (float[a, c] y, float[a, d] z)
            <float[2, 4] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
                p = MatMul(x, w) y, z = Split<axis = 1>(p, n)
            }""",
            "the parts are not known, or empty",
        ),
        "integers": (
            model(SPLIT).replace("float", "int32"),
            "the type of the weight is not a float type",
        ),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, **CLOSE)


test_refuses = refusal_tests(REFUSED)
