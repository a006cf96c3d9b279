"""Texts of an attention computed from a normalized sequence."""

from __future__ import annotations

import numpy as np
import onnx

from xoptim.testing import model_from_text

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
#: the heads of queries, keys and values are beside each other
TOGETHER = (
    "a0 = MatMul(x, all) a = Reshape(a0, together) at = Transpose<perm = [0, 2, 1, 3]>(a) "
    "qt, kt, vt = Split<axis = 1, num_outputs = 3>(at) "
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
        float big = {{1e30}}, float large = {{1e20}}, int64[2] rows = {{-1, 32}}, int64[4] fives = {{-1, 5, 4, 8}}, int64[4] fours = {{-1, 4, 4, 8}}, int64[3] three = {{2, -1, 96}},
        float[4] frequencies = {{1, 0.1, 0.01, 0.001}},
        int64 first = {{0}}, int64 step = {{1}}, int64 step3 = {{3}}, int64[3] before = {{0, 1, 2}},
        int64[1] c0 = {{0}}, int64[1] c32 = {{32}}, int64[1] c64 = {{64}}, int64[1] c96 = {{96}},
        int64[6] pads = {{0, 0, 0, 0, 1, 0}}, int64[1] col = {{-1}}, int64[1] step1 = {{1}}, int64[1] step2 = {{2}}, int64[4] beside = {{0, 0, 4, 24}}, int64[4] together = {{0, 0, 12, 8}},
        int64[3] around = {{0, 1, 3}}, float minus = {{-1}}, float far = {{-1e9}}, float near = {{-2000}},
        float scale = {{0.35}}, float zero = {{0}}, float low = {{-1}}, float lower = {{-1}}
        > {{ {body} }}""", 18,
    )  # fmt: skip
    low = np.finfo(np.float32).min
    lowest = {"low": low, "minus": np.array(-np.inf, np.float32), "lower": low / np.float32(2)}
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
