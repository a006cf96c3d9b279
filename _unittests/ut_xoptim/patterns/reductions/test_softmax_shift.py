"""Softmax of scores whose largest one was subtracted."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import (
    check_pattern,
    make_feeds,
    model_from_text,
    refusal_tests,
    rewrite_tests,
)

LAST = "m = ReduceMax(x, last) d = Sub(x, m) "


def model(body: str, kind: str = "float", dims: str = "a, b, c", out: str = "") -> str:
    """A body that computes y from x."""
    return f"""g ({kind}[{dims}] x) => ({kind}[{dims}] y{out}) <
    int64[1] last = {{-1}}, int64[1] two = {{2}}, int64[1] one = {{1}}, int64[2] both = {{1, 2}}
> {{ {body} }}"""


SOFTMAX, BEFORE = "y = Softmax<axis = -1>(d)", LAST + "y = Softmax<axis = -1>(d)"
AFTER = model("y = Softmax<axis = -1>(x)")
DEFINED = LAST + "e = Exp(d) s = ReduceSum(e, last) y = Div(e, s)"
LOGARITHM = LAST + "e = Exp(d) s = ReduceSum(e, last) l = Log(s) y = Sub(d, l)"
#: pattern -> case -> (before, after)
MODELS = {
    "SoftmaxDefinition": {
        "a quotient": (model(DEFINED), model("y = Softmax<axis = 2>(x)")),
        "a product": (
            model(DEFINED.replace("y = Div(e, s)", "r = Reciprocal(s) y = Mul(r, e)")),
            model("y = Softmax<axis = 2>(x)"),
        ),
        "another axis": (model(DEFINED.replace("last", "one")), model("y = Softmax<axis = 1>(x)")),
        "a logarithm": (model(LOGARITHM), model("y = LogSoftmax<axis = 2>(x)")),
        "a logarithm, another axis": (
            model(LOGARITHM.replace("last", "one")),
            model("y = LogSoftmax<axis = 1>(x)"),
        ),
        "a logarithm, double": (
            model(LOGARITHM, "double"),
            model("y = LogSoftmax<axis = 2>(x)", "double"),
        ),
    },
    "SoftmaxShift": {
        "the last axis": (model(BEFORE), AFTER),
        "no axis": (model(LAST + "y = Softmax(d)"), model("y = Softmax(x)")),
        "a positive axis": (model(BEFORE.replace("last", "two")), AFTER),
        "another axis": (
            model(BEFORE.replace("last", "one").replace("-1", "1")),
            model("y = Softmax<axis = 1>(x)"),
        ),
        "logarithm": (
            model(BEFORE.replace("Softmax", "LogSoftmax")),
            model("y = LogSoftmax<axis = -1>(x)"),
        ),
        "double": (model(BEFORE, "double"), model("y = Softmax<axis = -1>(x)", "double")),
        "used elsewhere": (
            model(BEFORE, out=", float[a, b, c] d"),
            model(LAST + "y = Softmax<axis = -1>(x)", out=", float[a, b, c] d"),
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-6, rtol=1e-6)


def test_attribute() -> None:
    """Axes are an attribute before opset 18."""
    before = model(BEFORE.replace("(x, last)", "<axes = [-1]>(x)"))
    check_pattern(before, AFTER, "SoftmaxShift", opset=13, atol=1e-6)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_not_finite(op_type: str, value: float) -> None:
    """One element of a row, two of them, the whole row."""
    proto = model_from_text(model(BEFORE.replace("Softmax", op_type)))
    feeds = make_feeds(proto, {"a": 2, "b": 4, "c": 9})
    feeds["x"][0, 0, 3], feeds["x"][1, 1, 2:4], feeds["x"][1, 2] = value, value, value
    check_pattern(proto, None, "SoftmaxShift", feeds=[feeds], atol=1e-6, reference=False)


REFUSED = {
    "another result": (model("n = Neg(x) " + BEFORE.replace("ReduceMax(x", "ReduceMax(n")), "cannot be 'x'"),
    "a mean": (model(BEFORE.replace("ReduceMax", "ReduceMean")), "no ReduceMax before"),
    "reversed": (model(BEFORE.replace("Sub(x, m)", "Sub(m, x)")), "no ReduceMax before"),
    "along another axis": (
        model(BEFORE.replace("(x, last)", "(x, one)")), "the maximum is along other axes",
    ),
    "along two axes": (
        model(BEFORE.replace("(x, last)", "(x, both)")), "the maximum is along other axes",
    ),
    "along all axes": (
        model(BEFORE.replace("(x, last)", "(x)")), "the maximum is along other axes",
    ),
    "without the axis": (
        model(BEFORE.replace("ReduceMax(", "ReduceMax<keepdims = 0>("), dims="a, a, a"),
        "keepdims is 0",
    ),
}  # fmt: skip

DEFINITIONS = {
    "another axis": (
        model(DEFINED.replace("(e, last)", "(e, one)")), "the maximum is along other axes",
    ),
    "two axes": (model(DEFINED.replace("(e, last)", "(e, both)")), "the sum is not along one axis"),
    "nothing is subtracted": (model(DEFINED.replace("Exp(d)", "Exp(x)")), "no Sub before"),
    "the mean is subtracted": (model(DEFINED.replace("ReduceMax", "ReduceMean")), "no ReduceMax before"),
    "the exponentials are an output": (model(DEFINED, out=", float[a, b, c] e"), "used elsewhere"),
    "without the axis": (
        model(
            LOGARITHM.replace("ReduceSum(", "ReduceSum<keepdims = 0>(")
            .replace("ReduceMax(", "ReduceMax<keepdims = 0>("),
            dims="a, a, a",
        ),
        "keepdims is 0",
    ),
    "the exponentials of something else": (
        model(LOGARITHM.replace("Exp(d)", "Exp(x)")), "cannot be 'd'",
    ),
    "the sum is an output": (model(LOGARITHM, out=", float[a, b, 1] s"), "used elsewhere"),
    "a sum": (model(LOGARITHM.replace("Sub(d, l)", "Add(d, l)")), None),
}  # fmt: skip
test_refuses = refusal_tests({"SoftmaxShift": REFUSED, "SoftmaxDefinition": DEFINITIONS})


@pytest.mark.parametrize("body", [DEFINED, LOGARITHM], ids=["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_definition_of_not_finite(body: str, value: float) -> None:
    """One element of a row, two of them, the whole row."""
    proto = model_from_text(model(body))
    feeds = make_feeds(proto, {"a": 2, "b": 4, "c": 9})
    feeds["x"][0, 0, 3], feeds["x"][1, 1, 2:4], feeds["x"][1, 2] = value, value, value
    name = "SoftmaxDefinition"
    check_pattern(proto, None, name, feeds=[feeds], atol=1e-6, rtol=1e-6, reference=False)
