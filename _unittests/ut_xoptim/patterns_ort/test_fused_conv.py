"""Conv + Relu for onnxruntime."""

from __future__ import annotations

import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests


def model(body: str, elem_type: str = "float", outputs: str = "", w: str = "3, 2, 3, 3") -> str:
    """A convolution on images."""
    return f"""agraph ({elem_type}[a, 2, 6, 6] X, {elem_type}[{w}] W, {elem_type}[3] B)
    => ({elem_type}[a, 3, h, v] Y{outputs}) {{
    {body}
}}"""


#: what the documentation draws: name -> (before, after)
MODELS = {
    "FusedConv": (
        model("c = Conv(X, W) Y = Relu(c)"),
        model('Y = com.microsoft.FusedConv<activation = "Relu">(X, W)'),
    )
}

ATTRIBUTES = "dilations = [1, 2], group = 2, pads = [1, 0, 1, 0], strides = [2, 1]"


test_rewrites = rewrite_tests(MODELS, atol=1e-5)


def test_attributes_and_bias() -> None:
    """Every attribute of Conv is kept."""
    attributes = ATTRIBUTES.replace("group = 2", "group = 1")
    before = model(f"c = Conv<{attributes}>(X, W, B) Y = Relu(c)")
    after = model(f'Y = com.microsoft.FusedConv<{attributes}, activation = "Relu">(X, W, B)')
    check_pattern(before, after, "FusedConv", atol=1e-5)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "VALID"])
def test_auto_pad(auto_pad: str) -> None:
    before = model(f'c = Conv<auto_pad = "{auto_pad}">(X, W) Y = Relu(c)')
    after = model(
        f'Y = com.microsoft.FusedConv<auto_pad = "{auto_pad}", activation = "Relu">(X, W)'
    )
    check_pattern(before, after, "FusedConv", atol=1e-5)


@pytest.mark.parametrize("dims", ["7", "5, 5, 5"])
def test_other_ranks(dims: str) -> None:
    kernel = ", ".join(["3"] * len(dims.split(",")))
    head = f"agraph (float[a, 2, {dims}] X, float[3, 2, {kernel}] W) => (float[a, 3, {kernel}] Y)"
    head = head.replace("[a, 3, 3] Y", "[a, 3, 5] Y")
    before = head + "{ c = Conv(X, W) Y = Relu(c) }"
    after = head + '{ Y = com.microsoft.FusedConv<activation = "Relu">(X, W) }'
    check_pattern(before, after, "FusedConv", atol=1e-5)


REFUSED = {
    "output": (
        model("c = Conv(X, W) Y = Relu(c)", outputs=", float[a, 3, h, v] c"),
        "used elsewhere",
    ),
    "two uses": (model("c = Conv(X, W) r = Relu(c) Y = Add(r, c)"), "used elsewhere"),
    "double": (model("c = Conv(X, W) Y = Relu(c)", "double"), "no FusedConv for this type"),
    "float16": (model("c = Conv(X, W) Y = Relu(c)", "float16"), "no FusedConv for this type"),
    "another activation": (model("c = Conv(X, W) Y = Elu(c)"), "Relu was expected, Elu was found"),
    "nothing after": (model("Y = Conv(X, W)"), "nothing reads 'Y', Relu was expected"),
}


test_refuses = refusal_tests({"FusedConv": REFUSED})
