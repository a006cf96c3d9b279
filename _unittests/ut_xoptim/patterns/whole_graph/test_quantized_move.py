"""Elements moved between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

PATTERN = "QuantizedMove"
CONSTANTS = (
    "float s = {0.1}, float t = {0.1}, float u = {0.2}, uint8 z = {3}, uint8 w = {3}, float[1] one = {0.1},"
    " float[2] k = {0.1, 0.2}, int64[2] shape = {-1, 1}, int64[2] parts = {1, 1}, int64[1] p = {0}"
)


def model(
    body: str, x: str = "uint8[a, 2]", y: str = "uint8[n, m]", more: str = "", inputs: str = ""
) -> str:
    """Integers."""
    return f"g ({x} x{inputs}) => ({y} y{more}) <{CONSTANTS}> {{ {body} }}"


def moved(body: str) -> str:
    """A move from d to e, between both."""
    return f"d = DequantizeLinear(x, s, z) {body} y = QuantizeLinear(e, s, z)"


def both(body: str, **options: str) -> tuple[str, str]:
    """The model, and what is left of it."""
    after = body.replace("(d", "(x").replace("e =", "y =")
    return model(moved(body), **options), model(after, **options)


MODELS = {
    PATTERN: {
        "Transpose": both("e = Transpose(d)"),
        "Reshape": both("e = Reshape(d, shape)"),
        "Slice": both("e = Slice(d, p, p)"),
        "Gather": both("e = Gather(d, p)"),
        "Flatten": both("e = Flatten<axis = 0>(d)"),
        "Unsqueeze": both("e = Unsqueeze(d, p)", y="uint8[n, m, o]"),
        "Split": (
            model(
                "d = DequantizeLinear(x, s, z) e, f = Split<axis = 1>(d, parts)"
                "y = QuantizeLinear(e, t, w) v = QuantizeLinear(f, s, z)",
                more=", uint8[n, m] v",
            ),
            model("y, v = Split<axis = 1>(x, parts)", more=", uint8[n, m] v"),
        ),
        "Split, a piece is not used": (
            model(
                "d = DequantizeLinear(x, s, z) e, f = Split<axis = 1>(d, parts) y = QuantizeLinear(f, s, z)"
            ),
            model("e, y = Split<axis = 1>(x, parts)"),
        ),
        "no zero point, one element": (
            model("d = DequantizeLinear(x, one) e = Transpose(d) y = QuantizeLinear(e, one)"),
            model("y = Transpose(x)"),
        ),
        "the float is used elsewhere": (
            model(moved("e = Transpose(d)") + "f = Neg(d)", more=", float[a, 2] f"),
            model(
                "y = Transpose(x) d = DequantizeLinear(x, s, z) f = Neg(d)", more=", float[a, 2] f"
            ),
        ),
    }
}  # fmt: skip

REFUSED = {
    PATTERN: {
        "other scale": (
            model(moved("e = Transpose(d)").replace("(e, s, z)", "(e, u, z)")),
            "not the same constants",
        ),
        "the result is used elsewhere": (
            model(moved("e = Transpose(d)") + "f = Neg(e)", more=", float[2, a] f"),
            "QuantizeLinear is not the only use",
        ),
        "a piece is not quantized": (
            model(
                moved("e, f = Split<axis = 1>(d, parts)") + "v = Neg(f)", more=", float[n, m] v"
            ),
            "QuantizeLinear is not the only use",
        ),
        "several scales": (
            model("d = DequantizeLinear(x, k) e = Transpose(d) y = QuantizeLinear<axis = 0>(e, k)"),
            "there are several scales",
        ),
        "a result is a scale": (
            model(
                "d = DequantizeLinear(x, s, z) e = Reshape(d, p) y = QuantizeLinear(f, e, z)",
                x="uint8[1]", inputs=", float[1, 1] f",
            ).replace("p = {0}", "p = {1}"),
            "a result is a scale",
        ),
        "int8": (
            both("e = Transpose(d)", x="int8[a, 2]", y="int8[n, m]")[0].replace("uint8 z", "int8 z"),
            "do not move these integers",
        ),
        "a tiny scale": (
            model(moved("e = Transpose(d)")).replace("s = {0.1}", "s = {1e-45}"),
            "too small",
        ),
        "other integers": (
            model(moved("e = Transpose(d)").replace("(e, s, z)", "(e, s, v)"), y="int8[n, m]").replace(
                "uint8 w", "int8 v = {3}, uint8 w"
            ),
            "the types differ",
        ),
    }
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, opset=19)
test_refuses = refusal_tests(REFUSED, opset=19)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_rows(rows: int) -> None:
    before, after = MODELS[PATTERN]["Transpose"]
    check_pattern(before, after, PATTERN, opset=19, sizes={"a": rows})
