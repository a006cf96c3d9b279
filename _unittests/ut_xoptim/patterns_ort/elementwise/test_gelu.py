"""Gelu and its relatives for onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xoptim.patterns.rounding_errors import difference

from xoptim import get_pattern_list
from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    refusal_tests,
    run_onnxruntime,
)


def literal(elem_type: str, value: float) -> str:
    """A constant in ONNX text, where float16 is written as bits."""
    return repr(int(np.float16(value).view(np.uint16)) if elem_type == "float16" else value)


ERF = "v = Div(X, root) e = Erf(v) o = Add(e, one) h = Mul(X, o) Y = Mul(h, half)"
TANH = (
    "p = Pow(X, three) c = Mul(k, p) i = Add(X, c) u = Mul(s, i) t = Tanh(u) o = Add(one, t)"
    " h = Mul(half, X) Y = Mul(h, o)"
)
BIAS = "Z = Add(X, B) " + ERF.replace("(X,", "(Z,")


def formula(
    body: str = ERF,
    elem_type: str = "float",
    inputs: str = "",
    outputs: str = "",
    root: float = 2**0.5,
    **constants: float,
) -> str:
    """A model with a decomposed formula."""
    names = {
        "root": root,
        "inverse": 1 / root,
        "one": 1,
        "half": 0.5,
        "two": 2,
        "three": 3,
        "k": 0.044715,
        "s": (2 / np.pi) ** 0.5,
        **constants,
    }
    rows = ", ".join(f"{elem_type} {n} = {{{literal(elem_type, v)}}}" for n, v in names.items())
    return f"""agraph ({elem_type}[a, b, 4] X{inputs}) => ({elem_type}[a, b, 4] Y{outputs}) <
    {rows}
