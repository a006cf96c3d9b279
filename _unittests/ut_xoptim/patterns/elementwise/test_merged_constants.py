"""Two constants that become one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

NAME = "MergedConstants"
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def model(
    body: str,
    a: str = "float a = {6}",
    b: str = "float b = {3}",
    x: str = "n, 3",
    out: str = "",
    kind: str = "float",
) -> str:
    """Two constants after x."""
    return f"g ({kind}[{x}] x) => ({kind}[{x}] y{out}) <{a}, {b}> {{ {body} }}"


def one(body: str, value: str, x: str = "n, 3", kind: str = "float") -> str:
    """One constant after x."""
    return f"g ({kind}[{x}] x) => ({kind}[{x}] y) <{value}> {{ {body} }}"


VECTOR = "float[3] a = {1, 2, 4}"
#: what the documentation draws: pattern -> case -> (before, after)
MODELS = {
    NAME: {
        "product, quotient": (
            model("p = Mul(x, a) y = Div(p, b)"),
            one("y = Mul(x, c)", "float c = {2}"),
            {"sizes": [{"n": 4}, {"n": 1}, {"n": 0}]},
        ),
        "quotient, product": (
            model("p = Div(x, a) y = Mul(b, p)"), one("y = Mul(x, c)", "float c = {0.5}"),
        ),
        "a quotient the type has": (
            model("p = Div(x, a) y = Mul(p, b)", "float a = {18}"),
            one("y = Div(x, c)", "float c = {6}"),
        ),
        "no quotient the type has": (
            model("p = Mul(x, a) y = Div(p, b)", "float a = {7}"),
            one("y = Mul(x, c)", "float c = {2.3333332538604736}"),
        ),
        "two quotients": (
            model("p = Div(x, a) y = Div(p, b)"), one("y = Div(x, c)", "float c = {18}"),
        ),
        "sum, difference": (
            model("p = Add(x, a) y = Sub(p, b)", VECTOR),
            one("y = Add(x, c)", "float[3] c = {-2, -1, 1}"),
        ),
        "difference, sum": (
            model("p = Sub(x, a) y = Add(b, p)"), one("y = Add(x, c)", "float c = {-3}"),
        ),
        "two differences": (
            model("p = Sub(x, a) y = Sub(p, b)"), one("y = Add(x, c)", "float c = {-9}"),
        ),
        "a difference, the other way": (
            model("p = Sub(a, x) y = Sub(p, b)"), one("y = Sub(c, x)", "float c = {3}"),
        ),
        "a sum of the other way": (
            model("p = Sub(a, x) y = Add(p, b)"), one("y = Sub(c, x)", "float c = {9}"),
        ),
        "the other way twice": (
            model("p = Sub(a, x) y = Sub(b, p)"), one("y = Add(x, c)", "float c = {-3}"),
        ),
        "it comes from a sum": (
            model("p = Add(x, a) y = Sub(b, p)"), one("y = Sub(c, x)", "float c = {-3}"),
        ),
        "nothing is left": (
            model("p = Add(x, a) y = Sub(p, b)", "float a = {3}"),
            one("y = Add(x, c)", "float c = {0}"),
        ),
        "the same shape": (
            model("p = Mul(x, a) y = Div(p, b)", VECTOR, "float[3] b = {2, 1, 8}"),
            one("y = Mul(x, c)", "float[3] c = {0.5, 2, 0.5}"),
        ),
        "more dimensions": (
            model("p = Mul(x, a) y = Div(p, b)", VECTOR, "float[1, 1, 1] b = {2}", "1, n, 3"),
            one("y = Mul(x, c)", "float[1, 1, 3] c = {0.5, 1, 2}", "1, n, 3"),
        ),
        "an unknown rank, double": (
            model("p = Mul(x, a) y = Div(p, b)", kind="double").replace("float", "double"),
            one("y = Mul(x, c)", "double c = {2}", kind="double"),
        ),
        "a Cast to a float type": (
            "g (float[n] x) => (double[n] y) <float a = {6}, float b = {3}>"
            "{ p = Mul(x, a) q = Div(p, b) y = Cast<to = 11>(q) }",
            "g (float[n] x) => (double[n] y) <float c = {2}>"
            "{ q = Mul(x, c) y = Cast<to = 11>(q) }",
        ),
    },
}  # fmt: skip

PRODUCT, SUM = "p = Mul(x, a) y = Div(p, b)", "p = Add(x, a) y = Sub(p, b)"
INTEGERS = "integers are made of the result"
LONG = ", ".join(["2"] * 1025)
REFUSED = {
    NAME: {
        "one of each": (model("p = Mul(x, a) y = Add(p, b)"), "no Add nor Sub before|no Add or Sub"),
        "two sums": (model("p = Add(x, a) y = Add(p, b)"), "both are sums, or products"),
        "two products": (model("p = Mul(x, a) y = Mul(p, b)"), "both are sums, or products"),
        "used elsewhere": (
            model(PRODUCT + " z = Neg(p)", out=", float[n, 3] z"),
            "the inner result is used elsewhere",
        ),
        "an output": (
            model(SUM, out=", float[n, 3] p"), "the inner result is used elsewhere",
        ),
        "integers": (
            model(PRODUCT, kind="int32").replace("float", "int32"), "the type is not float16",
        ),
        "not constant": (
            "g (float[n, 3] x, float b) => (float[n, 3] y) <float a = {2}> {" + PRODUCT + "}",
            "an operand is not constant",
        ),
        "not constant before": (
            "g (float[n, 3] x, float a) => (float[n, 3] y) <float b = {2}> {" + PRODUCT + "}",
            "an operand is not constant",
        ),
        "shapes": (
            model(PRODUCT, VECTOR, "float[2, 1] b = {2, 4}", "2, 3"),
            "the constants have different or big shapes",
        ),
        "big": (
            model(PRODUCT, f"float[1025] a = {{{LONG}}}", x="n, 1025"),
            "the constants have different or big shapes",
        ),
        "a constant is divided": (
            model("p = Mul(x, a) y = Div(b, p)"), "a constant is divided by the result",
        ),
        "a constant is divided before": (
            model("p = Div(a, x) y = Mul(p, b)"), "a constant is divided by the result",
        ),
        "divided by 0": (model(PRODUCT, b="float b = {0}"), "a factor is null"),
        "multiplied by 0": (model(PRODUCT, "float a = {0}"), "a factor is null"),
        "too small": (
            model(PRODUCT, "float a = {1e-30}", "float b = {1e10}"), "not a normal number",
        ),
        "too big": (
            model(PRODUCT, "float a = {1e30}", "float b = {1e-10}"), "not a normal number",
        ),
        "the sum is too big": (
            model(SUM, "float a = {3e38}", "float b = {-3e38}"), "not a normal number",
        ),
        "it rounds": (
            model(SUM, "float a = {12582912}", "float b = {12582912}"), "it rounds the result",
        ),
        "the inner one rounds": (
            model("q = Add(x, b) p = Sub(q, b) y = Add(p, a)", "float a = {0.25}",
                  "float b = {12582912}"),
            "it rounds the result",
        ),
        **{
            name: (model(f"p = Mul(x, a) q = Div(p, b) y = {name}(q)"), INTEGERS)
            for name in ("Floor", "Ceil", "Round")
        },
        "a Cast": (
            "g (float[n] x) => (int64[n] y) <float a = {6}, float b = {3}>"
            "{ p = Mul(x, a) q = Div(p, b) y = Cast<to = 7>(q) }",
            INTEGERS,
        ),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, **CLOSE)


test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("body", [PRODUCT, SUM])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_not_finite(body: str, value: float) -> None:
    """A constant that is not finite stays."""
    before = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]>' + model(body))
    before.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.float32(value), "a"))
    check_no_match(before, NAME, "a constant is not finite")


@pytest.mark.parametrize("body", [PRODUCT, SUM, "p = Div(x, a) y = Div(p, b)"])
def test_special_values(body: str) -> None:
    """Infinities, NaN, null numbers give what they gave."""
    x = np.array([[np.inf, -np.inf, np.nan], [0.0, -0.0, -7.0]], np.float32)
    check_pattern(model(body), None, NAME, feeds=[{"x": x}], **CLOSE)


def test_float16() -> None:
    """The constant is rounded once; a bias that rounds what float16 holds stays."""
    kinds = {"kind": "float16", "x": "2, 3"}
    constants = {"a": "float16 a = {1}", "b": "float16 b = {1}"}
    for body, a, b, found in ((PRODUCT, 3.0, 7.0, 3 / 7), (SUM, 0.5, 0.25, 0.25)):
        before = onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 18]>' + model(body, **constants, **kinds)
        )
        for row, name, value in zip(before.graph.initializer, "ab", (a, b), strict=True):
            row.CopyFrom(onnx.numpy_helper.from_array(np.float16(value), name))
        result = check_pattern(before, None, NAME, atol=4e-3, rtol=4e-3)
        assert onnx.numpy_helper.to_array(result.graph.initializer[0]) == np.float16(found)
        for row, name in zip(before.graph.initializer, "ab", strict=True):
            row.CopyFrom(onnx.numpy_helper.from_array(np.float16(1024), name))
        if body is SUM:
            check_no_match(before, NAME, "it rounds the result")


SUMS = ("p = Sub(a, x) y = {0}(p, b)", "p = {0}(x, a) y = Sub(b, p)", "p = Sub(x, a) y = {0}(b, p)")
FORMS = [
    *(form.format(op) for op in ("Add", "Sub") for form in SUMS),
    PRODUCT,
    "p = Div(x, a) y = Mul(b, p)",
    "p = Div(x, a) y = Div(p, b)",
]
NUMBERS = st.floats(0.125, 96, width=16)
SHAPES = st.lists(st.integers(0, 3), min_size=0, max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(FORMS), SHAPES, st.lists(NUMBERS, min_size=3, max_size=3), NUMBERS,
    st.booleans(), st.booleans(), st.sampled_from(["float", "double"]),
)  # fmt: skip
def test_any_shape(
    body: str, shape: list[int], values: list[float], number: float, vector: bool, swapped: bool,
    kind: str,
) -> None:  # fmt: skip
    """Any shape and form, constants of one element or one for each column."""
    vector = vector and shape[-1:] == [3]
    rows = [values if vector else values[:1], [number]]
    texts = [
        f"{kind}{'[3]' if len(row) == 3 else ''} {{}} = {{{{{', '.join(map(str, row))}}}}}"
        for row in (rows[::-1] if swapped else rows)
    ]
    a, b = (text.format(name) for text, name in zip(texts, "ab", strict=True))
    before = model(body, a, b, ", ".join(map(str, shape)), kind=kind)
    step = float(np.finfo(np.float32 if kind == "float" else np.float64).eps)
    result = check_pattern(before, None, NAME, reference=False, atol=4096 * step, rtol=8 * step)
    assert len(result.graph.node) == 1
