"""Operators in the layout of the convolutions of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

NAME = "BlockAffine"
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
S, T = "float s = {0.5}", "float[1] t = {-0.25}"
VECTORS = "float[3, 1, 1] s = {0.5, 2, -3}", "float[1, 3, 1, 1] t = {4, 0.25, 1}"


def model(
    body: str,
    constants: tuple[str, ...] = (S, T),
    x: str = "a, 2, b, c",
    w: str = "3, 2, 1, 1",
    y: str = "a, 3, b, c",
    more: str = "",
    out: str = "",
) -> str:
    """A convolution, something after it."""
    return f"""g (float[{x}] X, float[{w}] W{more}) => (float[{y}] Y{out})
    <{", ".join(constants)}> {{ {body} }}"""


def parameters(s: str, t: str, n: int = 3) -> tuple[str, ...]:
    """The vectors of BatchNormalization."""
    zeros, ones = ", ".join(["0"] * n), ", ".join(["1"] * n)
    names = {"s": s, "t": t, "m": zeros, "v": ones}
    return tuple(f"float[{n}] {k} = {{{v}}}" for k, v in names.items())


CONV, NORM = "x = Conv(X, W) ", "Y = BatchNormalization<epsilon = 0.0>(x, s, t, m, v)"
RELU = "c = Conv(X, W) x = Relu(c) "
AFFINE = "p = Mul(x, s) Y = Add(p, t)"
NUMBERS = parameters("0.5, 0.5, 0.5", "-0.25, -0.25, -0.25")
EMPTY = {"sizes": [{"a": 2, "b": 3, "c": 2}, {"a": 1, "b": 1, "c": 1}, {"a": 0, "b": 2, "c": 3}]}
#: nodes between the convolution and the sum
BETWEEN = {
    "HardSwish": "c = Conv(X, W) h = HardSigmoid(c) x = Mul(c, h) ",
    "FusedConv": 'x = com.microsoft.FusedConv<activation = "Relu">(X, W) ',
    "a residual": "c = Conv(X, W) d = Conv(X, W) r = Tanh(d) e = Relu(c) x = Add(e, r) ",
    "a pool": "c = Conv(X, W) x = MaxPool<kernel_shape = [1, 1]>(c) ",
    "a mean": "c = Conv(X, W) d = Relu(c) x = AveragePool<kernel_shape = [1, 1]>(d) ",
    "a normalization": "c = Conv(X, W) x = BatchNormalization(c, B, B, B, V) ",
}
NORMALIZED = ", float[3] B, float[3] V"

#: what the documentation draws: pattern -> case -> (before, after)
MODELS = {
    NAME: {
        "numbers": (model(RELU + AFFINE), model(RELU + NORM, NUMBERS), EMPTY),
        "channels": (
            model(RELU + AFFINE, VECTORS),
            model(RELU + NORM, parameters("0.5, 2, -3", "4, 0.25, 1")),
            EMPTY,
        ),
        "a quotient, a difference": (
            model(RELU + "p = Div(x, s) Y = Sub(p, t)", VECTORS),
            model(RELU + NORM, parameters("2, 0.5, -0.3333333432674408", "-4, -0.25, -1")),
        ),
        "the other difference, the constant comes first": (
            model(RELU + "p = Mul(s, x) Y = Sub(t, p)"),
            model(RELU + NORM, parameters("-0.5, -0.5, -0.5", "-0.25, -0.25, -0.25")),
        ),
        "one channel": (
            model(RELU + AFFINE, w="1, 2, 1, 1", y="a, 1, b, c"),
            model(RELU + NORM, parameters("0.5", "-0.25", 1), w="1, 2, 1, 1", y="a, 1, b, c"),
        ),
        **{
            name: (
                model(nodes + AFFINE, more=NORMALIZED),
                model(nodes + NORM, NUMBERS, more=NORMALIZED),
                {"feeds": [], "runtime": False},
            )
            for name, nodes in BETWEEN.items()
        },
    },
}

LONG = "c0 = Conv(X, W) " + "".join(f"c{i + 1} = Relu(c{i}) " for i in range(20)) + "x = Relu(c20) "
FLAT = {"x": "a, 2, b", "w": "3, 2, 1", "y": "a, 3, b"}
CUBE = {"x": "a, 2, b, c, d", "w": "3, 2, 1, 1, 1", "y": "a, 3, b, c, d"}
REFUSED = {
    NAME: {
        "on CUDA": (model(RELU + AFFINE), "it is for the processor CPU", {"processor": "CPU,CUDA"}),
        "no product": (model(RELU + "p = Neg(x) Y = Add(p, t)"), "no Mul nor Div before"),
        "the product is used elsewhere": (
            model(RELU + AFFINE + " Z = Neg(p)", out=", float[a, 3, b, c] Z"),
            "the product is used elsewhere",
        ),
        "the product is an output": (
            model(RELU + AFFINE, out=", float[a, 3, b, c] p"), "the product is used elsewhere",
        ),
        "double": (model(RELU + AFFINE).replace("float", "double"), "the type is not float"),
        "float16": (
            model(RELU + AFFINE, ("float s = {1}", "float t = {2}")).replace("float", "float16"),
            "the type is not float",
        ),
        "three dimensions": (model(RELU + AFFINE, **FLAT), "it does not have four dimensions"),
        "five dimensions": (model(RELU + AFFINE, **CUBE), "it does not have four dimensions"),
        "unknown channels": (
            model(RELU + AFFINE, w="d, 2, 1, 1", y="a, d, b, c"),
            "the number of channels is not known",
        ),
        "no channel": (
            model(RELU + AFFINE, w="0, 2, 1, 1", y="a, 0, b, c"),
            "the number of channels is not known",
        ),
        "no convolution": (
            model("x = Relu(X) " + AFFINE, y="a, 2, b, c"), "no convolution gives it",
        ),
        "an operator of onnxruntime": (
            model("c = Conv(X, W) x = com.microsoft.QuickGelu(c) " + AFFINE),
            "no convolution gives it",
        ),
        "another operator": (
            model("c = Conv(X, W) x = Exp(c) " + AFFINE), "no convolution gives it",
        ),
        "one number for each channel multiplies": (
            model("c = Conv(X, W) d = GlobalAveragePool(c) x = Mul(c, d) " + AFFINE),
            "no convolution gives it",
        ),
        "a constant is added": (
            model("c = Conv(X, W) d = Relu(c) x = Add(d, u) " + AFFINE, (S, T, "float u = {1}")),
            "no convolution gives it",
        ),
        "too far": (model(LONG + AFFINE), "no convolution gives it"),
        "not constant": (
            model(RELU + AFFINE, (S,), more=", float t"), "the other operand is not constant",
        ),
        "a row": (
            model(RELU + AFFINE, ("float[3] s = {1, 2, 4}", T), y="a, 3, b, 3"),
            "does not have one value for each channel",
        ),
        "more dimensions": (
            model(RELU + AFFINE, ("float[1, 1, 1, 1, 1] s = {2}", T), y="1, a, 3, b, c"),
            "does not have one value for each channel|four dimensions",
        ),
        "one channel is made three": (
            model(RELU + AFFINE, VECTORS, w="1, 2, 1, 1"),
            "does not have one value for each channel",
        ),
        "a quotient of a constant": (
            model(RELU + "p = Div(s, x) Y = Add(p, t)"), "a constant is divided by the result",
        ),
        "divided by zero": (
            model(RELU + "p = Div(x, s) Y = Add(p, t)", ("float s = {0}", T)),
            "the result is divided by zero",
        ),
        "divided by nearly zero": (
            model(RELU + "p = Div(x, s) Y = Add(p, t)", ("float s = {1e-44}", T)),
            "the new bias is not finite",
        ),
        "what is added is taken away": (
            model(RELU + "p = Mul(x, s) q = Add(p, t) Y = Sub(q, t)",
                  (S, "float t = {12582912}")),
            "what is added is taken away",
        ),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, **CLOSE)


test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("opset", [7, 8, 9, 13, 14, 15, 22])
def test_every_form_of_batch_normalization(opset: int) -> None:
    """It is in inference at every opset; the reference evaluator trains before opset 14."""
    written = opset >= 14
    result = check_pattern(
        model(RELU + AFFINE), None, NAME, opset=opset, reference=written, **CLOSE
    )
    norm = result.graph.node[-1]
    assert [a.name for a in norm.attribute] == ["epsilon"]
    onnx.checker.check_model(result, full_check=True)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("c = Conv(X, W) " + AFFINE.replace("x", "c"), "Conv"),
        (RELU + AFFINE.replace("Y", "q") + " Y = Conv(q, U)", "FusedConv Conv"),
        (
            RELU + AFFINE.replace("Y", "q") + " Y = Conv<pads = [1, 1, 1, 1]>(q, U)",
            "FusedConv BatchNormalization Conv",
        ),
        (
            RELU + AFFINE.replace("Y", "q") + " r = Mul(q, s) k = Sub(r, s) Y = Exp(k)",
            "FusedConv BatchNormalization Exp",
        ),
        (
            RELU + "p = Mul(x, s) q = Add(p, t) Y = Clip(q, t, s)",
            "FusedConv BatchNormalization Clip",
        ),
    ],
)
def test_after_the_folds(nodes: str, expected: str) -> None:
    """A weight takes a product and a sum if it can, another sum goes in the normalization."""
    values = ", ".join(map(str, range(1, 10)))
    constants = (S, T, "float[3, 2, 1, 1] W = {1, 2, 3, 4, 5, 6}")
    constants = (*constants, f"float[3, 3, 1, 1] U = {{{values}}}")
    text = model(nodes, constants, y="a, 3, d, e").replace(", float[3, 2, 1, 1] W)", ")")
    result = check_pattern(text, None, "default+onnxruntime", atol=1e-4, rtol=1e-4)
    assert [node.op_type for node in result.graph.node] == expected.split()


def test_not_finite() -> None:
    """An infinite constant stays."""
    before = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 15]>' + model(RELU + AFFINE)
    )
    before.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.float32(np.inf), "s"))
    check_no_match(before, NAME, "the other operand is not finite")


def test_special_values() -> None:
    """Infinities, NaN and null numbers give what they gave."""
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38, 1e-42, -3.0], np.float32)
    feeds = {"X": x.reshape((1, 1, 2, 4)), "W": np.ones((1, 1, 1, 1), np.float32)}
    for s, t in ((2.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (0.5, -2.0)):
        text = model(
            RELU.replace("Relu", "Tanh") + AFFINE,
            (f"float s = {{{s}}}", f"float t = {{{t}}}"),
            "a, 1, b, c", "1, 1, 1, 1", "a, 1, b, c",
        )  # fmt: skip
        for before in (text, text.replace("Tanh(c)", "Conv(c, W)")):
            check_pattern(before, None, NAME, feeds=[feeds], reference=False)


CONSTANTS = st.sampled_from([0.0, -1.0, 0.5, 3.0, 1e-3, -1e3])


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 20),
    st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(1, 9)),
    st.sampled_from(["", "[1]", "[1, 1, 1, 1]", "[{n}, 1, 1]", "[1, {n}, 1, 1]"]),
    st.sampled_from(["", "[1, 1]", "[{n}, 1, 1]", "[1, {n}, 1, 1]"]),
    st.sampled_from([AFFINE, "p = Mul(x, s) Y = Sub(t, p)", "p = Mul(s, x) Y = Sub(p, t)"]),
    st.data(),
)
def test_any_size(
    n: int, sizes: tuple[int, int, int], s: str, t: str, affine: str, data: st.DataObject
) -> None:
    """Any number of channels, of images, empty ones included."""
    rows = []
    for name, shape in (("s", s), ("t", t)):
        values = data.draw(st.lists(CONSTANTS, min_size=n, max_size=n))
        text = ", ".join(map(str, values if "{n}" in shape else values[:1]))
        rows.append(f"float{shape.format(n=n)} {name} = {{{text}}}")
    before = model(RELU + affine, tuple(rows), w=f"{n}, 2, 1, 1", y=f"a, {n}, b, c")
    options = {"sizes": [dict(zip("abc", sizes, strict=True))], "atol": 1e-3, "rtol": 1e-5}
    result = check_pattern(before, None, NAME, reference=False, **options)
    assert [node.op_type for node in result.graph.node][-1] == "BatchNormalization"
