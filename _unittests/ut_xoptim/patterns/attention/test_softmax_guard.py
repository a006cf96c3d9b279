"""Zeros that replace NaN in the weights of an attention, where the values are NaN as well."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from ut_xoptim.patterns.normalization.normalized_texts import (
    ATTENTION,
    BACK,
    BESIDE,
    CAUSAL,
    GUARD,
    MASK,
    MOVED,
    NORM,
    PROJECTED,
    REPEATED,
    ROOT,
    ROTARY,
    ROWS,
    SCORES,
    SLICED,
    SOFTMAX,
    TOGETHER,
    WINDOW,
    model,
)

from xoptim.testing import check_no_match, check_pattern, make_feeds

NAME = "SoftmaxGuard"


def text_of(*parts: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model with the zeros, and without."""
    return model("".join((*parts, GUARD, BACK))), model("".join((*parts, SOFTMAX, BACK)))


#: shared heads read by one Gather
GATHERED = "turns = Constant<value_ints = [0, 0, 1, 1]>() " + re.sub(
    r"(\w)u = Unsqueeze.*?Reshape\(\we, joined\)", r"\1t = Gather<axis = 1>(\1s, turns)", REPEATED
)
MODELS = {NAME: text_of(NORM, ATTENTION)}
TWO = "float[2, s, 32] h"
FORMS = {
    "layer": MODELS[NAME],
    "root of the mean square": text_of(ROOT, ATTENTION),
    "sliced": text_of(NORM, SLICED + MOVED + SCORES + MASK),
    "beside": text_of(NORM, BESIDE + SCORES + MASK),
    "together": text_of(NORM, TOGETHER + SCORES + MASK),
    "causal": text_of(
        NORM, PROJECTED + MOVED + SCORES + CAUSAL.format(condition="causal", terms="n, mask")
    ),
    "window": text_of(
        NORM,
        PROJECTED
        + MOVED
        + SCORES
        + CAUSAL.format(condition="both", terms="mask, n").replace("mask =", WINDOW + "mask ="),
    ),
    "no mask": text_of(NORM, PROJECTED + MOVED + SCORES.replace("n = Mul", "z = Mul")),
    "rotary": text_of(NORM, PROJECTED + MOVED + ROTARY + SCORES.replace("(qt", "(qs") + MASK),
    "shared heads": text_of(NORM, REPEATED + SCORES + MASK),
    "shared heads, gathered": text_of(NORM, GATHERED + SCORES + MASK),
    "rows": tuple(
        model(NORM + ROWS + MOVED + SCORES + MASK + end + BACK, TWO) for end in (GUARD, SOFTMAX)
    ),
}
#: what an element of the sequence is
NUMBERS = [0.5, np.nan, np.inf, -np.inf, 1e30, 3e38]


def feeds_of(proto: onnx.ModelProto, number: float) -> dict[str, np.ndarray]:
    """Random inputs; a query sees nothing, an element of the first sequence is replaced."""
    feeds = make_feeds(proto, {"b": 2, "s": 5})
    feeds["seen"][:, :, 1:, 0] = True
    feeds["seen"][1, :, 0] = False
    feeds["h"][0, 2, 3] = number
    return feeds


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", FORMS)
def test_same_result(form: str, number: float) -> None:
    before, after = FORMS[form]
    known = form != "root of the mean square"
    feeds = [feeds_of(before, number)]
    check_pattern(before, after, NAME, feeds=feeds, atol=1e-5, rtol=1e-4, reference=known)


