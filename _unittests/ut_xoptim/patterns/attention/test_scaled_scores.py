"""The scale of the scores of an attention goes to the weights."""

from __future__ import annotations

from typing import Any

import pytest

from xoptim.testing import check_pattern, make_feeds, model_from_text, refusal_tests, rewrite_tests

NAME = "ScaledScores"
P = "perm = [0, 2, 1, 3]"
LINEAR = "m = MatMul(x, w) l = Add(m, b) "
HEADS = f"h = Reshape(l, four) q = Transpose<{P}>(h) "
SCORES = "s = MatMul(q, k) y = Mul(s, c)"
PLAIN = "y = MatMul(q, k)"
PACKED = (
    "m = MatMul(x, w3) l3 = Add(m, b3) l, other, last = Split<axis = 2>(l3, lengths) "
    + HEADS + SCORES + " z = Add(other, last)"
)  # fmt: skip
ROWS = (
    "r = Reshape(x, rows) l2 = Gemm(r, w3, b3) l3 = Reshape(l2, three) "
    "other, l, last = Split<axis = 2>(l3, lengths) " + HEADS + SCORES + " z = Add(other, last)"
)
MORE = ", float[2, s, 4] z"


def model(body: str, more: str = "", inputs: str = "", scale: str = "0.5") -> str:
    """Queries that are computed from a sequence, the keys are given."""
    return f"""g (float[2, s, 2] x, float[2, 2, 2, t] k{inputs}) => (float[2, 2, s, t] y{more}) <
        float[2, 4] w = {{1, 2, 3, 4, 5, 6, 7, 8}}, float[4] b = {{1, -1, 2, 3}},
        float[2, 12] w3 = {{1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 2, 5, 4, 6, 5, 8, 7, 2, 1, 4, 3, 6, 5, 8}},
        float[12] b3 = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}}, int64[3] lengths = {{4, 4, 4}},
        int64[4] four = {{0, 0, 2, 2}}, int64[2] rows = {{-1, 2}}, int64[3] three = {{2, -1, 12}},
        float c = {{{scale}}}
    > {{ {body} }}"""


#: pattern -> case -> (before, after)
MODELS: dict[str, dict[str, Any]] = {
    NAME: {
        "a product and its bias": (
            model(LINEAR + HEADS + SCORES),
            model(LINEAR + "d = Mul(l, c) " + HEADS.replace("(l,", "(d,") + PLAIN),
        ),
        "divided": (
            model(LINEAR + HEADS + SCORES.replace("y = Mul", "y = Div"), scale="2"),
            model(LINEAR + "d = Mul(l, c) " + HEADS.replace("(l,", "(d,") + PLAIN),
        ),
        "no bias, on the right": (
            model("l = MatMul(x, w) " + HEADS + SCORES.replace("(s, c)", "(c, s)"), scale="-0.3"),
            None,
        ),
        "keys are transposed": (
            model(
                LINEAR + HEADS + "kt = Transpose<perm = [0, 1, 3, 2]>(k5) s = MatMul(q, kt) y = Mul(s, c)",
                inputs=", float[2, 2, t, 2] k5",
            ),
            None,
        ),
        "one part of columns": (model(PACKED, MORE), None),
        "the second part, rows": (model(ROWS, MORE), None),
    }
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("body", [PACKED, ROWS])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_weights_take_it(body: str, steps: int) -> None:
    """No product remains."""
    proto = model_from_text(model(body, MORE))
    feeds = [make_feeds(proto, {"s": steps, "t": 3})]
    patterns = f"{NAME},MatMulAddMul,MatMulAffine"
    found = check_pattern(proto, None, patterns, feeds=feeds, atol=1e-4, rtol=1e-5)
    assert not {"Mul", "Div"} & {n.op_type for n in found.graph.node}


NOTHING = "nothing takes the scale"
UNSCALED = "it is not scaled by one constant number"
ELSEWHERE = "an inner result is used elsewhere"
WHOLE = LINEAR + HEADS + SCORES
REFUSED = {
    "no product": (model("y = Mul(k, c)").replace("float[2, 2, s, t] y", "float[2, 2, 2, t] y"), "no MatMul before"),
    "it is divided": (model(WHOLE.replace("Mul(s, c)", "Div(c, s)")), UNSCALED),
    "several numbers": (
        model(WHOLE.replace("(s, c)", "(s, e)"), inputs=", float[2, 1, 1] e"),
        UNSCALED,
    ),
    "null": (model(WHOLE, scale="0"), UNSCALED),
    "divided by zero": (model(WHOLE.replace("Mul(s", "Div(s"), scale="0"), UNSCALED),
    "scores are read elsewhere": (
        model(WHOLE + " z = Neg(s)", ", float[2, 2, s, t] z"), ELSEWHERE,
    ),
    "the keys are computed from the same heads": (
        model(
            LINEAR + "h = Reshape(l, four) q = Transpose<perm = [0, 1, 3, 2]>(h) s = MatMul(q, h) "
            "y = Mul(s, c)"
        ).replace("float[2, 2, s, t] y", "float[2, s, 2, 2] y"),
        ELSEWHERE,
    ),
    "queries are read elsewhere": (
        model(WHOLE + " z = Neg(q)", ", float[2, 2, s, 2] z"), ELSEWHERE,
    ),
    "the product is read elsewhere": (
        model(WHOLE + " z = Neg(l)", ", float[2, s, 4] z"), ELSEWHERE,
    ),
    "the parts are read elsewhere": (
        model(PACKED + " z2 = Neg(l3)", MORE + ", float[2, s, 12] z2"), ELSEWHERE,
    ),
    "rows are read elsewhere": (
        model(ROWS + " z2 = Neg(l2)", MORE + ", float[u, 12] z2"), ELSEWHERE,
    ),
    "nothing takes it": (model(LINEAR.replace("l =", "l0 =") + "l = Relu(l0) " + HEADS + SCORES), NOTHING),
    "weights that are not constant": (
        model(WHOLE.replace("(x, w)", "(x, v)"), inputs=", float[2, 4] v"), NOTHING,
    ),
    "something else than moved": (
        model(WHOLE.replace(f"q = Transpose<{P}>(h)", f"q0 = Transpose<{P}>(h) q = Relu(q0)")), NOTHING,
    ),
    "parts of rows": (
        model(
            "m = MatMul(x, w) l3 = Add(m, b) l, other = Split<axis = 1, num_outputs = 2>(l3) " + HEADS + SCORES
            + " z = Neg(other)", ", float[2, u, 4] z",
        ),
        "the length of a part is not known",
    ),
}  # fmt: skip

test_refuses = refusal_tests({NAME: REFUSED})
