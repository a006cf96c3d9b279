"""Attention of three dimensions: heads are in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xoptim.testing import check_pattern, make_feeds, model_from_text, refusal_tests, rewrite_tests

NAME = "HeadsOfBatch"
#: sizes of the shapes: batch * heads, heads, sequences
SIZES = """b = Shape<start = 0, end = 1>(Q) s = Shape<start = 2, end = 3>(Q) t = Shape<start = 2, end = 3>(K)
    n = Mul(b, four) fq = Concat<axis = 0>(n, s, eight) fk = Concat<axis = 0>(n, t, eight)
    fs = Concat<axis = 0>(b, four, s, t) fy = Concat<axis = 0>(b, four, s, eight) """
HEADS = "q = Reshape<allowzero = 1>(Q, fq) k = Reshape<allowzero = 1>(K, fk) "
VALUES = "v = Reshape<allowzero = 1>(V, fk) p = MatMul(w, v) y = Reshape<allowzero = 1>(p, fy)"
SCORES = "kt = Transpose<perm = [0, 2, 1]>(k) m = MatMul(q, kt) z = Mul(m, half) "
WEIGHTS = "w = Softmax<axis = -1>(z) "
SPLIT = "y = Reshape<allowzero = 1>(z, fs)"
ALL = SIZES + HEADS + SCORES + WEIGHTS + VALUES
MASK = """fm = Concat<axis = 0>(n, s, t) c4 = Reshape<allowzero = 1>(z0, fs) c5 = Add(c4, c)
    z = Reshape<allowzero = 1>(c5, fm) """


def model(
    body: str,
    inputs: str = "",
    out: str = "b, 4, s, 8",
    more: str = "",
    dims: str = "b, 4, s, 8;b, 4, t, 8",
) -> str:
    """Heads of queries, keys and values; *more* are other outputs."""
    q, k = dims.split(";")
    return f"""agraph (float[{q}] Q, float[{k}] K, float[{k}] V{inputs}) => (float[{out}] y{more}) <
    int64[1] four = {{4}}, int64[1] eight = {{8}}, float half = {{0.5}}, float[2] pair = {{1, 2}}
> {{ {body} }}"""


def scores(body: str, inputs: str = "", more: str = "") -> str:
    """Scores that get four dimensions."""
    return model(body, inputs, "b, 4, s, t", more)


REPEATED = "a = Concat<axis = 0>(x, x, x, x) "
TURNED = "kt = Transpose<perm = [0, 1, 3, 2]>(K) m = MatMul(Q, kt) "
ATTENTION = model(TURNED + "z = Mul(m, half) w = Softmax<axis = 3>(z) y = MatMul(w, V)")
ALIBI_BEFORE = scores(
    SIZES + HEADS + SCORES.replace("z =", "z0 =") + REPEATED + "z = Add(z0, a) " + SPLIT,
    ", float[b, 1, t] x",
)
ALIBI = scores(
    TURNED + REPEATED + """l = Shape<end = 2>(Q) r = Shape<start = 1>(a) f = Concat<axis = 0>(l, r)
    a4 = Reshape<allowzero = 1>(a, f) z = Mul(m, half) y = Add(z, a4)""",
    ", float[b, 1, t] x",
)  # fmt: skip
STATIC = """agraph (float[2, 4, 3, 8] Q, float[2, 4, 8, 5] K, float[8, 3, 5] a) => (float[2, 4, 3, 5] y) <
    int64[3] fq = {8, 3, 8}, int64[3] fk = {8, 8, 5}, int64[4] fs = {2, 4, 3, 5}
> { q = Reshape(Q, fq) k = Reshape(K, fk) m = MatMul(q, k) z = Sub(a, m) y = Reshape(z, fs) }"""
STATIC_AFTER = """agraph (float[2, 4, 3, 8] Q, float[2, 4, 8, 5] K, float[8, 3, 5] a) => (float[2, 4, 3, 5] y) <
    int64[4] fs = {2, 4, 3, 5}
