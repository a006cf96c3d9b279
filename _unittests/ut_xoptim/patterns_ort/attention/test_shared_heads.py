"""Products of heads that several queries share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xoptim.patterns_ort.attention.attention_texts import REPEAT

from xoptim.testing import check_pattern, make_feeds, model_from_text, refusal_tests, rewrite_tests

NAME = "SharedHeadsMatMul"
TURNED = "kt = Transpose<perm = [0, 1, 3, 2]>(rK) "
KEYS = REPEAT.format("K") + TURNED
PRODUCT = "y = MatMul(Q, kt)"
FUSED = "y = com.microsoft.FusedMatMul<alpha = 0.5, transB = 1>(Q, rK)"
GEMMA = (
    KEYS + REPEAT.format("V") + "m = MatMul(Q, kt) t = Tanh(m) s = Mul(t, cap) "
    "w = Softmax<axis = -1>(s) y = MatMul(w, rV)"
)


def model(
    body: str,
    q: str = "2, 4, 3, 8",
    k: str = "2, 2, 5, 8",
    out: str = "2, 4, 3, 5",
    kind: str = "float",
    spread: str = "1, 1, 2, 1, 1",
    four: str = "0, 4, -1, 8",
    more: str = "",
    outputs: str = "",
) -> str:
    """Heads that are repeated; *more* are other constants."""
    return f"""agraph ({kind}[{q}] Q, {kind}[{k}] K, {kind}[{k}] V) => ({kind}[{out}] y{outputs}) <
    int64[1] two = {{2}}, int64[5] spread = {{{spread}}}, int64[4] four = {{{four}}}, {kind} cap = {{50}}{more}
> {{ {body} }}"""


KNOWN = model(
    "q = Reshape(Q, joined) t = Transpose<perm = [0, 1, 3, 2]>(K) m = MatMul(q, t) y = Reshape(m, split)",
    more=", int64[4] joined = {0, 2, 6, 0}, int64[4] split = {0, 4, 3, 0}",
)
UNKNOWN = model(
    """size = Shape<start = 2, end = 3>(Q) rows = Mul(size, two) joined = Concat<axis = 0>(few, rows, zero)
    q = Reshape(Q, joined) m = com.microsoft.FusedMatMul<alpha = 0.5, transB = 1>(q, K)
    split = Concat<axis = 0>(many, size, zero) y = Reshape(m, split)""",
    "b, 4, s, 8", "b, 2, t, 8", "b, 4, s, t",
    more=", int64[2] few = {0, 2}, int64[2] many = {0, 4}, int64[1] zero = {0}",
)  # fmt: skip
SIZES = [{"b": b, "s": s, "t": t} for b, s, t in [(2, 3, 5), (1, 1, 40), (3, 7, 1)]]
NULL = [{"b": b, "s": s, "t": t} for b, s, t in [(0, 3, 5), (2, 0, 5)]]
DYNAMIC = ("b, 4, s, 8", "b, 2, t, 8")
#: pattern -> case -> (before, after)
MODELS: dict[str, dict[str, Any]] = {
    NAME: {
        "keys": (model(KEYS + PRODUCT), KNOWN),
        "keys, fused": (
            model(REPEAT.format("K") + FUSED, *DYNAMIC, "b, 4, s, t"), UNKNOWN, {"sizes": SIZES},
        ),
        "values": (model(REPEAT.format("V") + "y = MatMul(Q, rV)", "2, 4, 3, 5", out="2, 4, 3, 8"), None),
        "scores are bounded": (model(GEMMA, *DYNAMIC, "b, 4, s, 8"), None, {"sizes": SIZES}),
        "float16": (model(KEYS + PRODUCT, kind="float16"), None, {"atol": 1e-2, "rtol": 1e-2}),
        "one head": (
            model(KEYS + PRODUCT, k="2, 1, 5, 8", spread="1, 1, 4, 1, 1"), None,
        ),
        "repeated heads are read elsewhere": (
            model(KEYS + PRODUCT + " z = Identity(rK)", outputs=", float[2, 4, 5, 8] z"), None,
        ),
    }
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_values_that_are_not_finite(value: float) -> None:
    """They stay in their row."""
    proto = model_from_text(model(GEMMA, out="2, 4, 3, 8"))
    feeds = make_feeds(proto, {})
    feeds["Q"][0, 1, 2, 0] = feeds["K"][1, 1, 0, 3] = value
    found = check_pattern(proto, None, NAME, feeds=[feeds], atol=1e-5, rtol=1e-5)
    assert "Expand" not in {n.op_type for n in found.graph.node}


def test_nothing() -> None:
    """No sequence, or no query: the reshapes do not guess."""
    four = "h = Shape(K) b1 = Shape<start = 0, end = 1>(K) t1 = Shape<start = 2, end = 3>(K) "
    repeat = REPEAT.format("K").replace(
        "rK = Reshape(eK, four)",
        four + "f = Concat<axis = 0>(b1, heads, t1, length) rK = Reshape<allowzero = 1>(eK, f)",
    )
    more = ", int64[1] heads = {4}, int64[1] length = {8}"
    body = repeat + TURNED + PRODUCT
    proto = model(body, *DYNAMIC, "b, 4, s, t", more=more)
    check_pattern(proto, None, NAME, sizes=[*SIZES, *NULL], atol=1e-5, rtol=1e-5)


REFUSED = {
    "not repeated": (model("y = MatMul(Q, K)", k="2, 4, 8, 5"), "heads are not repeated"),
    "each after the others": (
        model("u = Unsqueeze(K, one) e = Expand(u, spread) rK = Reshape(e, four) " + FUSED,
              spread="1, 2, 1, 1, 1", more=", int64[1] one = {1}"),
        "heads are not repeated",
    ),
    "another batch": (
        model(KEYS + PRODUCT, "1, 4, 3, 8"), "the products are not those of the same heads",
    ),
    "one head is read by all": (
        model(KEYS + PRODUCT, "2, 1, 3, 8"), "the products are not those of the same heads",
    ),
    "no batch": (model(KEYS + PRODUCT, "4, 3, 8"), "the products are not those of the same heads"),
    "the other operand is transposed": (
        model(REPEAT.format("K") + "y = com.microsoft.FusedMatMul<transA = 1, transB = 1>(Q, rK)", "2, 4, 8, 3"),
        "another dimension is transposed",
    ),
    "an old opset": (model(KEYS + PRODUCT), "", {"opset": 14}),
}  # fmt: skip

test_refuses = refusal_tests({NAME: REFUSED})
