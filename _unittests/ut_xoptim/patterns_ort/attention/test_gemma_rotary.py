"""Rotary embeddings of queries and keys together."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns_ort.cuda_reference import check

from xoptim.testing import check_no_match

PATTERNS = "FunctionHalfRotaryEmbedding,ContribGemmaRotaryEmbedding"
TABLES = (
    "c0 = Cos(a) c1 = Cast<to = 10>(c0) c = Unsqueeze(c1, one) "
    "s0 = Sin(a) s1 = Cast<to = 10>(s0) s = Unsqueeze(s1, one) "
)


def turn(x: str, result: str) -> str:
    """x * cos + (-x2, x1) * sin."""
    return (
        f"{x}1, {x}2 = Split<axis = -1>({x}, halves) {x}n = Neg({x}2) "
        f"{x}t = Concat<axis = -1>({x}n, {x}1) {x}l = Mul({x}, c) {x}r = Mul({x}t, s) "
        f"{result} = Add({x}l, {x}r) "
    )


def model(
    body: str, a: str = "b, n, 4", q: str = "float16[b, 2, n, 4]", k: str = "b, 2, n, 4"
) -> str:
    """Angles, queries, keys."""
    return f"""g (float[{a}] a, {q} q, float16[{k}] k) => ({q} y, float16[{k}] z) <
        int64[1] one = {{1}}, int64[1] zero = {{0}}, int64[2] halves = {{2, 2}}> {{ {body} }}"""


TURNED = "{0}1, {0}2 = Split<axis = -1>({0}, halves) {0}n = Neg({0}2) {0}t = Concat<axis = -1>({0}n, {0}1) "
#: what the documentation draws: name -> (before, after)
MODELS = {
    "ContribGemmaRotaryEmbedding": (
        model(TABLES + turn("q", "y") + turn("k", "z")),
        model(
            TURNED.format("q") + TURNED.format("k")
            + "y, z = com.microsoft.GemmaRotaryEmbedding(a, q, qt, k, kt)"
        ),
    )
}  # fmt: skip
SIZES = ({"b": 2, "n": 3}, {"b": 1, "n": 1})


def test_queries_and_keys() -> None:
    check(*MODELS["ContribGemmaRotaryEmbedding"], PATTERNS, SIZES)


def test_cast_last() -> None:
    """The cosines are cast after they get the dimension of the heads."""
    tables = (
        "c0 = Cos(a) c1 = Unsqueeze(c0, one) c = Cast<to = 10>(c1) "
        "s0 = Sin(a) s1 = Unsqueeze(s0, one) s = Cast<to = 10>(s1) "
    )
    before = model(tables + turn("q", "y") + turn("k", "z"))
    check(before, MODELS["ContribGemmaRotaryEmbedding"][1], PATTERNS, SIZES)


CALL = "{} = intermediate.HalfRotaryEmbedding({}, c, s) "
CALLS = TABLES + CALL.format("y", "q") + CALL.format("z", "k")
REFUSED = {
    "float": (model(CALLS, q="float[b, 2, n, 4]"), "no GemmaRotaryEmbedding for this type"),
    "one position for all": (model(CALLS, a="1, n, 4"), "for each element of the batch"),
    "three dimensions": (model(CALLS, k="b, n, 4"), "for each element of the batch"),
    "shared heads": (model(CALLS, k="b, 1, n, 4"), "may not have the same shape"),
    "alone": (model(TABLES + CALL.format("y", "q") + "z = Neg(k)"), "not those of two calls"),
    "three calls": (
        model(CALLS + CALL.format("w", "k")).replace(" z)", " z, float16[b, 1, n, 4] w)"),
        "not those of two calls",
    ),
    "angles of something else": (
        model(CALLS.replace("Sin(a)", "Sin(a2)").replace("s0 =", "a2 = Neg(a) s0 =")),
        "are not those of one result",
    ),
    "exchanged": (model(CALLS.replace("Cos", "X").replace("Sin", "Cos").replace("X", "Sin")), "no Cos"),
    "another dimension": (
        model(CALLS.replace("(c1, one)", "(c1, zero)")), "the heads are not the second dimension",
    ),
    "computed in float16": (
        model(CALLS.replace("c1 = Cast<to = 10>(c0) c = Unsqueeze(c1, one)",
                            "c1 = Unsqueeze(c0, one) c = Unsqueeze(c1, one)")),
        "the cosines are not cast",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    text, reason = REFUSED[case]
    check_no_match(text, "ContribGemmaRotaryEmbedding", reason, processor="CUDA")


def test_on_cpu() -> None:
    reason = "no GemmaRotaryEmbedding for this type"
    check_no_match(model(CALLS), "ContribGemmaRotaryEmbedding", reason, processor="CPU")
