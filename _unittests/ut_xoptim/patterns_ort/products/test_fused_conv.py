"""Conv + Relu for onnxruntime."""

from __future__ import annotations

import re

import pytest
from ut_xoptim.patterns_ort.elementwise.activation_refusals import activation_refusals

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests


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
#: activation -> its parameters
ACTIVATIONS = {
    "Sigmoid(c)": "",
    "Tanh(c)": "",
    "LeakyRelu(c)": "0.01",
    "LeakyRelu<alpha = 0.25>(c)": "0.25",
    "HardSigmoid(c)": "0.2, 0.5",
    "HardSigmoid<alpha = 0.25, beta = 0.125>(c)": "0.25, 0.125",
    "Clip(c, zero, six)": "0.0, 6.0",
    "Clip(c, zero)": "0.0, 3.4028234663852886e38",
    "Clip(c, , six)": "-3.4028234663852886e38, 6.0",
}

ATTRIBUTES = "dilations = [1, 2], group = 2, pads = [1, 0, 1, 0], strides = [2, 1]"


test_rewrites = rewrite_tests(MODELS, atol=1e-5)


def test_attributes_and_bias() -> None:
    """Every attribute of Conv is kept."""
    attributes = ATTRIBUTES.replace("group = 2", "group = 1")
    before = model(f"c = Conv<{attributes}>(X, W, B) Y = Relu(c)")
    after = model(f'Y = com.microsoft.FusedConv<{attributes}, activation = "Relu">(X, W, B)')
    check_pattern(before, after, "FusedConv", atol=1e-5)


def activated(nodes: str) -> str:
    head = "g (float[a, 2, 6, 6] X, float[3, 2, 3, 3] W) => (float[a, 3, h, v] Y)"
    return f"{head} <float zero = {{0}}, float six = {{6}}> {{ {nodes} }}"


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation: str) -> None:
    before = activated(f"c = Conv(X, W) Y = {activation}")
    name, parameters = re.split("[<(]", activation)[0], ACTIVATIONS[activation]
    written = f", activation_params = [{parameters}]" if parameters else ""
    after = activated(f'Y = com.microsoft.FusedConv<activation = "{name}"{written}>(X, W)')
    check_pattern(before, after, "FusedConv", atol=1e-5)
    check_no_match(
        before, "FusedConv", "slower on CUDA, processor='CPU' applies it", processor="CPU,CUDA"
    )


def test_old_clip() -> None:
    """Bounds are attributes before opset 11."""
    before = activated("c = Conv(X, W) Y = Clip<min = -1.0>(c)")
    after = check_pattern(before, None, "FusedConv", opset=10, atol=1e-5)
    (node,) = after.graph.node
    found = {a.name: list(a.floats) for a in node.attribute}["activation_params"]
    assert found == [-1.0, 3.4028234663852886e38]


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
    **activation_refusals("FusedConv", model, "c = Conv(X, W)", "float[a, 3, h, v] c", other="Elu"),
    "float16": (model("c = Conv(X, W) Y = Relu(c)", "float16"), "no FusedConv for this type"),
    "nothing after": (model("Y = Conv(X, W)"), "an activation is not the only use"),
    "a bound is computed": (
        "g (float[a, 2, 6, 6] X, float[3, 2, 3, 3] W, float low) => (float[a, 3, h, v] Y)"
        "{ c = Conv(X, W) Y = Clip(c, low) }",
        "a bound is not constant",
    ),
}


test_refuses = refusal_tests({"FusedConv": REFUSED})
