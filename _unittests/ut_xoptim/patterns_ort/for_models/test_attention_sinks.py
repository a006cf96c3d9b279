"""Attention with one more score for each head, whose weight is lost."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xoptim.patterns_ort.attention.attention_texts import BIAS, KEYS, REPEAT, SCORES, attention

from xoptim.testing import check_pattern, make_feeds, model_from_text, refusal_tests, rewrite_tests

NAME = "AttentionSinks"
EXPANDED = "e = Expand(sinks, column) "
WEIGHTS = "h = Concat<axis = 3>(z, e) w0 = Softmax<axis = -1>(h) w = Slice(w0, first, end, three) "
VALUES = "y = MatMul(w, V)"
BODY = KEYS + SCORES + BIAS + EXPANDED + WEIGHTS + VALUES
SHARED = (
    REPEAT.format("K") + REPEAT.format("V") + BODY.replace("(K)", "(rK)").replace("(w, V)", "(w, rV)")
)  # fmt: skip


def model(
    body: str,
    batch: int | str = 2,
    steps: int | str = 3,
    past: int = 0,
    keys: int = 4,
    masked: bool = True,
) -> str:
    """An attention; as many keys as queries, and those of the steps before."""
    total = steps + past if isinstance(steps, int) else steps
    mask = [f"float[{batch}, 1, {steps}, {total}] c"] if masked else []
    mask += [f"float[{batch}, {keys}, {past}, 8] {n}" for n in "PO" if past]
    outputs = "".join(f", float[{batch}, {keys}, {total}, 8] {n}" for n in "JL") if past else ""
    shapes = ";".join(f"{batch}, {n}, {steps}, 8" for n in (4, keys, keys))
    text = attention(body, shapes, ", ".join(mask), f"{batch}, 4, {steps}, 8", outputs)
    column = (
        f"int64[4] column = {{{batch}, 4, {steps}, 1}}, "
        if isinstance(batch, int) and isinstance(steps, int)
        else "int64[4] column = {1, 4, 1, 1}, "
    )
    more = (
        "float[1, 4, 1, 1] sinks = {0.5, -1, 2, 0}, int64[1] first = {0}, int64[1] end = {-1}, "
        "int64[1] three = {3}, " + column
    )
    return text.replace("{0, 4, -1, 6}", "{0, 4, -1, 8}").replace(
        "float scale", more + "float scale"
    )


CACHE = "J = Concat<axis = 2>(P, K) L = Concat<axis = 2>(O, V) " + SHARED.replace(
    "Unsqueeze(K", "Unsqueeze(J"
).replace("Unsqueeze(V", "Unsqueeze(L")
MOVE = "{0}m = Transpose<perm = [0, 2, 1, 3]>({0}) {1} = Reshape({0}m, {2}) "
WRITTEN = attention(
    MOVE.format("Q", "q", "flat") + MOVE.format("K", "k", "half") + MOVE.format("V", "v", "half")
    + "r = com.microsoft.GroupQueryAttention<causal = 0, kv_num_heads = 2, num_heads = 4, "
    "scale = 0.25>(q, k, v, , , lasts, total, , , , c, sinks) r4 = Reshape(r, heads) "
    "y = Transpose<perm = [0, 2, 1, 3]>(r4)",
    "2, 4, 3, 8;2, 2, 3, 8;2, 2, 3, 8", "float[2, 1, 3, 3] c", "2, 4, 3, 8",
).replace(
    "{0, 0, 4, 6}",
    "{0, 0, 4, 8}, int64[3] half = {0, 0, 16}, int32[2] lasts = {2, 2}, int32 total = {3}, "
    "float[4] sinks = {0.5, -1, 2, 0}",
)  # fmt: skip
PLAIN = (KEYS + SCORES + EXPANDED + WEIGHTS + VALUES).replace("(z, e)", "(s, e)")
#: pattern -> case -> (before, after)
MODELS = {
    NAME: {
        "heads are shared": (model(SHARED, keys=2), WRITTEN),
        "heads are not shared": (model(BODY), None),
        "no mask": (model(PLAIN, masked=False), None),
        "the past": (model(CACHE, 1, 3, 5, 2), None),
        "one step": (model(CACHE, 3, 1, 5, 2), None),
        "a known column": (
            model(BODY.replace(EXPANDED, "").replace("(z, e)", "(z, sinks)"), 1, 1), None,
        ),
    }
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("low", [-np.inf, np.finfo(np.float32).min, -1e4, np.nan, np.inf])
@pytest.mark.parametrize("case", ["heads are shared", "the past", "one step"])
def test_masks(case: str, low: float) -> None:
    """The first query sees nothing but the sink."""
    proto = model_from_text(MODELS[NAME][case][0])
    feeds = make_feeds(proto, {})
    feeds["c"][:1, :, 0] = low
    found = check_pattern(proto, None, NAME, feeds=[feeds], atol=1e-5, rtol=1e-5)
    assert "GroupQueryAttention" in {n.op_type for n in found.graph.node}


CUT = "the Slice does not take the weights of the keys"
REFUSED = {
    "an unknown batch": (model(BODY, "b").replace("{1, 4, 1, 1}", "{1, 4, 3, 1}"), "there may be no query"),
    "the first columns": (model(BODY).replace("{-1}", "{-2}"), CUT),
    "the last ones": (model(BODY).replace("first = {0}", "first = {1}").replace("end = {-1}", "end = {9}"), CUT),
    "sinks first": (model(BODY.replace("(z, e)", "(e, z)")), CUT),
    "another sink for each query": (
        model(BODY.replace("(z, e)", "(z, q)").replace(EXPANDED, ""), 1).replace(
            "float[1, 4, 1, 1] sinks = {0.5, -1, 2, 0}",
            "float[1, 4, 3, 1] q = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}",
        ),
        "a sink is not the same number for each query",
    ),
    "another operand": (
        model(BODY.replace("MatMul(w, V)", "MatMul(V, w)"), steps=8), "the weights are not the left operand",
    ),
    "negative": (model(BODY).replace("{0.25}", "{-0.25}"), "the scale is not a positive number"),
    "several queries of several sequences": (
        model(CACHE, 2, 3, 5, 2), "a cache is read for one sequence or one query",
    ),
}  # fmt: skip

test_refuses = refusal_tests({NAME: REFUSED})
