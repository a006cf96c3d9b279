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


#: what the documentation draws: name -> (before, after)
MODELS = {"BiasSoftmax": (model(SUM), after(1))}


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

test_refuses = refusal_tests({"BiasSoftmax": REFUSED}, processor="CUDA")