#: what is refused: reason -> parts of the model, its sequence, its other inputs
NORMALIZED = "the sequence is not normalized"
INFINITE = "a score may not be finite where the values are"
ROWWISE = "the values are not the product of rows by a constant matrix"
ELEMENTS = "the values are not those of each element of a sequence"
OTHER = ", float[b, s, 32] u"
REFUSED = {
    "not normalized": (NORMALIZED, "x = Neg(h) " + ATTENTION, "", ""),
    "another axis": (
        INFINITE, NORM.replace("axis = -1", "axis = 1").replace("g, c", "G") + ATTENTION, "",
        ", float[s, 32] G",
    ),
    "scale that is not a constant": (INFINITE, NORM.replace("g, c", "G") + ATTENTION, "", ", float[32] G"),
    "another sequence": (
        INFINITE, NORM + "n2 = LayerNormalization<axis = -1>(u, g, c) "
        + ATTENTION.replace("q0 = MatMul(x", "q0 = MatMul(n2"), "", OTHER,
    ),
    "numbers without bounds": (INFINITE, NORM + ATTENTION.replace("q0 = MatMul(x", "q0 = MatMul(u"), "", OTHER),
    "mask from outside": (
        INFINITE, NORM + ATTENTION.replace("mask = Where(seen, zero, low) ", ""), "",
        ", float[b, 1, s, s] mask",
    ),
    "two masks": (
        INFINITE, NORM + ATTENTION.replace("z = Add(n, mask)", "t = Add(n, mask) z = Add(t, mask)"), "", "",
    ),
    "sequences mixed": (
        INFINITE, NORM + "xt = Transpose<perm = [1, 0, 2]>(x) "
        + ATTENTION.replace("q0 = MatMul(x", "q0 = MatMul(xt"), "float[b, b, 32] h", "",
    ),
    "product that may be infinite": (
        INFINITE, NORM + ATTENTION.replace("q = Add(q0, c)", "q1 = Mul(q0, big) q2 = Mul(q1, big) q = Add(q2, c)"),
        "", "",
    ),
    "normalization of numbers that may be too large": (
        INFINITE, NORM + ATTENTION.replace(
            "q = Add(q0, c)", "q1 = Mul(q0, large) q = LayerNormalization<axis = -1>(q1, g, c)"
        ), "", "",
    ),
    "normalization that may divide by zero": (
        INFINITE, NORM + ATTENTION.replace(
            "q = Add(q0, c)", "q = LayerNormalization<axis = -1, epsilon = 0.0>(q0, g, c)"
        ), "", "",
    ),
    "values that are not moved": (
        "the values are not moved from a sequence",
        NORM + ATTENTION.replace("vt = Transpose<perm = [0, 2, 1, 3]>(v4)", "vt = Identity(V)"), "",
        ", float[b, 4, s, 8] V",
    ),
    "values that are not a product": (ROWWISE, NORM + ATTENTION.replace("v0 = MatMul(x, vw)", "v0 = Neg(x)"), "", ""),
    "values of a product": (
        ROWWISE, NORM + ATTENTION.replace("v0 = MatMul(x, vw)", "v1 = MatMul(x, vw) v0 = MatMul(v1, vw)"), "", "",
    ),
    "weight that is not a constant": (
        ROWWISE, NORM + ATTENTION.replace("MatMul(x, vw)", "MatMul(x, W)"), "", ", float[32, 32] W",
    ),
    "bias that is not a constant": (
        ROWWISE, NORM + ATTENTION.replace("v = Add(v0, c)", "v = Add(v0, B)"), "", ", float[32] B",
    ),
    "values of the next ones": (
        ROWWISE, NORM + SLICED.replace("v = Slice(a, c64, c96, col)", "v0 = MatMul(x, vw) v1 = Pad(v0, pads) v = Slice(v1, step1, c96, step1)")
        + MOVED + SCORES + MASK, "", "",
    ),
    "sequences that are cut": (
        INFINITE, NORM + SLICED.replace("q = Slice(a, c0, c32, col)", "q1 = Slice(a, c0, c32, col) q2 = Slice(q1, c0, c96, c0) q = Identity(q2)")
        + MOVED + SCORES + MASK, TWO, "",
    ),
    "rows that are cut": (
        ROWWISE, NORM + ATTENTION.replace(
            "v0 = MatMul(x, vw)", "xr = Reshape(x, cut) vr = MatMul(xr, half) v0 = Reshape(vr, whole)"
        ), TWO, "",
    ),
    "elements of another sequence": (
        ELEMENTS, NORM + PROJECTED + MOVED.replace("heads", "mixed") + SCORES.replace("n = Mul", "z = Mul"),
        "float[2, 4, 32] h", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_refused(form: str) -> None:
    reason, body, sequence, more = REFUSED[form]
    proto = model(body + GUARD + BACK, sequence or "float[b, s, 32] h", more)
    check_no_match(proto, NAME, reason=reason)


def test_infinite_mask() -> None:
    """A query that sees nothing gets zeros, which are needed."""
    proto = model(NORM + ATTENTION + GUARD + BACK)
    (low,) = [i for i in proto.graph.initializer if i.name == "low"]
    low.CopyFrom(onnx.numpy_helper.from_array(np.array(-np.inf, np.float32), "low"))
    check_no_match(proto, NAME, reason=INFINITE)


def test_infinite_window_without_keys() -> None:
    """Before the first one: a query may see nothing."""
    body = CAUSAL.format(condition="both", terms="n, mask").replace("mask =", WINDOW + "mask =")
    body = body.replace("Sub(rows_of, step3)", "Add(rows_of, first)")
    proto = model(NORM + PROJECTED + MOVED + SCORES + body + GUARD + BACK)
    check_no_match(proto, NAME, reason=INFINITE)


def test_columns() -> None:
    body = NORM + ATTENTION + GUARD.replace("axis = -1", "axis = 2") + BACK
    check_no_match(model(body), NAME, reason="it is not a Softmax of rows")