> { m = MatMul(Q, K) r = Reshape(a, fs) y = Sub(r, m) }"""


def added(bias: str, op: str = "Add(z0, a)") -> str:
    """Scores and something that is added."""
    body = SIZES + HEADS + SCORES.replace("z =", "z0 =") + f"z = {op} " + SPLIT
    return scores(body, f", float{bias} a")


TABLE = {
    "sizes": [{"b": b, "s": s, "t": t} for b, s, t in [(2, 3, 5), (1, 1, 7), (0, 3, 5), (2, 0, 5)]]
}
#: pattern -> case -> (before, after)
MODELS: dict[str, dict[str, Any]] = {
    NAME: {
        "no mask": (model(ALL), ATTENTION, TABLE),
        "a bias of the batch": (ALIBI_BEFORE, ALIBI, TABLE),
        "known sizes": (STATIC, STATIC_AFTER),
        "a mask of four dimensions": (
            model(SIZES + HEADS + SCORES.replace("z =", "z0 =") + MASK + WEIGHTS + VALUES,
                  ", float[b, 1, s, t] c"),
            None, TABLE,
        ),
        "a bias of every head": (added("[1, s, t]"), None, TABLE),
        "a bias of every sequence": (added("[s, t]"), None, TABLE),
        "a number": (added("", "Sub(a, z0)"), None, TABLE),
        "divided": (model(ALL.replace("Mul(m, half)", "Div(m, half)")), None, TABLE),
        "lengths that are null copy a dimension": (
            model(ALL.replace("<allowzero = 1>", "")), None, {**TABLE, "sizes": TABLE["sizes"][:3]},
        ),
        "keys are read elsewhere": (
            model(ALL + " K2 = Identity(k)", more=", float[n, t, 8] K2"), None, TABLE,
        ),
    }
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value: float) -> None:
    proto = model_from_text(model(ALL))
    feeds = make_feeds(proto, {"b": 2, "s": 3, "t": 5})
    feeds["Q"][0, 1, 2, 0] = feeds["V"][1, 3, 0, 3] = value
    check_pattern(proto, None, NAME, feeds=[feeds])


def test_attention_is_found() -> None:
    """The attention is found, which is the purpose of the rewrite."""
    options = {"opset": 23, "atol": 1e-5, "rtol": 1e-5}
    found = check_pattern(model(ALL), None, "default+onnxruntime", **options)
    assert [n.op_type for n in found.graph.node] == ["Attention"]


#: sequences of known length, whose heads are in the batch (XGLM, OPT)
SEQUENCES = """agraph (float[2, 3, 32] Q, float[2, 3, 32] K, float[2, 3, 32] V) => (float[2, 3, 32] y) <
    int64[4] f4 = {2, 3, 4, 8}, int64[3] f3 = {8, 3, 8}, int64[3] f3s = {8, 3, 3},
    int64[4] fs = {2, 4, 3, 3}, int64[4] fy = {2, 4, 3, 8}, int64[3] f = {2, 3, 32}
> {
    Q1 = Reshape(Q, f4) Q2 = Transpose<perm = [0, 2, 1, 3]>(Q1) q = Reshape(Q2, f3)
    K1 = Reshape(K, f4) K2 = Transpose<perm = [0, 2, 1, 3]>(K1) k = Reshape(K2, f3)
    V1 = Reshape(V, f4) V2 = Transpose<perm = [0, 2, 1, 3]>(V1) v = Reshape(V2, f3)
    kt = Transpose<perm = [0, 2, 1]>(k) m = MatMul(q, kt) m4 = Reshape(m, fs)
    w4 = Softmax<axis = -1>(m4) w = Reshape(w4, f3s) p = MatMul(w, v) p4 = Reshape(p, fy)
    y3 = Transpose<perm = [0, 2, 1, 3]>(p4) y = Reshape(y3, f)
}"""


def test_heads_of_sequences_are_not_merged() -> None:
    """No Reshape makes rows of the heads, whatever moves the keys."""
    found = check_pattern(SEQUENCES, None, "default", atol=1e-5, rtol=1e-5)
    assert [n.op_type for n in found.graph.node].count("Reshape") == 4


NOT_HEADS = "it is not computed from heads"
NO_BATCH = "it does not make heads of a batch"
REFUSED = {
    "scores are read elsewhere": (
        model(ALL + " x = Identity(m)", more=", float[n, s, t] x"), NOT_HEADS,
    ),
    "weights are read elsewhere": (
        model(ALL + " x = Identity(w)", more=", float[n, s, t] x"), NOT_HEADS,
    ),
    "another axis": (model(ALL.replace("Softmax<axis = -1>", "Softmax<axis = 1>")), NOT_HEADS),
    "a factor that is not a constant": (
        model(ALL.replace("Mul(m, half)", "Mul(m, h)"), ", float h"), NOT_HEADS,
    ),
    "divides": (model(ALL.replace("Mul(m, half)", "Div(half, m)")), NOT_HEADS),
    "the batch is moved": (
        model(ALL.replace("v = Reshape<allowzero = 1>(V, fk)",
                          "v0 = Reshape<allowzero = 1>(V, fk) v = Transpose<perm = [1, 0, 2]>(v0)")
              .replace("b, 4, t", "b, 4, 4*b")),
        NOT_HEADS,
    ),
    "one operand has no heads": (
        model(SIZES + "q = Reshape<allowzero = 1>(Q, fq) p = MatMul(q, W) y = Reshape<allowzero = 1>(p, fy)",
              ", float[8, 8] W"),
        NOT_HEADS,
    ),
    "the same head for each sequence": (
        model(SIZES + HEADS + "kt = Transpose<perm = [0, 2, 1]>(x) p = MatMul(q, kt) y = Reshape<allowzero = 1>(p, fs)",
              ", float[1, t, 8] x", "b, 4, s, t"),
        NOT_HEADS,
    ),
    "an unknown batch is added": (added("[u, s, t]"), ""),
    "lengths change": (
        model(SIZES + HEADS + SCORES + "f0 = Concat<axis = 0>(b, four, t, s) y = Reshape<allowzero = 1>(z, f0)",
              out="b, 4, t, s"),
        NO_BATCH,
    ),
    "one operand": (
        model(SIZES + "q = Reshape<allowzero = 1>(Q, fq) p = Mul(q, half) y = Reshape<allowzero = 1>(p, fy)"),
        "there are not two operands made of heads",
    ),
    "an old opset": (STATIC, "", {"opset": 14}),
}  # fmt: skip

test_refuses = refusal_tests({NAME: REFUSED})
