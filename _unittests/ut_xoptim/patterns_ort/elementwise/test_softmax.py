"""Softmax of a sum."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns_ort.cuda_reference import check

from xoptim.testing import refusal_tests

SIZES = (
    {"b": 2, "h": 3, "s": 4, "t": 5},
    {"b": 1, "h": 2, "s": 3, "t": 1},
    {"b": 3, "h": 0, "s": 2, "t": 2},
)


def model(body: str, bias: str = "b, 1, 1, t", x: str = "b, h, s, t", kind: str = "float") -> str:
    """Scores, and what is added to them."""
    return f"g ({kind}[{x}] x, {kind}[{bias}] m) => ({kind}[{x}] y) {{ {body} }}"


SUM = "s0 = Add(x, m) y = Softmax<axis = -1>(s0)"


def after(inner: int, bias: str = "b, 1, 1, t") -> str:
    attributes = f"axis = -1, is_inner_broadcast = {inner}"
    return model(f"y = com.microsoft.BiasSoftmax<{attributes}>(x, m)", bias)


GRADIENT = "m = Mul(d, y) s = ReduceSum<keepdims = 1>(m, last) t = Mul(y, s) z = Sub(m, t)"


def gradient(body: str, y: str = "a, b", kind: str = "float", axes: str = "{-1}") -> str:
    """The result of a Softmax, the gradient after it."""
    count = axes.count(",") + 1
    return f"""g ({kind}[{y}] y, {kind}[a, b] d) => ({kind}[a, b] z) <
        int64[{count}] last = {axes}> {{ {body} }}"""


#: what the documentation draws: name -> (before, after)
MODELS = {
    "BiasSoftmax": (model(SUM), after(1)),
    "SoftmaxGrad": (
        gradient(GRADIENT),
        gradient("z = com.microsoft.SoftmaxGrad_13<axis = -1>(d, y)"),
    ),
}


@pytest.mark.parametrize(
    ("bias", "inner"),
    [
        ("b, 1, 1, t", 1),
        ("b, h, 1, t", 1),
        ("1, 1, s, t", 0),
        ("1, h, s, t", 0),
        ("1, 1, 1, t", 0),
        ("b, h, s, t", 0),
    ],
)
def test_broadcast(bias: str, inner: int) -> None:
    check(model(SUM, bias), after(inner, bias), "BiasSoftmax", SIZES)


def test_the_other_order() -> None:
    check(model(SUM.replace("x, m", "m, x")), after(1), "BiasSoftmax", SIZES)


def test_last_axis_of_an_old_softmax() -> None:
    before = model(SUM.replace("axis = -1", "axis = 3"))
    check(before, after(1), "BiasSoftmax", SIZES, opset=12)


REFUSED = {
    "in the middle": (model(SUM, "b, 1, s, t"), "no operand is broadcast as the kernel does"),
    "both ends": (model(SUM, "1, h, 1, t"), "no operand is broadcast as the kernel does"),
    "less dimensions": (model(SUM, "s, t"), "no operand is broadcast as the kernel does"),
    "unknown": (model(SUM, "b, c, 1, t"), "no operand is broadcast as the kernel does"),
    "last axis": (model(SUM, "b, h, s, 1"), "no operand is broadcast as the kernel does"),
    "another axis": (model(SUM.replace("-1", "1")), "the axis is not the last one"),
    "old default axis": (model(SUM.replace("<axis = -1>", "")), "not the last one", {"opset": 12}),
    "type": (model(SUM, kind="bfloat16"), "no BiasSoftmax for this type"),
    "used elsewhere": (
        model(SUM).replace("] y)", "] y, float[b, h, s, t] s0)"), "used elsewhere",
    ),
    "on CPU": (model(SUM), "no BiasSoftmax for this type", {"processor": "CPU"}),
    "on both": (model(SUM), "no BiasSoftmax for this type", {"processor": "CPU,CUDA"}),
}  # fmt: skip

REFUSED_GRADIENTS = {
    "two axes": (gradient(GRADIENT, axes="{0, 1}"), "not along one axis"),
    "the axis goes away": (
        gradient(GRADIENT.replace("keepdims = 1", "keepdims = 0")), "not along one axis",
    ),
    "another factor": (gradient(GRADIENT.replace("Mul(y, s)", "Mul(w, s) w = Neg(y)").replace(
        "t = Mul(w, s) w = Neg(y)", "w = Neg(y) t = Mul(w, s)")), "by a factor of the product"),
    "the difference is the other one": (
        gradient(GRADIENT.replace("Sub(m, t)", "Sub(t, m)")), "the difference is another one",
    ),
    "no product": (gradient(GRADIENT.replace("Mul(d, y)", "Add(d, y)")), "no Mul before"),
    "broadcast": (gradient(GRADIENT, y="1, b"), "may have different shapes"),
    "integers": (gradient(GRADIENT, kind="int64"), "not a float type"),
}  # fmt: skip
test_gradient_refuses = refusal_tests({"SoftmaxGrad": REFUSED_GRADIENTS})


@pytest.mark.parametrize(
    "body",
    [
        GRADIENT,
        GRADIENT.replace("(d, y)", "(y, d)").replace("(y, s)", "(s, y)"),
        # either factor may be the result of Softmax: the sum tells
        GRADIENT.replace("(y, s)", "(d, s)"),
    ],
)
def test_gradient(body: str) -> None:
    names = "y, d" if "(d, s)" in body else "d, y"
    after = gradient(f"z = com.microsoft.SoftmaxGrad_13<axis = -1>({names})")
    check(gradient(body), after, "SoftmaxGrad", ({"a": 2, "b": 5}, {"a": 0, "b": 3}))


test_refuses = refusal_tests({"BiasSoftmax": REFUSED}, processor="CUDA")
