"""Where the scale of the scores goes: through rotary embeddings, parts of heads, normalizations."""

from __future__ import annotations

from typing import Any

import onnx.helper as oh
import pytest
from onnx import TensorProto

from xoptim.testing import check_no_match, check_pattern, make_feeds, model_from_text

NAME = "ScaledScores"
P = "perm = [0, 2, 1, 3]"
LINEAR = "m = MatMul(x, w) l = Add(m, b) "
SCALED = LINEAR + "d = Mul(l, c) "
WIDE = "m = MatMul(x, w3) l = Add(m, b3) "
SCORES = "s = MatMul(q, k) y = Mul(s, c)"
PLAIN = "y = MatMul(q, k)"
ANGLES = ", float[2, s, 1] cos, float[2, s, 1] sin"


def model(body: str, more: str = "", inputs: str = ANGLES, heads: str = "2, 2") -> str:
    """Queries that are computed from a sequence, the keys are given."""
    count = heads[0]
    return f"""g (float[2, s, 2] x, float[2, {heads}, t] k{inputs}) => (float[2, {count}, s, t] y{more}) <
        float[2, 4] w = {{1, 2, 3, 4, 5, 6, 7, 8}}, float[4] b = {{1, -1, 2, 3}},
        float[2, 12] w3 = {{1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 2, 5, 4, 6, 5, 8, 7, 2, 1, 4, 3, 6, 5, 8}},
        float[12] b3 = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}},
        float[12] c12 = {{0.5, 0.5, 1, 1, 1, 1, 0.5, 0.5, 1, 1, 1, 1}},
        float[12] c6 = {{0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1, 1, 1, 1, 1}},
        int64[4] two = {{0, 0, 2, 2}}, int64[4] one = {{0, 0, 1, 4}}, int64[4] beside = {{0, 0, 2, 6}},
        int64[5] groups = {{0, 0, 1, 6, 2}}, int64[4] again = {{0, 0, 2, 2}}, int64[2] pairs = {{2, 2}},
        int64[3] thirds = {{2, 2, 2}}, int64[2] twice = {{2, 4}}, int64[4] rows = {{0, -1, 2, 2}},
        float[2] n = {{1, -3}}, float[2] e = {{0.5, 2}}, float[2] n2 = {{0.5, -1.5}}, float[2] e2 = {{0.25, 1}},
        float c = {{0.5}}
    > {{ {body} }}"""


def turned(x: str) -> str:
    return f"h = Reshape({x}, two) q0 = Transpose<{P}>(h) q = RotaryEmbedding(q0, cos, sin) "


def turned_first(x: str) -> str:
    """Before the heads are moved."""
    return (
        f"r = RotaryEmbedding<num_heads = 2, interleaved = 1>({x}, cos, sin) h = Reshape(r, two) "
        f"q = Transpose<{P}>(h) "
    )


def half_turned(x: str) -> str:
    """The beginning of the heads only."""
    return (
        f"h = Reshape({x}, one) q0 = Transpose<{P}>(h) u, v = Split<axis = 3>(q0, pairs) "
        "ut = RotaryEmbedding(u, cos, sin) q = Concat<axis = -1>(ut, v) "
    )


def beside(x: str) -> str:
    """Queries, keys and values of a head are beside each other."""
    return (
        f"h = Reshape({x}, beside) p = Transpose<{P}>(h) q0, u, v = Split<axis = 3>(p, thirds) "
        "q = RotaryEmbedding(q0, cos, sin) z = Add(u, v) "
    )


def grouped(x: str) -> str:
    """Heads of queries, then those of keys and values: rows of columns."""
    return (
        f"h = Reshape({x}, groups) q0, z = Split<axis = 3>(h, twice) h2 = Reshape(q0, again) "
        f"q = Transpose<{P}>(h2) "
    )


