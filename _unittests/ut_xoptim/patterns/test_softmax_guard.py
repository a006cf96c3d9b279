"""Zeros that replace NaN in the weights of an attention, where the values are NaN as well."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from xoptim.testing import check_no_match, check_pattern, make_feeds, model_from_text

NAME = "SoftmaxGuard"
NORM = "x = LayerNormalization<axis = -1>(h, g, c) "
ROOT = "x = SimplifiedLayerNormalization<axis = -1>(h, g) "
PROJECTED = "".join(f"{n}0 = MatMul(x, {n}w) {n} = Add({n}0, c) " for n in "qkv")
MOVED = "".join(
    f"{n}4 = Reshape({n}, heads) {n}t = Transpose<perm = [0, 2, 1, 3]>({n}4) " for n in "qkv"
)
SCORES = "kx = Transpose<perm = [0, 1, 3, 2]>(kt) m = MatMul(qt, kx) n = Mul(m, scale) "
MASK = "mask = Where(seen, zero, low) z = Add(n, mask) "
#: positions of keys and of queries, a key is seen by those after it, and hidden with -inf
CAUSAL = (
    "shape = Shape<start = 1, end = 2>(h) size = Squeeze(shape) range = Range(first, size, step) "
    "columns = Unsqueeze(range, before) rows_of = Unsqueeze(range, around) "
    "causal = LessOrEqual(columns, rows_of) mask = Where({condition}, zero, minus) z = Add({terms}) "
)
WINDOW = (
    "low_of = Sub(rows_of, step3) window = Greater(columns, low_of) both = And(causal, window) "
)
SOFTMAX = "w = Softmax<axis = -1>(z) "
GUARD = "w0 = Softmax<axis = -1>(z) i = IsNaN(w0) w = Where(i, zero, w0) "
BACK = "o = MatMul(w, vt) ot = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(ot, flat)"
ROTARY = (
    "p = Cast<to = 1>(positions) a = Mul(p, frequencies) e = Concat<axis = -1>(a, a) "
    "cos = Cos(e) sin = Sin(e) ql, qr = Split<axis = -1, num_outputs = 2>(qt) qn = Neg(qr) "
    "qc = Concat<axis = -1>(qn, ql) q1 = Mul(qt, cos) q2 = Mul(qc, sin) qs = Add(q1, q2) "
)
ROWS = (
    "r = Reshape(x, rows) a = Gemm(r, all, c3) s = Reshape(a, three) "
    "q, k, v = Split<axis = 2, num_outputs = 3>(s) "
)
#: three matrices are one, its columns are taken with Slice
SLICED = "a = MatMul(x, all) " + "".join(
    f"{n} = Slice(a, c{32 * i}, c{32 * i + 32}, col) " for i, n in enumerate("qkv")
)
#: queries, keys and values of a head are beside each other
BESIDE = (
    "a0 = MatMul(x, all) a = Reshape(a0, beside) at = Transpose<perm = [0, 2, 1, 3]>(a) "
    "qt, kt, vt = Split<axis = -1, num_outputs = 3>(at) "
)
REPEATED = (
    "q = MatMul(x, qw) k = MatMul(x, kh) v = MatMul(x, vh) q4 = Reshape(q, heads) "
    "qt = Transpose<perm = [0, 2, 1, 3]>(q4) "
) + "".join(
    f"{n}4 = Reshape({n}, pairs) {n}s = Transpose<perm = [0, 2, 1, 3]>({n}4) {n}u = Unsqueeze({n}s, two) "
    f"{n}e = Expand({n}u, spread) {n}t = Reshape({n}e, joined) "
    for n in "kv"
)  # fmt: skip
ATTENTION = PROJECTED + MOVED + SCORES + MASK


def model(body: str, sequence: str = "float[b, s, 32] h", more: str = "") -> onnx.ModelProto:
    """An attention of 4 heads of length 8 on a sequence."""
    made = model_from_text(
        f"""g ({sequence}, bool[b, 1, s, s] seen, int64[1, 1, s, 1] positions{more})
        => (float[b, s, 32] y) <
        int64[4] heads = {{0, 0, 4, 8}}, int64[4] pairs = {{0, 0, 2, 8}}, int64[3] flat = {{0, 0, 32}},
        int64[1] two = {{2}}, int64[5] spread = {{1, 1, 2, 1, 1}}, int64[4] joined = {{0, 4, -1, 8}},
        int64[4] mixed = {{4, 2, 4, 8}}, int64[2] cut = {{-1, 16}}, int64[3] whole = {{2, -1, 32}},
        float big = {{1e30}}, float large = {{1e20}}, int64[2] rows = {{-1, 32}}, int64[3] three = {{2, -1, 96}},
        float[4] frequencies = {{1, 0.1, 0.01, 0.001}},
        int64 first = {{0}}, int64 step = {{1}}, int64 step3 = {{3}}, int64[3] before = {{0, 1, 2}},
        int64[1] c0 = {{0}}, int64[1] c32 = {{32}}, int64[1] c64 = {{64}}, int64[1] c96 = {{96}},
        int64[6] pads = {{0, 0, 0, 0, 1, 0}}, int64[1] col = {{-1}}, int64[1] step1 = {{1}}, int64[1] step2 = {{2}}, int64[4] beside = {{0, 0, 4, 24}},
        int64[3] around = {{0, 1, 3}}, float minus = {{-1}},
        float scale = {{0.35}}, float zero = {{0}}, float low = {{-1}}
        > {{ {body} }}""", 18,
    )  # fmt: skip
    lowest = {"low": np.finfo(np.float32).min, "minus": np.array(-np.inf, np.float32)}
    for initializer in made.graph.initializer:
        if initializer.name in lowest:
            value = lowest[initializer.name]
            initializer.CopyFrom(onnx.numpy_helper.from_array(value, initializer.name))
    rng = np.random.default_rng(0)
    sizes = {
        "half": (16, 16),
        "g": (32,),
        "c": (32,),
        "c3": (96,),
        "all": (32, 96),
        "kh": (32, 16),
        "vh": (32, 16),
    }
    for name, dims in {**sizes, **dict.fromkeys(("qw", "kw", "vw"), (32, 32))}.items():
        if f"{name})" in body or f"{name}," in body:
            value = rng.standard_normal(dims).astype(np.float32)
            made.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return made


def text_of(*parts: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model with the zeros, and without."""
    return model("".join((*parts, GUARD, BACK))), model("".join((*parts, SOFTMAX, BACK)))


MODELS = {NAME: text_of(NORM, ATTENTION)}
TWO = "float[2, s, 32] h"
FORMS = {
    "layer": MODELS[NAME],
    "root of the mean square": text_of(ROOT, ATTENTION),
    "sliced": text_of(NORM, SLICED + MOVED + SCORES + MASK),
    "beside": text_of(NORM, BESIDE + SCORES + MASK),
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
