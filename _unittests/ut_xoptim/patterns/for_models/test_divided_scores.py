"""Scores that are divided after their mask is added."""

from __future__ import annotations

from typing import Any

import numpy as np

from xoptim.testing import check_pattern, make_feeds, model_from_text, refusal_tests, rewrite_tests

NAME = "DividedScores"
WHERE = "m = Where(seen, zero, low) "
BODY = "s = MatMul(q, k) t = Add(s, m) d = Div(t, c) y = Softmax<axis = -1>(d)"
AFTER = "s = MatMul(q, k) e = Div(s, c) t = Add(e, n) y = Softmax<axis = -1>(t)"
SEEN = ", bool[b, 1, s, t] seen"


def model(body: str, inputs: str = SEEN, more: str = "", scale: str = "8") -> str:
    """A mask that is chosen or given."""
    return f"""g (float[b, 2, s, 4] q, float[b, 2, 4, t] k{inputs}) => (float[b, 2, s, t] y{more}) <
        float c = {{{scale}}}, float zero = {{0}}, float low = {{-3.4028235e38}},
        float low8 = {{-4.2535293e37}}, float[2, 1, 1] c2 = {{8, 4}}
    > {{ {body} }}"""


#: pattern -> case -> (before, after)
MODELS: dict[str, dict[str, Any]] = {
    NAME: {
        "a condition": (
            model(WHERE + BODY),
            model("n = Where(seen, zero, low8) " + AFTER),
        ),
        "a mask that is given": (
            model(BODY, ", float[b, 1, s, t] m"),
            model("n = Div(m, c) " + AFTER, ", float[b, 1, s, t] m"),
        ),
        "on the left, no head": (
            model(BODY.replace("(s, m)", "(m, s)"), ", float[s, t] m"),
            model("n = Div(m, c) " + AFTER, ", float[s, t] m"),
        ),
        "negative": (model(WHERE + BODY, scale="-3"), None),
    }
}

test_rewrites = rewrite_tests(MODELS, atol=1e-6, rtol=1e-5)


def test_hidden() -> None:
    """Rows that are hidden as a whole get the same weights, infinities give NaN."""
    proto = model_from_text(model(WHERE + BODY))
    feeds = []
    for steps, total in ((1, 1), (3, 5), (0, 2), (2, 0)):
        feed = make_feeds(proto, {"b": 2, "s": steps, "t": total})
        feed["seen"] = np.random.default_rng(0).random(feed["seen"].shape) < 0.5
        feed["seen"][:, :, :1] = False
        feeds.append(feed)
    check_pattern(proto, None, NAME, feeds=feeds, atol=1e-6, rtol=1e-5)
    given = model_from_text(model(BODY, ", float[b, 1, s, t] m"))
    feed = make_feeds(given, {"b": 1, "s": 4, "t": 4})
    feed["m"] = np.where(np.tri(4, k=-1, dtype=bool), 0, -np.inf).astype(np.float32)[None, None]
    check_pattern(given, None, NAME, feeds=[feed], atol=1e-6, rtol=1e-5)


REFUSED = {
    "the sum is read elsewhere": (
        model(WHERE + BODY + " z = Neg(t)", more=", float[b, 2, s, t] z"), "the sum is used elsewhere",
    ),
    "several numbers": (
        model(WHERE + BODY.replace("(t, c)", "(t, c2)")), "it is not divided by one constant number",
    ),
    "a divisor that is given": (
        model(WHERE + BODY.replace("(t, c)", "(t, g)"), SEEN + ", float g"),
        "it is not divided by one constant number",
    ),
    "less than 1": (model(WHERE + BODY, scale="0.5"), "the mask may become infinite"),
    "zero": (model(WHERE + BODY, scale="0"), "the mask may become infinite"),
    "no product": (
        model(WHERE + BODY.replace("MatMul(q, k)", "Neg(p)"), SEEN + ", float[b, 2, s, t] p"),
        "the sum is not the one of a product and a mask",
    ),
    "a mask for each head": (
        model(BODY, ", float[b, 2, s, t] m"), "there is a mask for each head",
    ),
}  # fmt: skip

test_refuses = refusal_tests({NAME: REFUSED})
