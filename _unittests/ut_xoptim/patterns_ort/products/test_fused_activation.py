"""Gemm and an activation for onnxruntime."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns_ort.elementwise.activation_refusals import activation_refusals

from xbuilder.runtimes.installed import kernel_table
from xoptim.patterns_ort.products.fused_activation import ACTIVATIONS
from xoptim.testing import check_pattern, refusal_tests, rewrite_tests


def model(body: str, elem_type: str = "float", outputs: str = "") -> str:
    """A product of matrices."""
    return f"""agraph ({elem_type}[a, 4] X, {elem_type}[4, 3] W, {elem_type}[3] B)
    => ({elem_type}[a, 3] Y{outputs}) {{
    {body}
}}"""


#: what the documentation draws: name -> (before, after)
MODELS = {
    "FusedGemm": (
        model("c = Gemm(X, W, B) Y = Relu(c)"),
        model('Y = com.microsoft.FusedGemm<activation = "Relu">(X, W, B)'),
    )
}
#: an activation with its attributes -> what is written
WRITTEN = {
    "Elu": "activation_alpha = 1.0",
    "Elu<alpha = 0.5>": "activation_alpha = 0.5",
    "HardSigmoid<alpha = 0.25, beta = 0.125>": "activation_alpha = 0.25, activation_beta = 0.125",
    "LeakyRelu<alpha = 0.25>": "activation_alpha = 0.25",
    "Selu<gamma = 2.0, alpha = 0.5>": "activation_alpha = 0.5, activation_gamma = 2.0",
    "Softsign": "",
    "ThresholdedRelu<alpha = 0.5>": "activation_alpha = 0.5",
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5)


@pytest.mark.parametrize("activation", WRITTEN)
def test_attributes_of_the_activation(activation: str) -> None:
    name = activation.partition("<")[0]
    parameters = f", {WRITTEN[activation]}" if WRITTEN[activation] else ""
    before = model(f"c = Gemm(X, W, B) Y = {activation}(c)")
    after = model(f'Y = com.microsoft.FusedGemm<activation = "{name}"{parameters}>(X, W, B)')
    check_pattern(before, after, "FusedGemm", atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_every_activation(activation: str, rows: int) -> None:
    """Their default attributes; no row, one row, several."""
    before = model(f"c = Gemm<alpha = 0.5, beta = 2.0>(X, W, B) Y = {activation}(c)")
    found = check_pattern(before, None, "FusedGemm", sizes={"a": rows}, atol=1e-5)
    (node,) = found.graph.node
    assert node.op_type == "FusedGemm"


def test_attributes_of_the_product() -> None:
    body = "agraph (float[4, a] X, float[3, 4] W) => (float[a, 3] Y) {"
    flags = "transA = 1, transB = 1, alpha = 0.5"
    before = f"{body} c = Gemm<{flags}>(X, W) Y = Sigmoid(c) }}"
    after = f'{body} Y = com.microsoft.FusedGemm<{flags}, activation = "Sigmoid">(X, W) }}'
    check_pattern(before, after, "FusedGemm", atol=1e-5)


def test_nothing_to_add_up() -> None:
    """The common dimension is null: the activation of the bias."""
    text = "g (float[a, 0] X, float[0, 3] W, float[3] B) => (float[a, 3] Y)"
    check_pattern(text + "{ c = Gemm(X, W, B) Y = Elu(c) }", None, "FusedGemm", atol=1e-5)


def test_kernel() -> None:
    assert kernel_table("CPU").knows("FusedGemm", "com.microsoft")
    assert not kernel_table("CUDA").knows("FusedGemm", "com.microsoft")


REFUSED = activation_refusals("FusedGemm", model, "c = Gemm(X, W, B)", "float[a, 3] c", other="Erf")

test_refuses = refusal_tests({"FusedGemm": REFUSED})


test_refuses_on_cuda = refusal_tests(
    {"FusedGemm": {"float": (MODELS["FusedGemm"][0], "no FusedGemm for this type")}},
    processor="CUDA",
)
