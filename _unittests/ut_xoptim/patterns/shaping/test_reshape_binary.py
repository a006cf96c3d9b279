"""Reshapes around an operator of two inputs, or before a Squeeze."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

#: pattern -> case -> (before, after)
MODELS = {
    "Reshape2Of3": {
        "three of them": (
            """agraph (float[a,6] x, float[a,6] z) => (float[a,6] y)
            <int64[3] s = {0, 2, 3}, int64[3] t = {-1, 2, 3}, int64[2] u = {0, 6}> {
                r = Reshape(x, s)
                q = Reshape(z, t)
                p = Sub(r, q)
                y = Reshape(p, u)
            }""",
            "agraph (float[a,6] x, float[a,6] z) => (float[a,6] y) { y = Sub(x, z) }",
        ),
        "the right operand is reshaped instead": (
            """agraph (float[a,6] x, float[a,2,3] z) => (float[a,6] y)
            <int64[3] s = {0, 2, 3}, int64[2] u = {0, 6}> {
                r = Reshape(x, s)
                p = Sub(r, z)
                y = Reshape(p, u)
            }""",
            """agraph (float[a,6] x, float[a,2,3] z) => (float[a,6] y) <int64[2] u = {0, 6}> {
                q = Reshape(z, u)
                y = Sub(x, q)
            }""",
        ),
        "the left one": (
            """agraph (float[a,6] x, float[a,2,3] z) => (bool[a,6] y)
            <int64[3] s = {0, 2, 3}, int64[2] u = {0, 6}> {
                r = Reshape(x, s)
                p = Less(z, r)
                y = Reshape(p, u)
            }""",
            """agraph (float[a,6] x, float[a,2,3] z) => (bool[a,6] y) <int64[2] u = {0, 6}> {
                q = Reshape(z, u)
                y = Less(q, x)
            }""",
        ),
    },
    "ReshapeReshapeBinary": {
        "same shapes": (
            """agraph (float[a,6] x, float[a,6] z) => (float[a,2,3] y)
            <int64[3] s = {0, 2, 3}, int64[3] t = {-1, 2, 3}> {
                r = Reshape(x, s)
                q = Reshape(z, t)
                y = Sub(r, q)
            }""",
            """agraph (float[a,6] x, float[a,6] z) => (float[a,2,3] y) <int64[3] s = {0, 2, 3}> {
                p = Sub(x, z)
                y = Reshape(p, s)
            }""",
        ),
        "one result twice": (
            """agraph (float[a,6] x) => (float[a,2,3] y) <int64[3] s = {0, 2, 3}> {
                r = Reshape(x, s)
                y = Sub(r, r)
            }""",
            """agraph (float[a,6] x) => (float[a,2,3] y) <int64[3] s = {0, 2, 3}> {
                p = Sub(x, x)
                y = Reshape(p, s)
            }""",
        ),
    },
    "ReshapeUnsqueeze": {
        "several readers": (
            """agraph (float[a,6] x) => (float[a,1,2,3] y, float[a,2,1,3] z)
            <int64[3] s = {0, 2, 3}, int64[1] k = {1}, int64[1] l = {-2}> {
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
                z = Unsqueeze(r, l)
            }""",
            """agraph (float[a,6] x) => (float[a,1,2,3] y, float[a,2,1,3] z)
            <int64[4] s = {0, 1, 2, 3}, int64[4] t = {0, 2, 1, 3}> {
                y = Reshape(x, s)
                z = Reshape(x, t)
            }""",
        ),
        "after what is copied": (
            """agraph (float[a,6] x) => (float[a,1,2,1,c] y)
            <int64[3] s = {0, 2, -1}, int64[2] k = {-2, 1}> {
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
            }""",
            """agraph (float[a,6] x) => (float[a,1,2,1,c] y) <int64[5] s = {0, 1, 2, 1, -1}> {
                y = Reshape(x, s)
            }""",
        ),
        "no zero, whatever allowzero is": (
            """agraph (float[a,6] x) => (float[1,b,3] y) <int64[2] s = {-1, 3}, int64[1] k = {0}> {
                r = Reshape <allowzero = 1> (x, s)
                y = Unsqueeze(r, k)
            }""",
            """agraph (float[a,6] x) => (float[1,b,3] y) <int64[3] s = {1, -1, 3}> {
                y = Reshape(x, s)
            }""",
        ),
    },
    "ReshapeSqueeze": {
        "a dimension that was introduced": (
            """agraph (float[a,b,6] x) => (float[a,c,3] y)
            <int64[4] s = {0, -1, 1, 3}, int64[1] k = {-2}> {
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""",
            """agraph (float[a,b,6] x) => (float[a,c,3] y) <int64[3] s = {0, -1, 3}> {
                y = Reshape(x, s)
            }""",
        ),
        "no zero, whatever allowzero is": (
            """agraph (float[a,6] x) => (float[b,3] y)
            <int64[3] s = {-1, 1, 3}, int64[1] k = {1}> {
                r = Reshape <allowzero = 1> (x, s)
                y = Squeeze(r, k)
            }""",
            """agraph (float[a,6] x) => (float[b,3] y) <int64[2] s = {-1, 3}> {
                y = Reshape(x, s)
            }""",
        ),
        "a known dimension after it": (
            """agraph (float[a,6] x) => (float[6,b] y) <int64[3] s = {1, 0, -1}, int64[1] k = {0}> {
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""",
            """agraph (float[a,6] x) => (float[6,b] y) <int64[2] s = {6, -1}> {
                y = Reshape(x, s)
            }""",
        ),
        "a vector joined with constants": (
            """agraph (float[a,6] x, int64[2] d) => (float[b,c,3] y)
            <int64[3] u = {3, 1, 1}, int64[1] k = {-2, -1}> {
                s = Concat <axis = 0> (d, u)
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""".replace("int64[1] k", "int64[2] k"),
            """agraph (float[a,6] x, int64[2] d) => (float[b,c,3] y) <int64[1] u = {3}> {
                s = Concat <axis = 0> (d, u)
                y = Reshape(x, s)
            }""",
            {"feeds": [{"x": np.ones((4, 6), np.float32), "d": np.array([2, -1])}]},
        ),
        "an axis after a vector": (
            """agraph (float[a,6] x, int64[2] d) => (float[b,c,1,3] y)
            <int64[1] u = {3}, int64[1] k = {2}> {
                s = Concat <axis = 0> (d, u)
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
            }""",
            """agraph (float[a,6] x, int64[2] d) => (float[b,c,1,3] y) <int64[2] u = {1, 3}> {
                s = Concat <axis = 0> (d, u)
                y = Reshape(x, s)
            }""",
            {"feeds": [{"x": np.ones((4, 6), np.float32), "d": np.array([2, -1])}]},
        ),
        "the inner result is an output": (
            """agraph (float[a,6] x) => (float[b] y, float[b,1] r)
            <int64[2] s = {-1, 1}, int64[1] k = {1}> {
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""",
            """agraph (float[a,6] x) => (float[b] y, float[b,1] r)
            <int64[2] s = {-1, 1}, int64[1] t = {-1}> {
                y = Reshape(x, t)
                r = Reshape(x, s)
            }""",
        ),
    },
}

_BINARY = """agraph (float[{x}] x, float[{z}] z) => ({y})
<int64[3] s = {{0, 2, 3}}, int64[2] u = {{{u}}}> {{
    r = Reshape(x, s)
    q = Reshape(z, s)
    p = Sub(r, {o})
    y = Reshape(p, u)
}}"""

_ONE = """agraph (float[a,6] x, float[{z}] z) => (float[c,d] y)
<int64[3] s = {{0, 2, 3}}, int64[2] u = {{{u}}}> {{
    r = Reshape(x, s)
    p = Sub(r, z)
    y = Reshape(p, u)
}}"""

H = "agraph (float[a,3,4] x) => (float[a,3,2,3] y) "
W = "float[4,6] w = {1,2,3,4,5,6,6,5,4,3,2,1,1,0,1,0,1,0,2,2,2,3,3,3}"
SPLIT = f"{W}, int64[4] s = {{0, 0, 2, 3}}, float[2,3] c = {{1,2,3,4,5,6}}"
ROW = f"{W}, int64[4] s = {{0, 0, 2, 3}}, float[6] c = "


def split_heads(end: str, weights: str = SPLIT, header: str = H) -> str:
    """A product whose last dimension is split, and what follows."""
    return f"{header} <{weights}> {{ p = MatMul(x, w) r = Reshape(p, s) {end} }}"


def before_split(start: str, row: str = "{1,2,3,4,5,6}") -> str:
    """A product, what is before the split, and the split."""
    return f"{H} <{ROW}{row}> {{ p = MatMul(x, w) {start} y = Reshape(r, s) }}"


MODELS["ConstantBeforeReshape"] = {
    "a bias by head": (split_heads("y = Add(r, c)"), before_split("r = Add(p, c)")),
    "on the left": (split_heads("y = Sub(c, r)"), before_split("r = Sub(c, p)")),
    "a factor of a head": (
        split_heads("y = Mul(r, c)", SPLIT.replace("[2,3] c = {1,2,3,4,5,6}", "[2,1] c = {1, 2}")),
        before_split("r = Mul(p, c)", "{1,1,1,2,2,2}"),
    ),
    "dimensions 1 before": (
        split_heads("y = Div(r, c)", SPLIT.replace("[2,3] c", "[1,1,2,3] c")),
        before_split("r = Div(p, c)"),
    ),
    "the same for each head": (
        split_heads("y = Add(c, r)", SPLIT.replace("[2,3] c = {1,2,3,4,5,6}", "[3] c = {1, 2, 3}")),
        before_split("r = Add(c, p)", "{1,2,3,1,2,3}"),
    ),
}

#: pattern -> [(model, reason)]
REFUSED = {
    "ConstantBeforeReshape": [
        (
            "agraph (float[a] x) => (float[a] y) <float[1] c = {1}> { y = Add(x, c) }",
            "no Reshape before",
        ),
        (
            split_heads("y = Add(q, c)")
            .replace("r =", "z = Neg(p) q =")
            .replace("(p, s)", "(z, s)"),
            "no product before",
        ),
        (
            split_heads("y = Add(r, d)", header=H.replace("x)", "x, float[2,3] d)")),
            "an operand is not constant",
        ),
        (
            split_heads("y = Add(r, c) z = Neg(p)", header=H.replace("y)", "y, float[a,3,6] z)")),
            "the product is used elsewhere",
        ),
        (
            split_heads("y = Add(r, c) z = Neg(r)", header=H.replace("y)", "y, float[a,3,2,3] z)")),
            "the product is used elsewhere",
        ),
        (
            split_heads(
                "y = Add(r, c)",
                SPLIT.replace("{0, 0, 2, 3}", "{-1, 1, 2, 9}").replace(
                    "[2,3] c = {1,2,3,4,5,6}", "[1] c = {1}"
                ),
                H.replace("[a,3,2,3] y", "[b,1,2,9] y"),
            ),
            "the last dimension is not split",
        ),
        (
            split_heads(
                "y = Add(r, c)", SPLIT.replace("[2,3] c = {1,2,3,4,5,6}", "[3,1,1] c = {1,2,3}")
            ),
            "it varies along another axis",
        ),
        (
            split_heads(
                "y = Add(r, c)",
                SPLIT.replace("[2,3] c", "[1,1,1,2,3] c"),
                H.replace("[a,3,2,3] y", "[1,a,3,2,3] y"),
            ),
            "what is split is repeated",
        ),
        (
            split_heads(
                "y = Add(r, c)",
                SPLIT.replace("{0, 0, 2, 3}", "{0, 0, 6, 1}").replace(
                    "[2,3] c = {1,2,3,4,5,6}", "[1,2] c = {1,2}"
                ),
                H.replace("[a,3,2,3] y", "[a,3,6,2] y"),
            ),
            "what is split is repeated",
        ),
        (
            "agraph (float[4] x) => (float[1,1] y) <float[4] w = {1,2,3,4}, int64[2] s = {1, 1},"
            "float[1] c = {1}> { p = MatMul(x, w) r = Reshape(p, s) y = Add(r, c) }",
            "the last dimension is not split",
        ),
    ],
    "Reshape2Of3": [
        ("agraph (float[a] x, float[a] z) => (float[a] y) { y = Add(x, z) }", "no Reshape before"),
        (
            """agraph (float[a,6] x, float[a,2,3] z) => (float[a,2,3] y) <int64[3] s = {0, 2, 3}> {
                r = Reshape(x, s)
                p = Sub(r, z)
                y = Neg(p)
            }""",
            "no Reshape after",
        ),
        (
            """agraph (float[a,6] x, float[a,2,3] z) => (float[a,6] y, float[a,2,3] p)
            <int64[3] s = {0, 2, 3}, int64[2] u = {0, 6}> {
                r = Reshape(x, s)
                p = Sub(r, z)
                y = Reshape(p, u)
            }""",
            "no Reshape after",
        ),
        # one row is broadcast
        (
            _ONE.format(z="1,2,3", u="0,6"),
            "the operands may have different shapes",
        ),
        (
            _ONE.format(z="a,2,3", u="6,-1"),
            "the result may not have the shape of the data",
        ),
        # the result is the shape of another tensor
        (
            """agraph (int64[2,1] x, int64[2] z, int64[2,1] d) => (int64[2,1] y)
            <int64[1] s = {-1}> {
                r = Reshape(x, s)
                p = Sub(r, z)
                y = Reshape(d, p)
            }""",
            "no Reshape after",
        ),
    ],
    "ReshapeReshapeBinary": [
        (
            """agraph (float[a,6] x, float[a,2,3] z) => (float[a,2,3] y) <int64[3] s = {0, 2, 3}> {
                r = Reshape(x, s)
                y = Sub(r, z)
            }""",
            "no Reshape after",
        ),
        (
            """agraph (float[a,6] x) => (float[a,2,3] y, float[a,2,3] r) <int64[3] s = {0, 2, 3}> {
                r = Reshape(x, s)
                y = Sub(r, r)
            }""",
            "an inner result is used elsewhere",
        ),
        (
            _BINARY.format(x="a,6", z="b,6", y="float[c,d] y", u="-1,6", o="q"),
            "the operands may have different shapes",
        ),
        (
            """agraph (float[2,3] x, float[3,2] z) => (float[6] y) <int64[1] s = {-1}> {
                r = Reshape(x, s)
                q = Reshape(z, s)
                y = Sub(r, q)
            }""",
            "the data may have different shapes",
        ),
        (
            """agraph (float[6] x, float[6] z) => (float[2,3,6] y)
            <int64[2] s = {1, 6}, int64[3] t = {2, 3, 1}> {
                r = Reshape(x, s)
                q = Reshape(z, t)
                y = Sub(r, q)
            }""",
            "the operands may have different shapes",
        ),
    ],
    "ReshapeUnsqueeze": [
        (
            """agraph (float[a,6] x) => (float[1,b,3] y, float[b,3] z) <int64[2] s = {-1, 3}, int64[1] k = {0}> {
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
                z = Neg(r)
            }""",
            "used elsewhere",
        ),
        (
            """agraph (float[a,6] x) => (float[a,1,2,3] y, float[1,a,2,3] z)
            <int64[3] s = {0, 2, 3}, int64[1] k = {1}, int64[1] l = {0}> {
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
                z = Unsqueeze(r, l)
            }""",
            "a 0 would copy",
        ),
        (
            """agraph (float[a,6] x, int64[2] s) => (float[1,b,c] y) <int64[1] k = {0}> {
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
            }""",
            "the shape is not constant",
        ),
        (
            """agraph (float[a,6] x, int64[1] k) => (float[b,c,d] y) <int64[2] s = {-1, 3}> {
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
            }""",
            "the axes are not known",
        ),
        (
            """agraph (float[a,6] x) => (float[1,a,2,3] y) <int64[3] s = {0, 2, 3}, int64[1] k = {0}> {
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
            }""",
            "a 0 would copy",
        ),
        (
            """agraph (float[0,6] x) => (float[0,1,6] y) <int64[2] s = {0, 6}, int64[1] k = {1}> {
                r = Reshape <allowzero = 1> (x, s)
                y = Unsqueeze(r, k)
            }""",
            "a 0 would copy",
        ),
        (
            """agraph (float[a,6] x) => (float[1,b,3] y, float[b,3] r)
            <int64[2] s = {-1, 3}, int64[1] k = {0}> {
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
            }""",
            "used elsewhere",
        ),
    ],
    "ReshapeSqueeze": [
        (
            "agraph (float[a,1] x) => (float[a] y) <int64[1] k = {1}> { y = Squeeze(x, k) }",
            "no Reshape before",
        ),
        (
            """agraph (float[a,1] x, int64[2] s) => (float[b] y) <int64[1] k = {1}> {
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""",
            "the shape is not constant",
        ),
        (
            """agraph (float[2,3] x) => (float[6] y) <int64[2] s = {-1, 6}, int64[1] k = {0}> {
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""",
            "a dimension is not 1 in the shape",
        ),
        (
            """agraph (float[a,b] x) => (float[b,a] y) <int64[3] s = {1, 0, -1}, int64[1] k = {0}> {
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""",
            "a 0 would copy",
        ),
        (
            """agraph (float[0,3] x) => (float[0] y) <int64[2] s = {0, 1}, int64[1] k = {1}> {
                r = Reshape <allowzero = 1> (x, s)
                y = Squeeze(r, k)
            }""",
            "a 0 would copy",
        ),
        (
            """agraph (float[a,6] x, int64[b] d) => (y) <int64[2] u = {3, 1}, int64[1] k = {-1}> {
                s = Concat <axis = 0> (d, u)
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""",
            "the length of the shape is not known",
        ),
        (
            """agraph (float[a,6] x, int64[1] d) => (y) <int64[2] u = {3, 1}, int64[1] k = {1}> {
                s = Concat <axis = 0> (u, d)
                r = Reshape(x, s)
                y = Squeeze(r, k)
            }""",
            "a 0 would copy another dimension",
        ),
        (
            """agraph (float[a,b] x) => (y) <int64[1] k = {1}, int64[1] e = {-1}> {
                d = Shape(x)
                p = Max(d, k)
                s = Concat <axis = 0> (p, e)
                r = Reshape(x, s)
                y = Unsqueeze(r, k)
            }""",
            "an axis is between elements that are computed together",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


def test_empty_tensors() -> None:
    for pattern in ("Reshape2Of3", "ReshapeReshapeBinary"):
        for before, after in MODELS[pattern].values():
            text = before.replace("{-1, 2, 3}", "{0, 2, 3}")
            check_pattern(text, after, pattern, sizes=[{"a": 0}, {"a": 1}])


BOTH = {
    "no Reshape after": "y = Sub(r, q)",
    "another shape after": "p = Sub(r, q) y = Reshape(p, u)",
}


@pytest.mark.parametrize("name", BOTH)
def test_reshape_2_of_3_alone_does_what_its_set_does(name: str) -> None:
    """Two Reshape before and none that cancels them: the operator goes before one of them."""
    text = f"""agraph (float[a,6] x, float[a,6] z) => (y)
    <int64[3] s = {{0, 2, 3}}, int64[2] u = {{6, -1}}> {{
        r = Reshape(x, s) q = Reshape(z, s) {BOTH[name]}
    }}"""
    types = []
    for patterns in ("Reshape2Of3", "default"):
        model, _, _ = optimize_with(model_from_text(text), patterns)
        types.append([n.op_type for n in model.graph.node])
    assert types[0][0] == types[1][0] == "Sub"
    assert types[0].count("Reshape") == 1 + (name != "no Reshape after")
