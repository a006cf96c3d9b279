"""Products of rows quantized when the model runs."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

PATTERN = "DynamicQuantizeMatmul"
WEIGHT = "uint8[3, 2] w = {1, 200, 3, 7, 128, 90}, uint8 v = {120}"
QUANTIZED = "q, s, z = DynamicQuantizeLinear(x) i = MatMulInteger(q, w, z, v) "
FLOAT = "f = Cast<to = 1>(i) c = Mul(s, t) "
SCALED = QUANTIZED + FLOAT


def model(
    body: str,
    x: str = "n, m, 3",
    weight: str = WEIGHT,
    scale: str = "float t = {0.02}",
    more: str = "",
) -> str:
    """A product by a weight quantized beforehand."""
    return f"""g (float[{x}] x, float[2] u) => (float[{x[:-1]}2] y{more}) <{weight}, {scale},
        float[2] b = {{0.5, -1.5}}> {{ {body} }}"""


ALONE = "y = com.microsoft.DynamicQuantizeMatMul(x, w, t, v{})"
SHARED = (
    "q, s, z = DynamicQuantizeLinear(x) y = com.microsoft.MatMulIntegerToFloat(q, w, s, t, z{})"
)
BIAS = SCALED + "m = Mul(f, c) y = Add(m, b)"
#: what the documentation draws: name -> (before, after)
MODELS = {PATTERN: (model(BIAS), model(ALONE.format(", b")))}
SIGNED = "int8[3, 2] w = {1, -100, 3, 7, 127, 90}, int8[2] v = {0, 5}"
CASES = {
    PATTERN: {
        "no bias": (model(SCALED + "y = Mul(c, f)"), model(ALONE.format(""))),
        "bias first, not constant": (
            model(SCALED + "m = Mul(f, c) y = Add(u, m)"),
            model(ALONE.format(", u")),
        ),
        "no zero point": (
            model(BIAS.replace("z, v", "z")),
            model(ALONE.format(", b").replace("t, v", "t, ")),
        ),
        "neither bias nor zero point": (
            model(SCALED.replace("z, v", "z") + "y = Mul(f, c)"),
            model(ALONE.format("").replace(", v", "")),
        ),
        "one for each column": (
            model(BIAS, weight=SIGNED, scale="float[2] t = {0.02, 0.5}"),
            model(ALONE.format(", b"), weight=SIGNED, scale="float[2] t = {0.02, 0.5}"),
        ),
        "one of one element": (
            model(BIAS, scale="float[1] t = {0.02}"),
            model(ALONE.format(", b"), scale="float[1] t = {0.02}"),
        ),
        "added to other rows": (
            model(SCALED + "m = Mul(f, c) y = Add(m, m)"),
            model(ALONE.format("").replace("y =", "m =") + " y = Add(m, m)"),
        ),
        "no rows": (model(BIAS), model(ALONE.format(", b")), {"sizes": {"n": 0, "m": 3}}),
        "one row": (model(BIAS), model(ALONE.format(", b")), {"sizes": {"n": 1, "m": 1}}),
    }
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5)
test_cases = rewrite_tests(CASES, atol=1e-5)


def test_quantized_rows_are_an_output() -> None:
    """The rows are quantized once."""
    for name, kind in (("q", "uint8"), ("s", "float"), ("z", "uint8")):
        more = f", {kind}[n, m, 3] {name}" if name == "q" else f", {kind} {name}"
        check_pattern(
            model(BIAS, more=more), model(SHARED.format(", v, b"), more=more), PATTERN, atol=1e-5
        )


def test_two_products() -> None:
    """Queries and keys: two products of the same rows."""
    second = (
        "j = MatMulInteger(q, w, z) e = Cast<to = 1>(j) d = Mul(s, t) h = Mul(e, d) k = Add(h, u)"
    )
    more = ", float[n, m, 2] k"
    after = SHARED.format(", v, b") + " k = com.microsoft.MatMulIntegerToFloat(q, w, s, t, z, , u)"
    check_pattern(model(BIAS + second, more=more), model(after, more=more), PATTERN, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 1e-30, 3e38, np.inf, np.nan])
def test_special_values(value: float) -> None:
    """The scale is the one of DynamicQuantizeLinear whatever the rows hold."""
    feeds = {"x": np.full((1, 2, 3), value, np.float32), "u": np.ones(2, np.float32)}
    found = check_pattern(model(BIAS), None, PATTERN, feeds=[feeds], atol=1e-5)
    assert [n.op_type for n in found.graph.node] == ["DynamicQuantizeMatMul"]


MORE = ", float[n, m, 2] m"
REFUSED = {
    "vector": (
        model(BIAS, x="3").replace("[2] y", "[2] y"),
        "what is quantized is a vector",
    ),
    "other zero point": (
        model(BIAS.replace("(q, w, z, v)", "(q, w, o, v)")).replace("u)", "u, uint8 o)"),
        "cannot be 'z'",
    ),
    "no zero point of the rows": (
        model(BIAS.replace("(q, w, z, v)", "(q, w)")),
        "cannot be 'z'",
    ),
    "weight is an input": (
        model(BIAS, weight="uint8 v = {120}").replace("u)", "u, uint8[3, 2] w)"),
        "the weight is not a constant",
    ),
    "zero point is an input": (
        model(BIAS, weight=WEIGHT.split(", uint8 v")[0]).replace("u)", "u, uint8 v)"),
        "the scale or the zero point of the weight",
    ),
    "scale is an input": (
        model(BIAS, scale="float o = {1}").replace("u)", "u, float t)"),
        "the scale or the zero point of the weight",
    ),
    "scale of several rows": (
        model(BIAS, scale="float[1, 2] t = {0.02, 0.5}"),
        "the scale or the zero point of the weight",
    ),
    "three dimensions": (
        model(BIAS, weight="uint8[1, 3, 2] w = {1, 200, 3, 7, 128, 90}, uint8 v = {120}"),
        "the weight is not a matrix",
    ),
    "double": (
        model(BIAS.replace("to = 1", "to = 11").replace("Mul(s, t)", "Mul(s1, t)").replace(
            "c =", "s1 = Cast<to = 11>(s) c ="), scale="double t = {0.02}")
        .replace("float[2] b", "double[2] b").replace("(float[n, m, 2] y", "(double[n, m, 2] y"),
        "Mul was expected, Cast was found",
    ),
    "square": (
        model(QUANTIZED + "f = Cast<to = 1>(i) y = Mul(f, f)"),
        "nothing reads 's', Mul was expected",
    ),
    "not scaled by the rows": (
        model(QUANTIZED + "f = Cast<to = 1>(i) c = Mul(b, t) y = Mul(f, c)"),
        "nothing reads 's', Mul was expected",
    ),
    "the product is an output": (
        model(BIAS, more=", int32[n, m, 2] i"),
        "an inner result is used elsewhere",
    ),
}  # fmt: skip
test_refuses = refusal_tests({PATTERN: REFUSED})
test_refuses_on_cuda = refusal_tests(
    {PATTERN: {"cuda": (model(BIAS), "no DynamicQuantizeMatMul for these types")}}, processor="CUDA"
)
