"""InstanceNormalization from elementary operators, then its scale and its bias."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

HALF = {"0.00001": "168", "2": "16384", "1": "15360"}
FORMULA = """m = ReduceMean<keepdims = 1>(X, axes) d = Sub(X, m) q = Pow(d, two)
    v = ReduceMean<keepdims = 1>(q, axes) w = Add(v, eps) s = Sqrt(w) {end}"""
DIVIDED = FORMULA.format(end="Y = Div(d, s)")


def instance(
    body: str = DIVIDED,
    dims: str = "a, 3, b, c",
    axes: str = "2, 3",
    elem_type: str = "float",
    outputs: str = "",
    epsilon: str = "0.00001",
) -> str:
    """Model with the decomposed formula, axes given as inputs (opset 18)."""
    e, two, one = (HALF.get(v, v) if elem_type == "float16" else v for v in (epsilon, "2", "1"))
    n = len(axes.split(","))
    return f"""agraph ({elem_type}[{dims}] X) => ({elem_type}[{dims}] Y{outputs}) <
    {elem_type} eps = {{{e}}}, {elem_type} two = {{{two}}}, {elem_type} one = {{{one}}},
    {elem_type} half = {{0.5}}, int64[{n}] axes = {{{axes}}}, int64[1] other = {{1}},
    float[3, 1, 1] k = {{1, 2, 3}}, float[1, 3, 1, 1] j = {{1, -2, 3}}, float[3, 1] i = {{1, 2, 3}}
> {{
    {body}
}}"""


def written(
    dims: str = "a, 3, b, c",
    elem_type: str = "float",
    scale: str = "1, 1, 1",
    bias: str = "0, 0, 0",
    end: str = "Y = ",
) -> str:
    """Model with one InstanceNormalization."""
    if elem_type == "float16":
        scale = scale.replace("1", "15360")
    return f"""agraph ({elem_type}[{dims}] X) => ({elem_type}[{dims}] Y) <
    {elem_type}[3] scale = {{{scale}}}, {elem_type}[3] bias = {{{bias}}}, float[3, 1] i = {{1, 2, 3}}
> {{
    {end}InstanceNormalization<epsilon = 0.00001>(X, scale, bias)
    {"Y = Mul(n, i)" if end == "n = " else ""}
}}"""


def scaled(body: str, outputs: str = "", inputs: str = "", rest: str = "") -> str:
    """Model with one InstanceNormalization, then something."""
    return f"""agraph (float[a, 3, b, c] X{inputs}) => (float[a, 3, b, c] Y{outputs}) <
    float[3] scale = {{1, 2, 4}}, float[3] bias = {{0, 1, 2}}, float[3, 1, 1] k = {{1, 2, 3}},
    float[1, 3, 1, 1] j = {{1, -2, 3}}, float[3] wide = {{1, 2, 3}}, float two = {{2}}{rest}
