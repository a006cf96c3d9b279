"""Means written as sums, variances written as a difference of means, centered rows multiplied out."""

from __future__ import annotations

import numpy as np

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

H = "g (float[a, 4] x) => (float[a, {}] y)"
KEPT, GONE = H.format(1), "g (float[a, 4] x) => (float[a] y)"
C = "float quarter = {0.25}, float four = {4}, float two = {2}, float zero = {0}, int64[1] k = {-1}"


def model(nodes: str, header: str = KEPT, constants: str = C) -> str:
    return f"{header} <{constants}> {{ {nodes} }}"


def one_pass(keepdims: int = 1, end: str = "y = Sub(q, s)") -> str:
    """mean(x * x) - mean(x)^2"""
    k = f"<keepdims = {keepdims}>"
    return f"m = ReduceMean{k}(x, k) p = Mul(x, x) q = ReduceMean{k}(p, k) s = Mul(m, m) {end}"


F = "g (float[a, 4] x) => (float[a, 4] y)"
ROWS = "int64[1] k = {-1}, float[4] b = {1, 2, 3, 4}, float[4] s = {3, 2, 1, 4}"
FACTORED = "m = ReduceMean(x, k) d = Sub(x, m) p = Mul(d, s) y = Add(p, b)"


def multiplied_out(end: str) -> str:
    """mean(x), x * s and the end"""
    return f"m = ReduceMean(x, k) p = Mul(x, s) {end}"


def factored_mean(end: str) -> tuple[str, str, dict[str, float]]:
    """A test model of FactoredMean."""
    return model(multiplied_out(end), F, ROWS), model(FACTORED, F, ROWS), {"atol": 1e-5}


TWO_PASS = "m = ReduceMean<keepdims = 1>(x, k) d = Sub(x, m) p = Mul(d, d) y = ReduceMean<keepdims = 1>(p, j)"
SQUEEZED = (
    "m = ReduceMean<keepdims = 0>(x, k) u = Unsqueeze(m, j) d = Sub(x, u) p = Mul(d, d)"
    "y = ReduceMean<keepdims = 0>(p, j)"
)

MODELS = {
    "SumToMean": {
        "a quotient": (
            model("s = ReduceSum(x, k) y = Div(s, four)"),
            model("y = ReduceMean<keepdims = 1>(x, k)", constants="int64[1] k = {1}"),
        ),
        "a product, the dimension goes": (
            model("s = ReduceSum<keepdims = 0>(x, k) y = Mul(quarter, s)", GONE),
            model("y = ReduceMean<keepdims = 0>(x, k)", GONE, "int64[1] k = {1}"),
        ),
        "two axes": (
            model(
                "s = ReduceSum(x, both) y = Div(s, eight)",
                "g (float[a, 2, 4] x) => (float[a, 1, 1] y)",
                "int64[2] both = {1, 2}, float eight = {8}",
            ),
            model(
                "y = ReduceMean<keepdims = 1>(x, both)",
                "g (float[a, 2, 4] x) => (float[a, 1, 1] y)",
                "int64[2] both = {1, 2}",
            ),
        ),
    },
    "OnePassVariance": {
        "dimensions stay": (
            model(one_pass()),
            model(TWO_PASS, constants="int64[1] k = {-1}, int64[1] j = {1}"),
            {"atol": 1e-5},
        ),
        "a square": (
            model(one_pass().replace("Mul(x, x)", "Pow(x, two)")),
            model(TWO_PASS, constants="int64[1] k = {-1}, int64[1] j = {1}"),
            {"atol": 1e-5},
        ),
        "dimensions go": (
            model(one_pass(0), GONE),
            model(SQUEEZED, GONE, "int64[1] k = {-1}, int64[1] j = {1}"),
            {"atol": 1e-5},
        ),
        "Relu": (
            model(one_pass(1, "v = Sub(q, s) y = Relu(v)")),
            model(TWO_PASS, constants="int64[1] k = {-1}, int64[1] j = {1}"),
            {"atol": 1e-5},
        ),
        "maximum with 0": (
            model(one_pass(1, "v = Sub(q, s) y = Max(zero, v)")),
            model(TWO_PASS, constants="int64[1] k = {-1}, int64[1] j = {1}"),
            {"atol": 1e-5},
        ),
        "maximum with something else": (
            model(one_pass(1, "v = Sub(q, s) y = Max(v, four)")),
            model(
                TWO_PASS.replace("y =", "v =") + " y = Max(v, four)",
                constants="float four = {4}, int64[1] k = {-1}, int64[1] j = {1}",
            ),
            {"atol": 1e-5},
        ),
    },
    "FactoredMean": {
        "a difference": factored_mean("q = Mul(m, s) t = Sub(b, q) y = Add(p, t)"),
        "the mean is negated": factored_mean(
            "n = Neg(m) q = Mul(s, n) t = Add(q, b) y = Add(t, p)"
        ),
        "the product is negated": factored_mean(
            "q = Mul(m, s) n = Neg(q) t = Add(b, n) y = Add(p, t)"
        ),
    },
}