NORM = "q = LayerNormalization({}) "
X4 = ", float[2, 2, s, 2] x4"
Z = ", float[2, 2, s, 2] z"
Z5 = ", float[2, s, 1, 4, 2] z"
#: case -> (before, after, options of the model)
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "turned": (LINEAR + turned("l"), SCALED + turned("d"), {}),
    "turned before they are moved": (LINEAR + turned_first("l"), SCALED + turned_first("d"), {}),
    "half turned": (LINEAR + half_turned("l"), SCALED + half_turned("d"), {"heads": "1, 4"}),
    "heads beside each other": (
        WIDE + beside("l"), WIDE + "d = Mul(l, c12) " + beside("d"), {"more": Z},
    ),
    "groups": (WIDE + grouped("l"), WIDE + "d = Mul(l, c6) " + grouped("d"), {"more": Z5}),
    "a normalization": (
        NORM.format("x4, n, e"), NORM.format("x4, n2, e2"), {"inputs": X4},
    ),
    "no bias": (NORM.format("x4, n"), NORM.format("x4, n2"), {"inputs": X4}),
    "a factor": ("q = Mul(n, x4) ", "q = Mul(x4, n2) ", {"inputs": X4}),
    "negative": ("q0 = Mul(n, x4) q = Neg(q0) ", "q0 = Mul(x4, n2) q = Neg(q0) ", {"inputs": X4}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_goes_back(name: str) -> None:
    """To the constants, for empty sequences as well; the names of what is multiplied are new."""
    before, after, options = CASES[name]
    proto = model_from_text(model(before + SCORES, **options), 23)
    feeds = [make_feeds(proto, {"s": steps, "t": 3}) for steps in (0, 1, 5)]
    expected = model(after + PLAIN, **options)
    found = check_pattern(proto, expected, NAME, feeds=feeds, opset=23, atol=1e-4, rtol=1e-5)
    names = {name for node in found.graph.node for name in node.output}
    assert not names & {"l", "h", "h2", "p", "q", "q0", "r", "s", "ut"}
    assert names >= {"u", "v"} or "u, v" not in before or name == "half turned"


NOTHING = "nothing takes the scale"
ELSEWHERE = "an inner result is used elsewhere"
REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "what is turned is read elsewhere": (
        LINEAR + turned("l") + "z = Neg(q0) ", ELSEWHERE, {"more": Z},
    ),
    "the angles are the queries": (
        LINEAR + "h = Reshape(l, two) q0 = Transpose<perm = [0, 2, 1, 3]>(h) "
        "q = RotaryEmbedding(a0, cos, sin) z = Neg(q0) ", NOTHING, {"more": Z, "inputs": ANGLES + X4.replace("x4", "a0")},
    ),
    "one side of Concat is not scaled": (
        LINEAR + "h = Reshape(l, two) q0 = Transpose<perm = [0, 2, 1, 3]>(h) u, v = Split<axis = 3, num_outputs = 2>(q0) "
        "q = Concat<axis = 3>(u, g1) z = Neg(v) ", NOTHING,
        {"more": ", float[2, 2, s, 1] z", "inputs": ", float[2, 2, s, 1] g1"},
    ),
    "columns are read elsewhere": (
        WIDE + beside("l") + "z2 = Neg(p) ", ELSEWHERE, {"more": Z + ", float[2, 2, s, 6] z2"},
    ),
    "the scale is not constant": (
        NORM.format("x4, n4"), "the scale or the bias is not a small constant",
        {"inputs": X4 + ", float[2] n4"},
    ),
    "nothing is constant": ("q = Mul(n4, x4) ", NOTHING, {"inputs": X4 + ", float[2] n4"}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    body, reason, options = REFUSED[name]
    check_no_match(model(body + SCORES, **options), NAME, reason, opset=23)


@pytest.mark.parametrize("body", ["q0 = Mul(n, x4) q = custom.Neg(q0) ", "q = custom.Mul(n, x4) "])
def test_operators_of_other_domains(body: str) -> None:
    """They may do anything."""
    given = model_from_text(model(body + SCORES, inputs=X4), 23)
    given.opset_import.add(domain="custom", version=1)
    given.graph.value_info.append(oh.make_tensor_value_info("q", TensorProto.FLOAT, [2, 2, "s", 2]))
    check_no_match(given, NAME, NOTHING)


def test_rows() -> None:
    """The parts are not those of each row of the product."""
    body = (
        WIDE
        + f"h = Reshape(l, rows) p = Transpose<{P}>(h) q, u = Split<axis = 3, num_outputs = 2>(p) "
    )
    text = model(body + "z = Neg(u) " + SCORES, ", float[2, 2, r, 1] z", heads="2, 1")
    reason = "the Reshape does not keep the columns"
    check_no_match(text.replace("2, s, t] y", "2, r, t] y"), NAME, reason, opset=23)


def test_heads() -> None:
    """Some heads, not some columns."""
    body = (
        LINEAR
        + f"h = Reshape(l, two) p = Transpose<{P}>(h) q, u = Split<axis = 1, num_outputs = 2>(p) "
    )
    text = model(body + "z = Neg(u) " + SCORES, ", float[2, 1, s, 2] z", heads="1, 2")
    check_no_match(text, NAME, "the length of a part is not known", opset=23)
    check_no_match(text.replace(" s, ", " 5, "), NAME, "the parts are not columns", opset=23)
