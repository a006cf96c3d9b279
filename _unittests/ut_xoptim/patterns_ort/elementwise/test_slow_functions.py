"""Functions written with faster operators."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests


def model(body: str, constants: str = "", x: str = "float[n, t, 64] x") -> str:
    """One function of x."""
    return f"g ({x}) => (float[n, t, 64] y) <{constants or 'float unused = {0}'}> {{ {body} }}"


def power(value: float, before: str = "") -> str:
    """Pow of x, or of a result t."""
    return model(f"{before} y = Pow({'t' if before else 'x'}, p)", f"float p = {{{value}}}")


TWO = "float one = {1}, float two = {2}, float high = {20}"
#: what the documentation draws: name -> (before, after)
MODELS = {
    "SlowPow": {
        "a square": (power(2.0), model("y = Mul(x, x)")),
        "the inverse of a root": (
            power(-0.5, "t = Abs(x)"),
            model("t = Abs(x) s = Sqrt(t) y = Reciprocal(s)"),
        ),
    },
    "SlowDiv": {
        "a number": (
            model("y = Div(x, c)", "float c = {8}"),
            model("y = Mul(x, c)", "float c = {0.125}"),
        ),
    },
    "SlowActivation": {
        "Softplus": (
            model("y = Softplus(x)"),
            model(
                "a = Abs(x) n = Neg(a) e = Exp(n) w = Add(e, one) l = Log(w) k = Sub(w, one)"
                " c = Sub(e, k) t = Add(l, c) r = Relu(x) y = Add(r, t)",
                "float one = {1}",
            ),
        ),
        "Mish": (
            model("y = Mish(x)"),
            model(
                "m = Min(x, high) e = Exp(m) a = Add(e, two) p = Mul(e, a) q = Add(p, two)"
                " d = Div(p, q) y = Mul(x, d)",
                TWO,
            ),
        ),
        "Elu": (
            model("y = Elu(x)"),
            model(
                "m = Min(x, zero) e = Exp(m) s = Sub(e, one) y = Max(x, s)",
                "float one = {1}, float zero = {0}",
            ),
        ),
    },
}
#: pattern -> case -> (before, after)
CASES = {
    "SlowPow": {
        "an inverse": (power(-1.0), model("y = Reciprocal(x)")),
        "a square, twice": (power(4.0), model("s = Mul(x, x) y = Mul(s, s)")),
        "the root of a sum": (
            model(
                "s = Mul(x, x) m = ReduceMean<axes = [1], keepdims = 1>(s) t = Add(m, e)"
                " r = Pow(t, p) y = Mul(x, r)",
                "float e = {0.001}, float[1] p = {0.5}",
            ).replace("g (", '<ir_version: 8, opset_import: ["" : 13]> g ('),
            model(
                "s = Mul(x, x) m = ReduceMean<axes = [1], keepdims = 1>(s) t = Add(m, e)"
                " r = Sqrt(t) y = Mul(x, r)",
                "float e = {0.001}",
            ).replace("g (", '<ir_version: 8, opset_import: ["" : 13]> g ('),
        ),
    },
    "SlowDiv": {
        "one number for each row": (
            model("y = Div(x, c)", "float[1, 4, 1] c = {1, 2, 4, 5}").replace("n, t", "n, 4"),
            model("y = Mul(x, c)", "float[1, 4, 1] c = {1, 0.5, 0.25, 0.2}").replace(
                "n, t", "n, 4"
            ),
        ),
        "powers of two, rounded": (
            model("t = Div(x, c) y = Floor(t)", "float c = {-8}"),
            model("t = Mul(x, c) y = Floor(t)", "float c = {-0.125}"),
        ),
    },
    "SlowActivation": {
        "Elu, another slope": (
            model("y = Elu<alpha = 0.5>(x)"),
            model(
                "r = Relu(x) m = Min(x, zero) e = Exp(m) s = Sub(e, one) q = Mul(s, a)"
                " y = Add(r, q)",
                "float one = {1}, float zero = {0}, float a = {0.5}",
            ),
        ),
    },
}
#: pattern -> case -> (model, reason)
REFUSED = {
    "SlowPow": {
        "a cube": (power(3.0), "it is another power"),
        "any number": (power(0.5), "a number may be negative"),
        "a difference": (power(0.5, "a = Abs(x) t = Sub(a, x)"), "a number may be negative"),
        "powers": (
            model("y = Pow(x, p)", "float[1, 4, 1] p = {2, 2, 2, 2}"),
            "the power is not one number",
        ),
        "not constant": (
            model("y = Pow(x, p)", x="float[n, t, 64] x, float p"),
            "the power is not one number",
        ),
        "another rank": (
            model("y = Pow(x, p)", "float[1, 1, 1, 1] p = {2}").replace(
                "(float[n, t, 64] y", "(float[1, n, t, 64] y"
            ),
            "the shape may change",
        ),
        "doubles": (
            model("y = Pow(x, p)", "double p = {2}").replace("float[n", "double[n"),
            "the elements are not float",
        ),
    },
    "SlowDiv": {
        "not constant": (
            model("y = Div(x, c)", x="float[n, t, 64] x, float[64] c"),
            "the divisor is not constant",
        ),
        "rounded": (
            model("t = Div(x, c) y = Floor(t)", "float c = {41}"),
            "the result is rounded or compared",
        ),
        "compared": (
            model("t = Div(x, c) b = Less(t, c) y = Cast<to = 1>(b)", "float c = {41}"),
            "the result is rounded or compared",
        ),
        "zero": (model("y = Div(x, c)", "float c = {0}"), "is not a normal number"),
        "infinity": (model("y = Div(x, c)", "float c = {inf}"), "is not a normal number"),
        "a tiny number": (model("y = Div(x, c)", "float c = {1e-38}"), "is not a normal number"),
        "integers": (
            model("y = Div(x, c)", "int64 c = {3}").replace("float[n", "int64[n"),
            "the elements are not float",
        ),
    },
    "SlowActivation": {
        "behind a Gemm": (
            "g (float[64, 8] x, float[8, 64] w) => (float[64, 64] y){ t = Gemm(x, w) y = Elu(t) }",
            "FusedGemm takes it",
        ),
        "few elements": (
            model("y = Elu(x)").replace("n, t, 64", "15, 64, 4"),
            "there are few elements",
        ),
        "few elements in a row": (
            model("y = Softplus(x)").replace("n, t, 64", "n, 3, 4"),
            "there are few elements",
        ),
        "doubles": (
            model("y = Softplus(x)").replace("float[n", "double[n"),
            "the elements are not float",
        ),
    },
}
test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)
test_cases = rewrite_tests(CASES, atol=1e-5, rtol=1e-5)
test_refused = refusal_tests(REFUSED)


@pytest.mark.parametrize("op_type", ["Elu", "Mish", "Softplus"])
def test_large_and_infinite_numbers(op_type):
    x = np.concatenate([np.linspace(-120, 120, 250), [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38]])
    x = x.astype(np.float32).reshape(1, 4, 64)
    check_pattern(
        model(f"y = {op_type}(x)"),
        None,
        "SlowActivation",
        feeds=[{"x": x}],
        atol=1e-5,
        reference=False,
    )


def test_small_results():
    x = np.linspace(-80, 5, 256, dtype=np.float32).reshape(1, 4, 64)
    body = model("s = Softplus(x) y = Log(s)")
    check_pattern(body, None, "SlowActivation", feeds=[{"x": x}], atol=1e-5, rtol=1e-5)
    check_pattern(body, None, "default+onnxruntime", feeds=[{"x": x}], atol=1e-5, rtol=1e-5)