REFUSED = {
    "SumToMean": {
        "another number": (
            model("s = ReduceSum(x, k) y = Div(s, two)"),
            "it is not divided by the number of elements",
        ),
        "an unknown length": (
            model("s = ReduceSum(x, k) y = Div(s, four)", "g (float[a, b] x) => (float[a, 1] y)"),
            "the number of elements is not known",
        ),
        "unknown axes": (
            model("s = ReduceSum(x, i) y = Div(s, four)", KEPT.replace("x)", "x, int64[1] i)")),
            "the axes are not known",
        ),
        "integers": (
            "g (int64[a, 4] x) => (int64[a, 1] y) <int64 four = {4}, int64[1] k = {1}>"
            "{ s = ReduceSum(x, k) y = Div(s, four) }",
            "the type is not a float type",
        ),
    },
    "OnePassVariance": {
        "other elements": (
            model(
                one_pass().replace("Mul(x, x)", "Mul(z, z)"),
                KEPT.replace("x)", "x, float[a, 4] z)"),
            ),
            "the means are not those of the same elements",
        ),
        "other axes": (
            model(
                "m = ReduceMean(x, k) p = Mul(x, x) q = ReduceMean(p, j) s = Mul(m, m) y = Sub(q, s)",
                "g (float[4, 4] x) => (float[4, 4] y)",
                f"{C}, int64[1] j = {{0}}",
            ),
            "the means are not those of the same elements",
        ),
        "a product": (
            model(one_pass().replace("Mul(m, m)", "Mul(m, four)")),
            "it is not a square",
        ),
        "a cube": (
            model(one_pass().replace("Mul(m, m)", "Pow(m, four)")),
            "it is not a square",
        ),
        "a sum": (model(one_pass().replace("Mul(m, m)", "Add(m, m)")), "no Mul nor Pow before"),
        "the axes are an input": (
            model(one_pass().replace("(p, k)", "(p, i)"), KEPT.replace("x)", "x, int64[1] i)")),
            "the axes are not known",
        ),
    },
}

REFUSED["FactoredMean"] = {
    "not a mean": (
        model(
            multiplied_out("r = ReduceMax(x, k) q = Mul(r, s) t = Sub(b, q) y = Add(p, t)"), F, ROWS
        ),
        "it is not multiplied by a mean",
    ),
    "the mean of something else": (
        model(
            "m = ReduceMean(z, k) p = Mul(x, s) q = Mul(m, s) t = Sub(b, q) y = Add(p, t)",
            F.replace("x)", "x, float[a, 4] z)"),
            ROWS,
        ),
        "it is not the mean of what is multiplied",
    ),
    "the dimensions go": (
        model(
            "m = ReduceMean<keepdims = 0>(x, k) p = Mul(x, s) q = Mul(m, s) t = Sub(b, q) y = Add(p, t)",
            F.replace("float[a, 4] x", "float[4, 4] x"),
            ROWS,
        ),
        "the dimensions of the mean go",
    ),
    "another factor": (
        model(multiplied_out("q = Mul(m, b) t = Sub(b, q) y = Add(p, t)"), F, ROWS),
        "cannot be 'k', which is 's'",
    ),
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_a_large_mean() -> None:
    """The difference of means loses the digits that the other form keeps: float64 says which."""
    rows = np.array([[4096, 4097, 4098, 4099]], dtype=np.float32)
    check_pattern(
        model(one_pass()), model(TWO_PASS, constants="int64[1] k = {-1}, int64[1] j = {1}"), "OnePassVariance",
        feeds=[{"x": rows}], atol=2,
    )  # fmt: skip


def test_a_normalization_of_keras() -> None:
    """What is factored is a LayerNormalization with its scale and its bias."""
    before = model(
        """m = ReduceMean(x, k) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, k) w = Add(v, e)
        r = Sqrt(w) i = Reciprocal(r) f = Mul(i, s) p = Mul(x, f) n = Neg(m) o = Mul(n, f)
        t = Add(o, b) y = Add(p, t)""",
        F, ROWS + ", float e = {0.001}",
    )  # fmt: skip
    after = model(
        "y = LayerNormalization<axis = -1, epsilon = 0.001>(x, s, b)", F,
        "float[4] s = {3, 2, 1, 4}, float[4] b = {1, 2, 3, 4}",
    )  # fmt: skip
    check_pattern(before, after, "default", atol=1e-4)