> {{
    {body}
}}"""


def fused(op_type: str, elem_type: str = "float", inputs: str = "", args: str = "X") -> str:
    """A model with one operator of onnxruntime."""
    return f"""agraph ({elem_type}[a, b, 4] X{inputs}) => ({elem_type}[a, b, 4] Y) {{
    Y = com.microsoft.{op_type}({args})
}}"""


QUICK = "e = Sigmoid(X) Y = Mul(X, e)"
QUICK_SCALED = "v = Mul(X, alpha) e = Sigmoid(v) Y = Mul(e, X)"

#: what the documentation draws: name -> (before, after)
MODELS = {
    "GeluErf": (formula(), fused("Gelu")),
    "GeluOrt": (formula(TANH), fused("FastGelu")),
    "BiasGelu": (
        formula(BIAS, inputs=", float[4] B"),
        fused("BiasGelu", inputs=", float[4] B", args="X, B"),
    ),
    "QuickGelu": (formula(QUICK), fused("QuickGelu<alpha = 1.0>")),
}

#: an approximation, in no default set
APPROXIMATE = {"FastGelu": (fused("Gelu"), fused("FastGelu"))}


@pytest.mark.parametrize("opset", [13, 18, 20])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, opset: int) -> None:
    before, after = MODELS[name]
    check_pattern(before, after, name, opset=opset, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_float16(name: str) -> None:
    """float16: CUDA has the kernel, CPU casts; 10 bits of precision."""
    before, after = MODELS[name]
    if name != "BiasGelu":
        body = {"GeluErf": ERF, "GeluOrt": TANH, "QuickGelu": QUICK}[name]
        before = formula(body, "float16")
    else:
        before = formula(BIAS, "float16", ", float16[4] B")
    check_pattern(before, after.replace("float", "float16"), name, atol=2e-2, processor="CUDA")
    check_no_match(before, name, "for this type")


ERF_BODIES = {
    "1/sqrt(2)": "v = Mul(X, inverse) e = Erf(v) o = Add(one, e) h = Mul(half, X) Y = Mul(h, o)",
    "swapped": "v = Mul(inverse, X) e = Erf(v) o = Add(e, one) h = Mul(o, half) Y = Mul(h, X)",
    "x/2": "v = Div(X, root) e = Erf(v) o = Add(e, one) h = Div(X, two) Y = Mul(o, h)",
    "half first": "h = Mul(X, half) v = Div(X, root) e = Erf(v) o = Add(e, one) Y = Mul(h, o)",
}


@pytest.mark.parametrize("name", ERF_BODIES)
def test_writings(name: str) -> None:
    check_pattern(formula(ERF_BODIES[name]), fused("Gelu"), "GeluErf", atol=1e-5)


@pytest.mark.parametrize("root", [1.4142135, 1.41421356, 1.4140625])
def test_rounded_root(root: float) -> None:
    """8 digits, or rounded to float16: 1e-4 away."""
    check_pattern(formula(root=root), fused("Gelu"), "GeluErf", atol=2e-4)
    after = MODELS["BiasGelu"][1]
    check_pattern(formula(BIAS, inputs=", float[4] B", root=root), after, "BiasGelu", atol=2e-4)


REFUSED = {
    "GeluErf": {
        "root": (formula(root=1.5), "argument of Erf"),
        "half": (formula(half=0.25), "0.5 is missing"),
        "double": (formula(elem_type="double"), "no Gelu for this type"),
        "output": (formula(outputs=", float[a, b, 4] e"), "used elsewhere"),
        "two uses": (formula(ERF.replace("Y =", "y =") + " Y = Add(y, e)"), "used elsewhere"),
        "erf of an input": (formula(ERF.replace("Erf(v)", "Erf(X)")), "no Mul before Erf"),
        "inverted division": (formula(ERF.replace("Div(X, root)", "Div(root, X)")), "argument"),
    },
    "GeluOrt": {
        "double tanh": (formula(TANH, elem_type="double"), "no FastGelu for this type"),
        "tanh slope": (formula(TANH, s=0.5), "argument of Tanh"),
    },
    "BiasGelu": {
        "bias, graph input": (
            "agraph (float[a] X) => (float[a] Y) { Y = Erf(X) }",
            "no Mul before Erf",
        ),
        "no bias": (formula(), "no Add before"),
        "bias of two dimensions": (formula(BIAS, inputs=", float[b, 4] B"), "no operand is a bias"),
        "bias of one element": (formula(BIAS, inputs=", float[1] B"), "no operand is a bias"),
        "scalar bias": (formula(BIAS, inputs=", float B"), "no operand is a bias"),
        "unknown bias": (formula(BIAS, inputs=", float[n] B"), "no operand is a bias"),
        "sum is an output": (
            formula(BIAS, inputs=", float[4] B", outputs=", float[a, b, 4] Z"),
            "used elsewhere",
        ),
        "bias in double": (formula(BIAS, "double", ", double[4] B"), "no BiasGelu for this type"),
        "erf is an output": (
            formula(BIAS, inputs=", float[4] B", outputs=", float[a, b, 4] e"),
            "used elsewhere",
        ),
    },
    "QuickGelu": {
        "sigmoid of an input": (
            "agraph (float[a] X) => (float[a] Y) { Y = Sigmoid(X) }",
            "nothing reads .Y., Mul was expected",
        ),
        "sigmoid is an output": (
            formula(QUICK, outputs=", float[a, b, 4] e"),
            "used elsewhere",
        ),
        "another factor": (
            formula("e = Sigmoid(X) Y = Mul(Z, e)", inputs=", float[a, b, 4] Z"),
            "'Z' cannot be 'x', which is 'X'",
        ),
        "squared sigmoid": (formula("e = Sigmoid(X) Y = Mul(e, e)"), "used elsewhere"),
        "quick in double": (formula(QUICK, "double"), "no QuickGelu for this type"),
        "division by zero": (
            formula(QUICK_SCALED.replace("Mul(X, alpha)", "Div(X, alpha)"), alpha=0),
            "division by zero",
        ),
        "scaled is an output": (
            formula(QUICK_SCALED, outputs=", float[a, b, 4] v", alpha=1.5),
            "used elsewhere",
        ),
    },
}


@pytest.mark.parametrize("rank", [0, None])
def test_fast_gelu_needs_one_dimension(rank: int | None) -> None:
    """The kernel of FastGelu refuses a scalar."""
    for text, pattern in ((formula(TANH), "GeluOrt"), (APPROXIMATE["FastGelu"][0], "FastGelu")):
        model = model_from_text(text.replace("[a, b, 4]", ""))
        if rank is None:
            for value in (*model.graph.input, *model.graph.output):
                value.type.tensor_type.ClearField("shape")
        check_no_match(model, pattern, "refuses a scalar, the rank may be 0")


@pytest.mark.parametrize("name", ["GeluErf", "QuickGelu"])
def test_scalar(name: str) -> None:
    """The kernels of Gelu and QuickGelu accept a scalar."""
    before, after = (t.replace("[a, b, 4]", "") for t in MODELS[name])
    check_pattern(before, after, name, atol=1e-5)


test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("order", ["B, X", "X, B"])
def test_bias_on_either_side(order: str) -> None:
    before, after = MODELS["BiasGelu"]
    check_pattern(before.replace("Add(X, B)", f"Add({order})"), after, "BiasGelu", atol=1e-5)


def test_bias_after_gelu() -> None:
    """GeluErf has a lower priority number: BiasGelu reads what it wrote."""
    before, after = MODELS["BiasGelu"]
    check_pattern(before, after, "GeluErf,BiasGelu", atol=1e-5)


def test_bias_before_gelu_of_onnx() -> None:
    after = MODELS["BiasGelu"][1]
    before = formula("Z = Add(X, B) Y = Gelu(Z)", inputs=", float[4] B")
    check_pattern(before, after, "BiasGelu", opset=20, atol=1e-5)
    before = before.replace("Gelu(Z)", 'Gelu<approximate = "tanh">(Z)')
    check_no_match(before, "BiasGelu", "approximate is tanh, none is expected", opset=20)


@pytest.mark.parametrize(("op_type", "alpha"), [("Mul", 1.702), ("Div", 0.5)])
def test_quick_gelu_with_alpha(op_type: str, alpha: float) -> None:
    before = formula(QUICK_SCALED.replace("Mul(X, alpha)", f"{op_type}(X, alpha)"), alpha=alpha)
    value = alpha if op_type == "Mul" else 1 / alpha
    check_pattern(before, fused(f"QuickGelu<alpha = {value}>"), "QuickGelu", atol=1e-5)


def test_gelu_of_onnx_goes_first() -> None:
    """From opset 20 the set `default` is tried before the set `onnxruntime`."""
    after = """agraph (float[a, b, 4] X) => (float[a, b, 4] Y) {
        Y = Gelu<approximate = "tanh">(X) }"""
    check_pattern(formula(TANH), after, "Gelu,GeluOrt", opset=20, atol=1e-5)


def test_fast_gelu() -> None:
    """The two formulas differ by 5e-4 at most."""
    before, after = APPROXIMATE["FastGelu"]
    check_pattern(before, after, "FastGelu", atol=5e-4)
    assert "FastGelu" in {p.name for p in get_pattern_list("approximate")}
    assert "FastGelu" not in {p.name for p in get_pattern_list("default+onnxruntime")}


@pytest.mark.parametrize("approximate", ["tanh", "none"])
def test_fast_gelu_of_onnx(approximate: str) -> None:
    before, after = APPROXIMATE["FastGelu"]
    before = before.replace("com.microsoft.Gelu", f'Gelu<approximate = "{approximate}">')
    atol = 1e-5 if approximate == "tanh" else 5e-4
    check_pattern(before, after, "FastGelu", opset=20, atol=atol)


def test_fast_gelu_in_double() -> None:
    before = APPROXIMATE["FastGelu"][0].replace("float[", "double[")
    check_no_match(before, "FastGelu", "no FastGelu for this type")


def test_fast_gelu_of_a_mask() -> None:
    """Minus infinity is a value of the mask: the formulas do not agree on it."""
    text = """agraph (float[a, 4] x, bool[a, 4] c) => (float[a, 4] y) <float low = {-3e38}> {
        o = Mul(low, low) w = Where(c, x, o) m = Add(w, x) y = com.microsoft.Gelu(m)
    }"""
    check_no_match(text, "FastGelu", "holds infinities, or huge numbers")


# -- the largest errors that the docstrings tell, measured


def test_error_of_fast_gelu() -> None:
    """The error is told with two digits, and where it is."""
    text = "g (float[a] x) => (float[a] y) { y = com.microsoft.Gelu(x) }"
    x = np.linspace(-12, 12, 240001).astype(np.float32)
    error, _ = difference(text, "FastGelu", {"x": x}, run_onnxruntime)
    assert 4.7e-4 < error.max() < 4.8e-4
    assert abs(abs(x[error.argmax()]) - 2.7) < 0.02


def test_scalar_on_cuda() -> None:
    """The kernel of Gelu refuses a scalar there."""
    before = MODELS["GeluErf"][0].replace("[a, b, 4]", "")
    check_no_match(before, "GeluErf", "Gelu refuses a scalar", processor="CUDA")
