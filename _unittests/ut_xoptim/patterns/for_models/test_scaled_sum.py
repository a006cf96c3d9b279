"""A sum that is scaled and shifted: the weights of one of its terms take it."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import check_pattern, make_feeds, model_from_text, refusal_tests, rewrite_tests

NAME = "ScaledSum"
PLAIN = "p = MatMul(x, w) "
BIASED = "m = MatMul(x, w) p = Add(m, c) "
END = "a = Add(p, r) b = Mul(a, s) y = Add(b, t)"
AFTER = "b = Mul(p, s) a = Add(b, t) o = Mul(r, s) y = Add(a, o)"


def model(body: str, more: str = "", r: str = "2, n, 4", inputs: str = "") -> str:
    """A product of rows, and what is added to it."""
    return f"""g (float[2, n, 3] x, float[{r}] r{inputs}) => (float[2, n, 4] y{more}) <
        float[3, 4] w = {{1, 2, 3, 4, 5, 6, 7, 8, -1, -2, 3, 1}}, float[4] c = {{1, -1, 2, 3}},
        float[4] s = {{2, 0.5, -1, 0}}, float[4] t = {{1, 2, 3, -4}}, float[1] one = {{3}},
        float[3, 4] w2 = {{1, 0, 3, 4, 5, -6, 7, 8, -1, -2, 3, 1}}
    > {{ {body} }}"""


#: pattern -> case -> (before, after)
MODELS: dict[str, dict[str, Any]] = {
    NAME: {
        "a product": (model(PLAIN + END), model(PLAIN + AFTER)),
        "a product and its bias": (model(BIASED + END), model(BIASED + AFTER)),
        "the other way round": (
            model(BIASED + "a = Add(r, p) b = Mul(s, a) y = Add(t, b)"), model(BIASED + AFTER),
        ),
        "a term that is repeated": (
            model(BIASED + END, r="n, 4"), model(BIASED + AFTER, r="n, 4"),
        ),
        "two products": (
            model(PLAIN + "r2 = MatMul(r, w2) " + END.replace("(p, r)", "(p, r2)"), r="2, n, 3"), None,
        ),
    }
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("body", [PLAIN, BIASED])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_weights_take_it(body: str, steps: int) -> None:
    """One product and one sum remain, and the bias."""
    proto = model_from_text(model(body + END))
    feeds = [make_feeds(proto, {"n": steps})]
    check_pattern(proto, None, "default", feeds=feeds, atol=1e-4, rtol=1e-5)
    options = OptimizationOptions(patterns="default")
    builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
    types = [node.op_type for node in builder.to_onnx().graph.node]
    assert sorted(types) == ["Add", "Add", "MatMul", "Mul"]


ELSEWHERE = "an inner result is used elsewhere"
EACH = "there is not one number for each column"
REFUSED = {
    "nothing is added": (model(PLAIN + "a = Add(p, r) b = Mul(a, s) y = Add(b, r)"), "it is not multiplied by a constant"),
    "two factors": (
        model(PLAIN + END.replace("(a, s)", "(a, u)"), inputs=", float[4] u"),
        "it is not multiplied by a constant",
    ),
    "no sum": (model(PLAIN + "b = Mul(p, s) o = Mul(b, r) y = Add(b, t) z = Neg(o)", ", float[2, n, 4] z"), "an inner result is used elsewhere"),
    "the sum is read elsewhere": (
        model(PLAIN + END + " z = Neg(a)", ", float[2, n, 4] z"), ELSEWHERE,
    ),
    "what is scaled is read elsewhere": (
        model(PLAIN + END + " z = Neg(b)", ", float[2, n, 4] z"), ELSEWHERE,
    ),
    "the product is read elsewhere": (
        model(PLAIN + END + " z = Neg(p)", ", float[2, n, 4] z"), "no weights take it",
    ),
    "one number": (model(PLAIN + END.replace("(b, t)", "(b, one)")), EACH),
    "no constant weights": (
        model(PLAIN.replace("(x, w)", "(x, v)") + END, inputs=", float[3, 4] v"), "no weights take it",
    ),
    "a bias": (model(PLAIN + END.replace("(p, r)", "(p, c)")), "the other term is a bias"),
    "a broader sum": (
        model(PLAIN.replace("(x, w)", "(q, w)") + END, inputs=", float[1, n, 3] q").replace("float[2, n, 3] x, ", ""),
        "the other term may be broader",
    ),
}  # fmt: skip

test_refuses = refusal_tests({NAME: REFUSED})
