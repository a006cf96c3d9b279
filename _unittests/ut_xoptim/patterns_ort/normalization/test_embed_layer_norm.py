"""Rows of tables, added and normalized."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, model_from_text, refusal_tests, rewrite_tests

ON_CPU = "EmbedLayerNormalization(on_cpu=True)"
OPERATOR = "com.microsoft.EmbedLayerNormalization<epsilon = 0.00001>"
RNG = np.random.RandomState(0)


def table(name: str, rows: int) -> str:
    values = ", ".join(f"{v:.3f}" for v in RNG.randn(rows * 4))
    return f"float[{rows}, 4] {name} = {{{values}}}"


TABLES = ", ".join(table(n, rows) for n, rows in (("w", 9), ("p", 6), ("t", 5)))
CONSTANTS = (
    TABLES + ", int64[1, 3] c = {0, 1, 2}, int64[1, 6] buffer = {0, 1, 2, 3, 4, 5}, int64 m = {9},"
    " int64 m2 = {5}, int64 m6 = {6}, int32 n = {9}, int64[1] zero = {0}, int64[1] one = {1}"
)


def model(body: str, kind: str = "int64", out: str = "", k: str = "b, s", seq: str = "s") -> str:
    """Indices of words, of segments, of positions, a scale, a bias."""
    text = f"""g ({kind}[b, s] i, {kind}[{k}] k, {kind}[1, s] j, float[4] g0, float[4] c0)
    => (float[b, s, 4] y{out}) <{CONSTANTS}> {{ {body} }}"""
    return text.replace("s]", f"{seq}]").replace("s, 4]", f"{seq}, 4]")


WORDS, SEGMENTS, POSITIONS = "e = Gather(w, i) ", "f = Gather(t, k) ", "h = Gather(p, j) "
LAYER = "y = LayerNormalization(s, g0, c0)"
THREE = WORDS + SEGMENTS + POSITIONS + "a = Add(e, f) s = Add(a, h) " + LAYER
TWO = WORDS + POSITIONS + "s = Add(e, h) " + LAYER
I32 = "i1 = Mod(i, m) i2 = Cast<to = 6>(i1) "
J32 = "j1 = Mod(j, m6) j2 = Cast<to = 6>(j1) "
K32 = "k1 = Mod(k, m2) k2 = Cast<to = 6>(k1) "
INPUTS = I32 + K32 + J32

CASES = {
    "three": (
        model(THREE),
        model(INPUTS + f"y, = {OPERATOR}(i2, k2, w, p, t, g0, c0, , j2)"),
    ),
    "another order": (
        model(THREE.replace("Add(e, f)", "Add(h, f)").replace("Add(a, h)", "Add(e, a)")),
        model(INPUTS + f"y, = {OPERATOR}(i2, k2, w, p, t, g0, c0, , j2)"),
    ),
    "two": (model(TWO), model(I32 + J32 + f"y, = {OPERATOR}(i2, , w, p, , g0, c0, , j2)")),
    "the sum is an output": (
        model(TWO, out=", float[b, s, 4] s"),
        model(
            I32 + J32 + f"y,,s = {OPERATOR}(i2, , w, p, , g0, c0, , j2)",
            out=", float[b, s, 4] s",
        ),
    ),
    "32 bits": (
        model(WORDS + "h = Gather(w, j) s = Add(e, h) " + LAYER, "int32"),
        model(
            f"i1 = Mod(i, n) j1 = Mod(j, n) y, = {OPERATOR}(i1, , w, w, , g0, c0, , j1)", "int32"
        ),
    ),
    "positions are known": (
        model(TWO.replace("(p, j)", "(p, c)"), seq="3"),
        model(I32 + f"c1 = Cast<to = 6>(c) y, = {OPERATOR}(i2, , w, p, , g0, c0, , c1)", seq="3"),
    ),
    "positions are a vector": (
        model(TWO).replace("[1, s] j", "[s] j"),
        model(
            I32 + "j1 = Mod(j, m6) j3 = Unsqueeze(j1, zero) j2 = Cast<to = 6>(j3) "
            f"y, = {OPERATOR}(i2, , w, p, , g0, c0, , j2)"
        ).replace("[1, s] j", "[s] j"),
    ),
    "every index has the whole shape": (
        model(WORDS + SEGMENTS + "s = Add(e, f) " + LAYER),
        model(I32 + K32 + f"y, = {OPERATOR}(i2, , w, t, , g0, c0, , k2)"),
    ),
}
#: what the documentation draws: the kernel was measured slower on CPU and on CUDA
MODELS = {"EmbedLayerNormalization": CASES["three"]}


def feeds_of(text: str, b: int, s: int, low: int) -> dict[str, np.ndarray]:
    """Indices that exist, negative ones too."""
    feeds = {}
    for value in model_from_text(text).graph.input:
        kind = value.type.tensor_type
        if kind.elem_type == 1:
            feeds[value.name] = RNG.randn(4).astype(np.float32)
            continue
        sizes = {"b": b, "s": s}
        dims = [d.dim_value or sizes[d.dim_param] for d in kind.shape.dim]
        high = 2 if value.name == "k" else 6
        dtype = np.int64 if kind.elem_type == 7 else np.int32
        feeds[value.name] = RNG.randint(max(low, -high), high, dims).astype(dtype)
    return feeds


@pytest.mark.parametrize("case", CASES)
def test_rewrites(case: str) -> None:
    """Negative indices read from the end, as Gather does; empty batches, empty sequences."""
    before, after = CASES[case]
    sizes = ((2, 3, 0), (1, 5, -6), (0, 3, 0), (2, 0, 0))
    feeds = [feeds_of(before, *row) for row in sizes]
    check_pattern(before, after, ON_CPU, feeds=feeds, atol=1e-5)


def test_slice_of_known_positions() -> None:
    """The export of BERT: a Slice of a buffer of positions, the length of the indices."""
    body = (
        WORDS + "d = Shape<start = 1>(i) j0 = Slice(buffer, zero, d, one) h = Gather(p, j0) "
        "s = Add(e, h) " + LAYER
    )
    after = (
        "d = Shape<start = 1>(i) j0 = Slice(buffer, zero, d, one) " + I32 +
        f"j2 = Cast<to = 6>(j0) y, = {OPERATOR}(i2, , w, p, , g0, c0, , j2)"
    )  # fmt: skip
    text = model(body)
    feeds = [feeds_of(text, 2, 3, -9), feeds_of(text, 1, 6, 0)]
    check_pattern(text, model(after), ON_CPU, feeds=feeds, atol=1e-5)


test_on_cuda = rewrite_tests({ON_CPU: CASES["three"]}, feeds=[], processor="CUDA")

REFUSED = {
    "axis of the normalization": (
        model(THREE.replace("LayerNormalization(", "LayerNormalization<axis = 1>(")),
        "the axis is not the last one",
    ),
    "no bias": (model(THREE.replace(", c0)", ")")), "there is no bias"),
    "four tables": (
        model(THREE.replace("Add(e, f)", "Add(e, z)") + " z = Add(f, f)"), "no Gather before",
    ),
    "no table": (model("s = Add(i0, i0) " + LAYER).replace("(int64", "(float[b, s, 4] i0, int64", 1), "no Gather before"),
    "unknown table": (
        model(TWO.replace("(w, i)", "(w0, i)")).replace("(int64", "(float[9, 4] w0, int64", 1),
        "a table is not constant",
    ),
    "columns": (
        model(TWO.replace("Gather(w, i)", "Gather<axis = 1>(w, i)"), out=""), "does not read rows",
    ),
    "segments are broadcast": (model(THREE, k="b, 1"), "the indices are broadcast"),
    "two tables are broadcast": (model(THREE, k="1, s"), "two tables are broadcast"),
    "rank": (
        model(TWO).replace("[b, s] i", "[b, s, 2] i").replace("[b, s, 4]", "[b, s, 2, 4]")
        .replace("[1, s] j", "[1, s, 2] j"), "the sum does not have three dimensions",
    ),
    "the sum of three is used": (
        model(THREE, out=", float[b, s, 4] s"), "the sum of three tables is used elsewhere",
    ),
    "double": (
        model(TWO).replace("float[", "double["), "no EmbedLayerNormalization for this type",
    ),
}  # fmt: skip
SLOWER = {"on CPU": (model(THREE), "slower on CPU")}

test_refuses = refusal_tests({ON_CPU: REFUSED, "EmbedLayerNormalization": SLOWER})
