"""Half of a sum multiplied by the Gelu of the other half."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns_ort.cuda_reference import check

from xoptim.testing import refusal_tests


def model(body: str, n: int = 2560, bias: str = "", kind: str = "float", out: str = "") -> str:
    """An input, a bias."""
    return f"""g ({kind}[a, b, {n}] x, {kind}[{bias or n}] c)
    => ({kind}[a, b, {n // 2}] y{out}) <int64[2] halves = {{{n // 2}, {n // 2}}}> {{ {body} }}"""


BODY = "s = Add(x, c) l, r = Split<axis = -1>(s, halves) g = com.microsoft.Gelu(r) y = Mul(l, g)"


def written(n: int = 2560) -> str:
    return f"""g (float[a, b, {n}] x, float[{n}] c) => (float[a, b, {n // 2}] y) {{
        y = com.microsoft.BiasSplitGelu(x, c) }}"""


#: what the documentation draws: name -> (before, after)
MODELS = {"BiasSplitGelu": (model(BODY), written())}
SIZES = ({"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 0, "b": 1})


@pytest.mark.parametrize("n", [2560, 5120])
def test_lengths(n: int) -> None:
    check(model(BODY, n), written(n), "BiasSplitGelu", SIZES)


@pytest.mark.parametrize(
    "body",
    [BODY.replace("x, c", "c, x").replace("l, g", "g, l"), BODY.replace("com.microsoft.", "")],
)
def test_orders(body: str) -> None:
    check(model(body), written(), "BiasSplitGelu", SIZES, opset=20)


REFUSED = {
    "tanh": (model(BODY.replace("com.microsoft.Gelu", 'Gelu<approximate = "tanh">')), "approximate is tanh, none is expected", {"opset": 20}),
    "another half": (model(BODY.replace("(r)", "(l)").replace("(l, g)", "(r, g)")), "another output of Split"),
    "the same half": (model(BODY.replace("(l, g)", "(r, g)")), "used elsewhere"),
    "another length": (model(BODY, 512), "the last dimension is not one of"),
    "the bias is broadcast": (model(BODY, bias="1"), "no operand is a bias"),
    "another axis": (
        model(BODY.replace("axis = -1", "axis = 1")).replace("[a, b, 2560] x", "[a, 2560, 2560] x")
        .replace("[a, b, 1280] y", "[a, 1280, 2560] y"),
        "the last of three axes is not split",
    ),
    "uneven": (
        model(BODY).replace("{1280, 1280}", "{2559, 1}"), "do not have the same length",
    ),
    "used elsewhere": (model(BODY, out=", float[a, b, 2560] s"), "used elsewhere"),
    "type": (model(BODY, kind="double"), "no BiasSplitGelu for this type"),
    "on CPU": (model(BODY), "no BiasSplitGelu for this type", {"processor": "CPU"}),
}  # fmt: skip

test_refuses = refusal_tests({"BiasSplitGelu": REFUSED}, processor="CUDA")
