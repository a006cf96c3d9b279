"""Masks that are added one after the other."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from xoptim.testing import check_pattern, make_feeds, model_from_text, refusal_tests, rewrite_tests

LOWEST = "-3.4028234663852886e38"


def model(
    body: str, bias: str = "1, n, s, t", mask: str = "b, 1, 1, t", out: str = "", low: str = LOWEST
) -> str:
    """Scores, a bias, what hides scores."""
    return f"""g (float[b, n, s, 8] q, float[b, n, 8, t] k, float[{bias}] c, bool[{mask}] seen)
    => (float[b, n, s, t] y{out}) <float scale = {{0.25}}, float zero = {{0}}, float low = {{{low}}}> {{
        p = MatMul(q, k) m = Where(seen, zero, low) {body}
    }}"""


END = " y = Softmax<axis = -1>(z)"
BEFORE = "u = Add(p, c) z = Add(u, m)" + END
AFTER = "u = Add(c, m) z = Add(p, u)" + END
#: pattern -> case -> (before, after)
MODELS = {
    "AttentionMaskSum": {
        "bias, then mask": (model(BEFORE), model(AFTER)),
        "scaled": (
            model("s0 = Mul(p, scale) " + BEFORE.replace("(p", "(s0")),
            model("s0 = Mul(p, scale) " + AFTER.replace("(p", "(s0")),
        ),
        "the other orders": (
            model("u = Add(c, p) z = Add(m, u)" + END),
            model(AFTER),
        ),
    }
}

test_rewrites = rewrite_tests(MODELS, atol=1e-6)


@pytest.mark.parametrize("is_infinite", [False, True])
def test_hidden(is_infinite: bool) -> None:
    """Rows that are entirely hidden, NaN included."""
    proto = model_from_text(model(BEFORE, mask="b, 1, s, t"))
    if is_infinite:
        (low,) = [i for i in proto.graph.initializer if i.name == "low"]
        low.CopyFrom(onnx.numpy_helper.from_array(np.float32(-np.inf), "low"))
    feeds = make_feeds(proto, {"b": 2, "n": 2, "s": 3, "t": 5})
    feeds["seen"][0, :, 1] = False
    check_pattern(proto, None, "AttentionMaskSum", feeds=[feeds], atol=1e-6)


def test_layers_share_the_sum() -> None:
    layer = "u{0} = Add(p, c) z{0} = Add(u{0}, m) y{0} = Softmax<axis = -1>(z{0}) "
    text = model(
        layer.format(1)
        + "p2 = Neg(p) p3 = MatMul(y1, k2) "
        + layer.format(2).replace("(p,", "(p3,")
        + "y = Identity(y2)"
    ).replace("float[b, n, 8, t] k,", "float[b, n, 8, t] k, float[b, n, t, t] k2,")
    found = check_pattern(
        text, None, "AttentionMaskSum,SameChildrenFromInput,SameChildren", atol=1e-5
    )
    sums = [n for n in found.graph.node if n.op_type == "Add" and set(n.input) == {"c", "m"}]
    assert len(sums) == 1


REFUSED = {
    "one mask": (model("z = Add(p, m)" + END), "no Add before"),
    "not a product": (
        model("r = Relu(p) " + BEFORE.replace("(p", "(r")), "there is one mask, or none",
    ),
    "another number": (model(BEFORE, low="-10000.0"), "no mask only hides scores"),
    "broader": (
        model(BEFORE, bias="1, n, s, t", mask="b, 1, 1, t").replace("float[b, n, 8, t] k", "float[1, n, 8, t] k")
        .replace("float[b, n, s, 8] q", "float[1, n, s, 8] q"),
        "a mask may be broader",
    ),
    "used elsewhere": (model(BEFORE, out=", float[b, n, s, t] u"), "an inner result is used elsewhere"),
    "three dimensions": (
        model(BEFORE).replace("b, n, ", "n, ").replace("1, n, s, t", "n, s, t").replace("b, 1, 1, t", "1, 1, t"),
        "the scores do not have four dimensions",
    ),
}  # fmt: skip

test_refuses = refusal_tests({"AttentionMaskSum": REFUSED})
