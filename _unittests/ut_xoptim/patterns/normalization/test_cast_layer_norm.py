"""Normalizations between two casts."""

from __future__ import annotations

import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests


def model(
    norm: str = "LayerNormalization",
    arguments: str = "x, s, b",
    to: int = 10,
    up: int = 1,
    scale: str = "{2, 0.5}",
    outputs: str = "",
    inputs: str = "",
    more: str = "",
) -> str:
    """x is cast, normalized, cast back."""
    wide = {1: "float", 11: "double"}[up]
    return f"""agraph (float16[a, b, 2] X{inputs}) => (float16[a, b, 2] Y{outputs}) <
    {wide}[2] s = {scale}, {wide}[2] b = {{1, -1}}
> {{
    x = Cast<to = {up}>(X)
    y = {norm}({arguments})
    Y = Cast<to = {to}>(y)
    {more}
}}"""


# float16 constants are written as bits: 2, 0.5, 1, -1
AFTER = """agraph (float16[a, b, 2] X) => (float16[a, b, 2] Y) <
    float16[2] s = {16384, 14336}, float16[2] b = {15360, 48128}
> {
    Y = LayerNormalization(X, s, b)
}"""


def wide(text: str) -> str:
    """The same model with 256 columns, those of real models, which is what gains measure."""
    for values in ("{2, 0.5}", "{1, -1}", "{16384, 14336}", "{15360, 48128}"):
        text = text.replace(values, f"{{{', '.join([values[1:-1]] * 128)}}}")
    return text.replace("[a, b, 2]", "[a, b, 256]").replace("[2]", "[256]")


#: what the documentation draws: name -> (before, after)
MODELS = {"CastLayerNormalizationCast": (wide(model()), wide(AFTER))}

NAME = "CastLayerNormalizationCast"


#: the scale is applied in float16 instead of float: 10 bits of precision
test_rewrites = rewrite_tests(MODELS, atol=1e-2, reference=False)


def test_missing_bias() -> None:
    after = AFTER.replace("(X, s, b)", "(X, s)")
    check_pattern(model(arguments="x, s"), after, NAME, atol=1e-2, reference=False)


def test_scale_that_was_cast() -> None:
    """The scale is a float16 input: it is read before its cast."""
    before = """agraph (float16[a, 2] X, float16[2] S) => (float16[a, 2] Y) {
        x = Cast<to = 1>(X)
        s = Cast<to = 1>(S)
        y = LayerNormalization(x, s)
        Y = Cast<to = 10>(y) }"""
    after = """agraph (float16[a, 2] X, float16[2] S) => (float16[a, 2] Y) {
        Y = LayerNormalization(X, S) }"""
    check_pattern(before, after, NAME, atol=1e-2, reference=False)


def test_mean_is_kept() -> None:
    """The mean keeps the stash type, whatever the type of x."""
    before = model(outputs=", float[a, b, 1] m").replace("y = Layer", "y, m = Layer")
    after = AFTER.replace("] Y)", "] Y, float[a, b, 1] m)").replace("Y = Layer", "Y, m = Layer")
    check_pattern(before, after, NAME, atol=1e-2, reference=False)


def test_cast_used_elsewhere() -> None:
    before = model(outputs=", float[a, b, 2] Z", more="Z = Neg(x)")
    after = AFTER.replace("] Y)", "] Y, float[a, b, 2] Z)").replace(
        "(X, s, b)", "(X, s, b) x = Cast<to = 1>(X) Z = Neg(x)"
    )
    check_pattern(before, after, NAME, atol=1e-2, reference=False)


@pytest.mark.parametrize(
    ("norm", "arguments", "opset", "after"),
    [
        ("RMSNormalization", "x, s", 23, "RMSNormalization(X, s)"),
        ("SimplifiedLayerNormalization", "x, s", 18, "SimplifiedLayerNormalization(X, s)"),
    ],
)
def test_other_normalizations(norm: str, arguments: str, opset: int, after: str) -> None:
    expected = AFTER.replace("LayerNormalization(X, s, b)", after)
    check_pattern(model(norm, arguments), expected, NAME, opset=opset, atol=1e-2, reference=False)


def test_group_normalization() -> None:
    """From opset 21 the operator has a stash type."""
    before = model("GroupNormalization<num_groups = 1>").replace("a, b, 2", "a, 2, b")
    after = AFTER.replace("LayerNormalization", "GroupNormalization<num_groups = 1>")
    check_pattern(
        before, after.replace("a, b, 2", "a, 2, b"), NAME, opset=21, atol=1e-2, reference=False
    )


REFUSED = {
    "scale would be rounded": (model(scale="{0.1, 1}"), "would be rounded"),
    "scale would overflow": (model(scale="{70000, 1}"), "would be rounded"),
    "scale is an input": (
        model(arguments="x, S", inputs=", float[2] S"),
        "would be rounded",
    ),
    "no cast before": (
        model(arguments="Z, s", inputs=", float[a, b, 2] Z"),
        "not before and after",
    ),
    "result is an output": (model(outputs=", float[a, b, 2] y"), "not before and after"),
    "goes to another type": (
        model(to=11).replace("float16[a, b, 2] Y", "double[a, b, 2] Y"),
        "go back to a narrow type",
    ),
    "double": (model(up=11), "stash type is not"),
    "old GroupNormalization": (
        model("GroupNormalization<num_groups = 1>").replace("a, b, 2", "a, 2, b"),
        "no stash type",
    ),
    "narrowed before": (
        """agraph (float[a, 2] X) => (float[a, 2] Y) <float16[2] s = {15360, 15360}> {
            x = Cast<to = 10>(X) y = LayerNormalization(x, s) Y = Cast<to = 1>(y) }""",
        "go back to a narrow type",
    ),
    "graph input": (
        "agraph (float[a, 2] X, float[2] s) => (float[a, 2] Y) { Y = LayerNormalization(X, s) }",
        "not before and after",
    ),
}


test_refuses = refusal_tests({NAME: REFUSED})
