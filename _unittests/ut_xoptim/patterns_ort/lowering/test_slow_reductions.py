"""Reductions written with faster ones."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

HEAD = '<ir_version: 8, opset_import: ["" : 18]> g (float[n, 16, 32] x)'
Y = "(float[n, 16, 1] y) <int64[1] a = {2}>"


def model(body: str, y: str = Y, head: str = HEAD) -> str:
    """One reduction."""
    return f"{head} => {y} {{ {body} }}"


#: what the documentation draws: name -> (before, after)
MODELS = {
    "SlowReduction": {
        "ReduceL2": (
            model("y = ReduceL2(x, a)"),
            model("s = Mul(x, x) t = ReduceSum<keepdims = 1>(s, a) y = Sqrt(t)"),
        ),
        "ReduceSumSquare, dimensions removed": (
            model("y = ReduceSumSquare<keepdims = 0>(x, a)", Y.replace(", 1] y", "] y")),
            model("s = Mul(x, x) y = ReduceSum<keepdims = 0>(s, a)", Y.replace(", 1] y", "] y")),
        ),
    },
}
LIMITS = ", float low = {-3.4028234663852886e+38}, float high = {3.4028234663852886e+38}>"
#: pattern -> case -> (before, after)
CASES = {
    "SlowReduction": {
        "ReduceL1": (
            model("y = ReduceL1(x, a)"),
            model("s = Abs(x) y = ReduceSum<keepdims = 1>(s, a)"),
        ),
        "ReduceLogSumExp": (
            model("y = ReduceLogSumExp(x, a)"),
            model(
                "m = ReduceMax<keepdims = 1>(x, a) c = Clip(m, low, high) d = Sub(x, c) e = Exp(d)"
                " s = ReduceSum<keepdims = 1>(e, a) l = Log(s) y = Add(l, c)",
                Y[:-1] + LIMITS,
            ),
        ),
        "ReduceLogSumExp, dimensions removed": (
            model("y = ReduceLogSumExp<keepdims = 0>(x, a)", Y.replace(", 1] y", "] y")),
            model(
                "m = ReduceMax<keepdims = 1>(x, a) c = Clip(m, low, high) d = Sub(x, c) e = Exp(d)"
                " s = ReduceSum<keepdims = 0>(e, a) l = Log(s) r = Squeeze(c, a) y = Add(l, r)",
                Y.replace(", 1] y", "] y")[:-1] + LIMITS,
            ),
        ),
        "axes as an attribute": (
            model("y = ReduceL2<axes = [2]>(x)", "(float[n, 16, 1] y)", HEAD.replace("18", "13")),
            model(
                "s = Mul(x, x) t = ReduceSum<keepdims = 1>(s, a) y = Sqrt(t)",
                Y,
                HEAD.replace("18", "13"),
            ),
        ),
    },
}
#: pattern -> case -> (model, reason)
REFUSED = {
    "SlowReduction": {
        "everything": (
            model("y = ReduceL2(x)", "(float[1, 1, 1] y)", HEAD.replace("n, 16", "1, 128")),
            "every dimension is reduced",
        ),
        "everything but dimensions 1": (
            model("y = ReduceL2(x, a)", "(float[1, 1, 1] y) <int64[1] a = {2}>").replace(
                "[n, 16, 32]", "[1, 1, 4096]"
            ),
            "every dimension is reduced",
        ),
        "few elements": (
            model("y = ReduceL2(x, a)").replace("[n, 16", "[4, 16").replace("32]", "31]"),
            "there are few elements",
        ),
        "short rows": (
            model("y = ReduceL2(x, a)").replace("[n, 16", "[n, 4"),
            "there are few elements",
        ),
        "the axes are an input": (
            f"{HEAD[:-1]}, int64[1] a) => (float[n, 16, 1] y) {{ y = ReduceL1(x, a) }}",
            "the axes are not known",
        ),
        "no axis": (
            model("y = ReduceL1<noop_with_empty_axes = 1>(x)", "(float[n, 16, 32] y)"),
            "the axes are not known",
        ),
        "an empty dimension": (
            model("y = ReduceLogSumExp(x, a)", head=HEAD.replace("16, 32", "600, m")),
            "there may be nothing to add",
        ),
        "doubles": (
            model("y = ReduceL2(x, a)").replace("float[n", "double[n"),
            "the elements are not float",
        ),
    },
}
test_rewrites = rewrite_tests(MODELS, atol=1e-5)
test_cases = rewrite_tests(CASES, atol=1e-5)
test_refused = refusal_tests(REFUSED)


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan, 200.0, -200.0])
@pytest.mark.parametrize("every", [False, True])
def test_infinities(value, every):
    """Infinite elements, rows of them, and those whose exponential overflows."""
    x = np.random.default_rng(0).standard_normal((3, 16, 32)).astype(np.float32)
    x[0, 0, slice(None) if every else 0] = value
    text = model("y = ReduceLogSumExp(x, a)")
    # the reference evaluator overflows
    check_pattern(text, None, "SlowReduction", feeds=[{"x": x}], atol=1e-4, reference=False)
