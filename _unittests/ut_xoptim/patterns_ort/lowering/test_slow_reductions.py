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


def along(body: str, axes: str = "int64[1] a = {1}", x: str = "n, 21, 16, 16") -> str:
    """A function along one axis of a picture."""
    return (
        f'<ir_version: 8, opset_import: ["" : 18]> g (float[{x}] x) => (float[{x}] y)'
        f" <{axes}> {{ {body} }}"
    )


LESS = (
    "f = ReduceMax<keepdims = 1>(x, a) m = Max(f, low) d = Sub(x, m) e = Exp(d)"
    " s = ReduceSum<keepdims = 1>(e, a)"
)
BOUNDED = "int64[1] a = {1}, float low = {-3.4028234663852886e+38}"
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
    "SlowSoftmax": {
        "Softmax": (along("y = Softmax<axis = 1>(x)"), along(f"{LESS} y = Div(e, s)", BOUNDED)),
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
    "SlowSoftmax": {
        "LogSoftmax": (
            along("y = LogSoftmax<axis = -3>(x)"),
            along(f"{LESS} l = Log(s) y = Sub(d, l)", BOUNDED),
        ),
        "pictures of any size": (
            along("y = Softmax<axis = 1>(x)", x="n, 21, h, w"),
            along(f"{LESS} y = Div(e, s)", BOUNDED, x="n, 21, h, w"),
        ),
        "one class": (
            along("y = Softmax<axis = 1>(x)", x="n, 1, 16, 16"),
            along(f"{LESS} y = Div(e, s)", BOUNDED, x="n, 1, 16, 16"),
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
    "SlowSoftmax": {
        "the last axis": (
            along("y = Softmax(x)"),
            "few elements come after each of the axis, even_slower=True applies it",
        ),
        "a small picture": (
            along("y = Softmax<axis = 1>(x)", x="n, 21, 15, 17"),
            "few elements come after each of the axis, even_slower=True applies it",
        ),
        "a sequence of any length": (
            along("y = Softmax<axis = 1>(x)", x="n, 21, m"),
            "few elements come after each of the axis, even_slower=True applies it",
        ),
        "a long axis": (
            along("y = Softmax<axis = 1>(x)", x="n, 65, 16, 16"),
            "the axis has more than 64 elements, even_slower=True applies it",
        ),
        "an empty axis": (
            along("y = Softmax<axis = 1>(x)", x="n, 0, 16, 16"),
            "the number of elements is not known",
        ),
        "an axis of any length": (
            along("y = Softmax<axis = 1>(x)", x="n, c, 16, 16"),
            "the number of elements is not known",
        ),
        "doubles": (
            along("y = Softmax<axis = 1>(x)").replace("float[", "double["),
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


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan, 200.0, -200.0])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("function", ["Softmax", "LogSoftmax"])
def test_infinities_along_an_axis(function, value, every):
    """Infinite elements, whole classes of them, and those whose exponential overflows."""
    x = np.random.default_rng(0).standard_normal((2, 21, 16, 16)).astype(np.float32)
    x[0, slice(None) if every else 3, 5, 7] = value
    text = along(f"y = {function}<axis = 1>(x)")
    check_pattern(text, None, "SlowSoftmax", feeds=[{"x": x}], atol=1e-5, reference=False)