> {{
    n = InstanceNormalization<epsilon = 0.00001>(X, scale, bias)
    {body}
}}"""


#: three groups of two channels
GROUPS = ", int64[4] t = {0, 6, -1, 1}, float[6, 1, 1] w = {1, 2, 3, 4, 5, 6}"


def _half(dims: str) -> str:
    """The formula in float16."""
    return instance(dims=dims, elem_type="float16").replace("half = {0.5}", "half = {14336}")


def _half_written(dims: str) -> str:
    return written(dims, "float16").replace("0.00001", "0.000010013580322265625")


#: pattern -> case -> (before, after)
MODELS = {
    "InstanceNormalization": {
        "division": (instance(), written()),
        "Reciprocal": (
            instance(FORMULA.format(end="r = Reciprocal(s) Y = Mul(r, d)")),
            written(),
        ),
        "1 / sqrt": (instance(FORMULA.format(end="r = Div(one, s) Y = Mul(d, r)")), written()),
        "Pow 0.5": (instance(DIVIDED.replace("Sqrt(w)", "Pow(w, half)")), written()),
        "d * d": (instance(DIVIDED.replace("Pow(d, two)", "Mul(d, d)")), written()),
        "negative axes": (instance(axes="-1, -2"), written()),
        "five dimensions": (
            instance(dims="a, 3, b, c, 2", axes="2, 3, 4"),
            written("a, 3, b, c, 2"),
        ),
        "three dimensions, by channel": (
            instance(FORMULA.format(end="n = Div(d, s) Y = Mul(n, i)"), "a, 3, b", "2"),
            written("a, 3, b", end="n = "),
        ),
        "half": (_half("a, 3, 4, 5"), _half_written("a, 3, 4, 5"), {"atol": 5e-3}),
        "half, an image of any size on CUDA": (
            _half("a, 3, b, c"),
            _half_written("a, 3, b, c"),
            {"atol": 5e-3, "processor": "CUDA"},
        ),
    },
    "InstanceNormalizationScale": {
        "both": (
            scaled("m = Mul(n, k) Y = Add(j, m)"),
            written(scale="1, 4, 12", bias="1, 0, 9"),
        ),
        "product": (scaled("Y = Mul(j, n)"), written(scale="1, -4, 12", bias="0, -2, 6")),
        "sum": (scaled("Y = Add(n, k)"), written(scale="1, 2, 4", bias="1, 3, 5")),
        "a scalar": (scaled("Y = Mul(n, two)"), written(scale="2, 4, 8", bias="0, 2, 4")),
    },
}

REFUSED = {
    "InstanceNormalization": {
        "bfloat16": (
            instance(elem_type="float16")
            .replace("float16", "bfloat16")
            .replace("{0.5}", "{16128}"),
            "the type is not float nor float16",
        ),
        "half, the image may be empty": (_half("a, 3, b, 5"), "dies of an empty image in float16"),
        "one axis": (instance(axes="3"), "not all those after the second one"),
        "channels as well": (instance(axes="1, 2, 3"), "not all those after the second one"),
        "axes that are not the last ones": (instance(axes="1, 2"), "axes are not the last ones"),
        "the means differ": (
            instance(DIVIDED.replace("(q, axes)", "(q, last)"))
            .replace("half =", "h =")
            .replace("int64[1] other", "int64[1] last = {3}, int64[1] other"),
            "not all those after the second one",
        ),
        "keepdims": (
            instance(DIVIDED.replace("<keepdims = 1>(X", "<keepdims = 0>(X"), dims="1, 3, 1, 1"),
            "keepdims is 0",
        ),
        "three dimensions": (instance(dims="a, 3, b", axes="2"), "may be a LayerNormalization"),
        "two dimensions": (instance(dims="a, 3", axes="1"), "less than three dimensions"),
        "channels are not known": (instance(dims="a, d, b, c"), "not known integers"),
        "no epsilon": (instance(epsilon="0"), "epsilon is not a positive constant"),
        "double": (instance(elem_type="double"), "not float, float16 or bfloat16"),
        "the centered result is an output": (
            instance(outputs=", float[a, 3, b, c] d"),
            "used elsewhere",
        ),
        "the variance is an output": (
            instance(outputs=", float[a, 3, e, f] v"),
            "used elsewhere",
        ),
    },
    "InstanceNormalizationScale": {
        "one by column": (
            scaled("Y = Mul(n, o)", rest=", float[2] o = {1, 2}").replace("b, c]", "b, 2]"),
            "one value for each channel",
        ),
        "an input": (
            scaled("Y = Mul(n, o)", inputs=", float[3, 1, 1] o"),
            "not constant",
        ),
        "an output": (
            scaled("Y = Mul(n, k)", outputs=", float[a, 3, b, c] n"),
            "used elsewhere",
        ),
        "a group normalization": (
            scaled("r = Reshape(n, t) Y = Mul(r, w)", rest=GROUPS).replace(
                "(float[a, 3, b, c] Y", "(float[a, 6, d, 1] Y"
            ),
            "no BatchNormalization or InstanceNormalization before",
        ),
        "overflow": (
            scaled("Y = Mul(n, o)", rest=", float[3, 1, 1] o = {1e38, 3e38, 3e38}"),
            "not finite",
        ),
        "a scale that is an input": (
            scaled("Y = Mul(n, k)", inputs=", float[3] sc").replace("scale, bias)", "sc, bias)"),
            "not constant",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=2e-5)
test_refuses = refusal_tests(REFUSED)


def test_old_opset() -> None:
    """Axes are attributes."""
    text = instance(DIVIDED.replace("<keepdims = 1>", "<axes = [2, 3]>").replace(", axes)", ")"))
    for opset in (9, 13, 17):
        check_pattern(text, written(), "InstanceNormalization", opset=opset, atol=2e-5)


def test_a_layer_normalization_stays_one() -> None:
    """The last axis of three: with both patterns, the last dimension decides."""
    text = instance(dims="a, 3, 8", axes="-1")
    check_no_match(text, "InstanceNormalization", "may be a LayerNormalization")


@pytest.mark.parametrize("shape", [(0, 3, 2, 2), (2, 3, 1, 1), (1, 3, 5, 1)])
def test_dimensions(shape: tuple[int, ...]) -> None:
    """No batch, one element by channel: the variance is null."""
    feeds = [{"X": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}]
    check_pattern(instance(), written(), "InstanceNormalization", feeds=feeds, atol=2e-5)


@settings(max_examples=20, deadline=None)
@given(
    rank=st.integers(4, 5),
    sizes=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    negative=st.lists(st.booleans(), min_size=3, max_size=3),
    static=st.booleans(),
    scales=st.booleans(),
)
def test_any_rank(
    rank: int, sizes: list[int], negative: list[bool], static: bool, scales: bool
) -> None:
    """Any rank, negative axes or not, dimensions known or not, with or without a scale."""
    names = ["a", "b", "c", "d"]
    row = dict(zip(names, sizes, strict=True))
    dims = [names[0], "3", *names[1 : rank - 1]]
    if static:
        dims = [str(row.get(d, d)) for d in dims]
    axes = [i - rank if negative[i - 2] else i for i in range(2, rank)]
    k = ", ".join(["3", *["1"] * (rank - 2)])
    end = "n = Div(d, s) t = Mul(n, z) Y = Add(t, z)" if scales else "Y = Div(d, s)"
    text = instance(FORMULA.format(end=end), ", ".join(dims), ", ".join(map(str, axes)))
    text = text.replace("int64[1] other", f"float[{k}] z = {{1, 2, 3}}, int64[1] other")
    patterns = ["InstanceNormalization", "InstanceNormalizationScale"]
    check_pattern(text, None, patterns, sizes=row, atol=5e-5)
