"""Masks of Attention, opset 23: those that hide nothing, those the operator repeats by itself."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import (
    check_pattern,
    make_feeds,
    model_from_text,
    refusal_tests,
    rewrite_tests,
)

USELESS, EXPANDED, OPERAND = (
    "AttentionUselessMask", "AttentionExpandedMask", "AttentionExpandedOperand",
)  # fmt: skip
HEADS = "float[b, 4, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 6] v"
FLAT = "float[b, s, 32] q, float[b, t, 16] k, float[b, t, 12] v"
COUNTS = "<q_num_heads = 4, kv_num_heads = 2>"
PAST = ", float[b, 2, p, 8] pk, float[b, 2, p, 6] pv"
KEPT = ", float[b, 2, u, 8] nk, float[b, 2, u, 6] nv"
CALL = "y = Attention(q, k, v, {})"
STEP = "y, nk, nv = Attention(q, k, v, {}, pk, pv)"


def model(body: str, inputs: str = HEADS, out: str = "b, 4, s, 6", outputs: str = "") -> str:
    """An attention and its mask."""
    return f"""g ({inputs}) => (float[{out}] y{outputs}) <
        int64 zero = {{0}}, int64 one = {{1}}, float none = {{0}}, float low = {{-3.4e38}},
        bool true = {{1}}, bool[1, 1, 3, 5] all = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
        int64[1] i1 = {{1}}, int64[1] i2 = {{2}}, int64[1] i4 = {{4}}, int64[1] i5 = {{5}},
        int64[2] i22 = {{2, 2}}, int64[4] i1112 = {{1, 1, 1, 2}}, int64[4] i3111 = {{3, 1, 1, 1}},
        int64[4] i1411 = {{1, 4, 1, 1}}, int64[2] i12 = {{1, 2}}, int64[2] i13 = {{1, 3}},
        int64[3] i013 = {{0, 1, 3}}
    > {{ {body} }}"""


# -- masks that hide nothing

DIMS = (
    "b1 = Shape<start = 0, end = 1>(q) s1 = Shape<start = 2, end = 3>(q) "
    "t1 = Shape<start = 2, end = 3>(k) full = Concat<axis = 0>(b1, i1, s1, t1) "
)
#: 0, 1, 2, ... >= 0, as torch.onnx.export writes the mask of an encoder
POSITIONS = (
    DIMS + "count = Squeeze(s1) r = Range(zero, count, one) u = Unsqueeze(r, i013) "
    "ge = GreaterOrEqual(u, zero) m = Expand(ge, full) "
)
ZEROS = "heads = Concat<axis = 0>(i1, i4, s1, t1) z = Expand(none, heads) w = Where(m, z, low) "
JOINED = (
    "s1 = Shape<start = 2, end = 3>(q) t1 = Shape<start = 2, end = 3>(k) "
    "p1 = Shape<start = 2, end = 3>(pk) n1 = Add(p1, t1) full = Concat<axis = 0>(i1, s1, n1) "
    "m = Expand(true, full) "
)
FLAT_DIMS = (
    "s1 = Shape<start = 1, end = 2>(q) t1 = Shape<start = 1, end = 2>(k) "
    "full = Concat<axis = 0>(s1, t1) m = Expand(true, full) "
)
SIZES = [{"b": 2, "s": 3, "t": 5, "p": 4}, {"b": 1, "s": 1, "t": 4, "p": 0}]
TABLE = {"opset": 23, "sizes": SIZES}
ALONE = model("y = Attention(q, k, v)")
STATIC = "float[2, 4, 3, 8] q, float[2, 2, 5, 8] k, float[2, 2, 5, 6] v"
#: opset 24: the lengths of the sequences come last
LENGTHS = HEADS + ", int64[b] n"
CAUSAL = "y = Attention<is_causal = 1, softcap = 2.0>(q, k, v{})"
QK = "y, nk, nv, qk = Attention<qk_matmul_output_mode = 2>(q, k, v, {}, pk, pv)"
QKS = KEPT + ", float[b, 4, s, u] qk"


def lengths_model(mask: str) -> object:
    return model_from_text(model(mask, LENGTHS), 24)


LENGTHS_FEEDS = [
    {**make_feeds(model_from_text(model(CALL.format("")), 23), sizes), "n": np.array(counts)}
    for sizes, counts in ((SIZES[0], [2, 5]), (SIZES[1], [4]))
]
# -- masks the operator repeats

REPEATED = "b1 = Shape<start = 0, end = 1>(q) to = Concat<axis = 0>(b1, i1, i1, i1) "
#: the mask of several sequences
SEQUENCES = REPEATED + "e = Expand(m, to) "
ANY = HEADS + ", {} m"
CHOICE = "e = Expand(m, to) w = Where(e, bias, low) "
BIAS = ANY.format("bool[1, 1, s, t]") + ", float[4, s, t] bias"
#: positions repeated for each sequence, then compared: keys and queries
TILED = (
    "b1 = Shape<start = 0, end = 1>(q) to = Concat<axis = 0>(b1, i1) r = Tile(m, to) "
    "rows = Unsqueeze(r, i13) columns = Unsqueeze(r, i12) w = LessOrEqual(columns, rows) "
)
SQUARE = "float[b, 4, s, 8] q, float[b, 2, s, 8] k, float[b, 2, s, 6] v, int64[1, s] m"
LAYERS = "x, nk, nv = Attention(q, k, v, {0}, pk, pv) z = Attention(x, k2, v2, {0}) y = Neg(z) "
LAYER_INPUTS = (
    "float[b, 4, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 8] v, float[b, 2, p, 8] pk, "
    "float[b, 2, p, 8] pv, float[b, 2, u, 8] k2, float[b, 2, u, 6] v2, bool[1, 1, s, u] m, "
    "float[4, s, u] bias"
)
LAYER_FEEDS = [
    make_feeds(model_from_text(model(LAYERS.format("m"), LAYER_INPUTS), 23), {**s, "u": s["p"] + s["t"]})
    for s in SIZES
]  # fmt: skip
#: what the documentation draws: name -> {case: (before, after)}
MODELS = {
    USELESS: {
        "positions": (model(POSITIONS + CALL.format("m")), ALONE),
        "zeros": (model(POSITIONS + ZEROS + CALL.format("w")), ALONE),
        "constant": (model(CALL.format("all"), STATIC), model("y = Attention(q, k, v)", STATIC)),
        "past": (
            model(JOINED + STEP.format("m"), HEADS + PAST, outputs=KEPT),
            model(STEP.format(""), HEADS + PAST, outputs=KEPT),
        ),
        "scores given": (
            model(JOINED + QK.format("m"), HEADS + PAST, outputs=QKS),
            model(QK.format(""), HEADS + PAST, outputs=QKS),
        ),
        "three dimensions": (
            model(FLAT_DIMS + f"y = Attention{COUNTS}(q, k, v, m)", FLAT, "b, s, 24"),
            model(f"y = Attention{COUNTS}(q, k, v)", FLAT, "b, s, 24"),
        ),
        "causal": (model(POSITIONS + CAUSAL.format(", m")), model(CAUSAL.format(""))),
        "lengths": (
            lengths_model(POSITIONS + "y = Attention(q, k, v, m, , , n)"),
            lengths_model("y = Attention(q, k, v, , , , n)"),
            {"feeds": LENGTHS_FEEDS},
        ),
    },
    EXPANDED: {
        "batch": (
            model(SEQUENCES + CALL.format("e"), ANY.format("bool[1, 1, s, t]")),
            model(CALL.format("m"), ANY.format("bool[1, 1, s, t]")),
        ),
        "batch, float": (
            model(SEQUENCES + CALL.format("e"), ANY.format("float[1, 4, s, t]")),
            model(CALL.format("m"), ANY.format("float[1, 4, s, t]")),
        ),
        "one for each sequence": (
            model("e = Expand(m, i1411) " + CALL.format("e"), ANY.format("bool[b, 1, s, t]")),
            model(CALL.format("m"), ANY.format("bool[b, 1, s, t]")),
        ),
        "two dimensions": (
            model(SEQUENCES + CALL.format("e"), ANY.format("bool[s, t]")),
            model(CALL.format("m"), ANY.format("bool[s, t]")),
        ),
        "three dimensions": (
            model(SEQUENCES + CALL.format("e"), ANY.format("float[4, s, t]")),
            model(CALL.format("m"), ANY.format("float[4, s, t]")),
        ),
        "Tile": (
            model("e = Tile(m, i1411) " + CALL.format("e"), ANY.format("float[1, 1, s, t]")),
            model(CALL.format("m"), ANY.format("float[1, 1, s, t]")),
        ),
        "used elsewhere": (
            model(SEQUENCES + CALL.format("e") + " o = Not(e)", ANY.format("bool[1, 1, s, t]"),
                outputs=", bool[b, 1, s, t] o"),
            model(SEQUENCES + CALL.format("m") + " o = Not(e)", ANY.format("bool[1, 1, s, t]"),
                outputs=", bool[b, 1, s, t] o"),
        ),
    },
    OPERAND: {
        "the condition": (
            model(REPEATED + CHOICE + CALL.format("w"), BIAS),
            model("w = Where(m, bias, low) " + CALL.format("w"), BIAS),
        ),
        "a sum": (
            model(REPEATED + "e = Expand(m, to) w = Add(bias, e) " + CALL.format("w"),
                BIAS.replace("bool", "float")),
            model("w = Add(bias, m) " + CALL.format("w"), BIAS.replace("bool", "float")),
        ),
        "both": (
            model(
                REPEATED + "e = Expand(m, to) d = Expand(bias, to) w = Add(d, e) "
                + CALL.format("w"), BIAS.replace("bool", "float"),
            ),
            model("w = Add(bias, m) " + CALL.format("w"), BIAS.replace("bool", "float")),
        ),
        "positions": (
            model(TILED + CALL.format("w"), SQUARE),
            model(
                "rows = Unsqueeze(m, i13) columns = Unsqueeze(m, i12) "
                "w = LessOrEqual(columns, rows) " + CALL.format("w"), SQUARE,
            ),
        ),
        "two attentions": (
            model(REPEATED + CHOICE + LAYERS.format("w"), LAYER_INPUTS, outputs=KEPT),
            model("w = Where(m, bias, low) " + LAYERS.format("w"), LAYER_INPUTS, outputs=KEPT),
            {"feeds": LAYER_FEEDS},
        ),
    },
}  # fmt: skip
WIDE = "e = Expand(m, {}) " + CALL.format("e")
ONE_QUERY = ANY.format("bool[t]").replace("4, s, 8] q", "4, 1, 8] q")
ALWAYS = "m = Expand(true, {}) " + CALL.format("m")
#: one of the attentions reads the mask as its queries
QUERIES = (
    REPEATED + "e = Expand(m, to) w = Add(e, bias) y = Attention(q, k, v, w) x = Attention(w, k, v)"
)
CAPTURED = f"{REPEATED}{CHOICE}{CALL.format('w')} " + (
    "x = If(c) <then_branch = then () => (float[d, e, f, h] i) { i = Neg(w) }, else_branch = else () => (float[d, e, f, h] j) { j = Abs(w) }>"
)
REFUSED = {
    USELESS: {
        "no mask": (ALONE, "there is no mask"),
        "a mask": (model(CALL.format("m"), ANY.format("bool[1, 1, s, t]")), "may hide a score"),
        "nothing is seen": (
            model(DIMS + "a = Expand(true, full) m = Not(a) " + CALL.format("m")), "may hide a score",
        ),
        "ones are added": (
            model(DIMS + "a = Expand(true, full) m = Cast<to = 1>(a) " + CALL.format("m")),
            "may hide a score",
        ),
        "one key": (model(ALWAYS.format("i1411")), "may not be as long"),
        "another number of keys": (model(CALL.format("all")), "may not be as long"),
        "another batch": (
            model("to = Shape(x) " + ALWAYS.format("to"), HEADS + ", float[c, 1, s, t] x"),
            "may not be as long",
        ),
        "keys of the steps before": (
            model(DIMS + "m = Expand(true, full) " + STEP.format("m"), HEADS + PAST, outputs=KEPT),
            "may not be as long",
        ),
        "five dimensions": (
            model("to = Shape(x) " + ALWAYS.format("to"), HEADS + ", float[1, 1, 1, s, t] x"),
            "may not be as long",
        ),
        "an unknown shape": (
            model(ALWAYS.format("to"), HEADS + ", int64[r] to"), "the shape is not known",
        ),
        "unknown heads": (
            model(FLAT_DIMS + "y = Attention(q, k, v, m)", FLAT, "b, s, 24"),
            "the heads are not known",
        ),
        "unknown steps before": (
            model(DIMS + "m = Expand(true, full) y = Attention(q, k, v, m, pk, pv)",
                HEADS + ", float[d, e] pk, float[d, e] pv"),
            "the steps before are not known",
        ),
    },
    EXPANDED: {
        "another input": (
            model("f = Expand(q, i1411) y = Attention(f, k, v, m)", ANY.format("bool[1, 1, s, t]")),
            "no .* before",
        ),
        "a row for every query": (
            model(DIMS + WIDE.format("full"), ANY.format("bool[b, 1, 1, t]")),
            "a row or a column is repeated",
        ),
        "a column for every key": (
            model(DIMS + WIDE.format("full"), ANY.format("bool[b, 1, s, 1]")),
            "a row or a column is repeated",
        ),
        "a vector": (
            model(WIDE.format("i1411"), ONE_QUERY, "b, 4, 1, 6"), "the operator refuses the mask",
        ),
        "five dimensions": (
            model("to = Shape(x) " + WIDE.format("to"),
                ANY.format("bool[1, s, t]") + ", float[1, 1, 1, s, t] x"),
            "the operator refuses the mask",
        ),
        "another batch": (
            model(WIDE.format("i3111"), ANY.format("bool[1, 1, s, t]")), "may be broader",
        ),
        "a dimension that may be 1": (
            model(SEQUENCES + CALL.format("e"), ANY.format("bool[c, 1, s, t]")),
            "a dimension is not known",
        ),
        "a dimension that is tiled": (
            model("e = Tile(m, i1411) " + CALL.format("e"), ANY.format("bool[1, 2, s, t]")),
            "a dimension is not known",
        ),
        "an unknown shape": (
            model(WIDE.format("to"), ANY.format("bool[s, t]") + ", int64[r] to"),
            "the shape is not known",
        ),
        "unknown heads": (
            model(
                SEQUENCES + "y = Attention(q, k, v, e)", FLAT + ", bool[1, 1, s, t] m", "b, s, 24"
            ),
            "the heads are not known",
        ),
    },
    OPERAND: {
        "not repeated": (
            model("w = Where(m, bias, low) " + CALL.format("w"), BIAS), "no operand is repeated",
        ),
        "an Unsqueeze of something else": (
            model("u = Unsqueeze(m, i1) w = Where(u, bias, low) " + CALL.format("w"),
                BIAS.replace("1, 1, s", "1, s")),
            "no operand is repeated",
        ),
        "rows": (
            model(DIMS + "e = Expand(m, full) w = Where(e, bias, low) " + CALL.format("w"),
                BIAS.replace("bool[1, 1, s, t]", "bool[1, 1, 1, t]")),
            "no operand is repeated",
        ),
        "an output": (
            model(REPEATED + CHOICE + CALL.format("w"), BIAS, outputs=", float[b, 4, s, t] w"),
            "the mask is used elsewhere",
        ),
        "read by something else": (
            model(REPEATED + CHOICE + CALL.format("w") + " x = Neg(w)", BIAS,
                outputs=", float[b, 4, s, t] x"),
            "the mask is used elsewhere",
        ),
        "read by a subgraph": (
            model(CAPTURED, BIAS + ", bool c", outputs=", float[d, e, f, h] x"),
            "the mask is used elsewhere",
        ),
        "queries": (
            model(
                QUERIES, "float[b, 4, s, 8] q, float[b, 2, 8, 8] k, float[b, 2, 8, 6] v, "
                "float[1, 1, s, 8] m, float[4, s, 8] bias", outputs=", float[b, 4, s, 6] x",
            ),
            "the mask is used elsewhere",
        ),
        "another batch": (
            model("e = Expand(m, i3111) w = Where(e, bias, low) " + CALL.format("w"), BIAS),
            "may be broader",
        ),
        "a dimension that may be 1": (
            model(REPEATED + CHOICE + CALL.format("w"), BIAS.replace("bool[1, ", "bool[c, ")),
            "a dimension is not known",
        ),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, **TABLE)
test_refuses = refusal_tests(REFUSED, opset=23)


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("sizes", SIZES)
def test_hidden_rows(sizes: dict[str, int], kind: str) -> None:
    """Queries everything is hidden from, numbers that are not finite: nothing changes."""
    inputs = ANY.format(f"{kind}[1, 1, s, t]")
    before = model(SEQUENCES + CALL.format("e"), inputs)
    feeds = make_feeds(model_from_text(before, 23), sizes)
    feeds["m"][0, :, 0] = False if kind == "bool" else -np.inf
    feeds["q"][0, 1, 0, 0], feeds["v"][0, 0, 0, 1] = np.nan, np.inf
    check_pattern(before, model(CALL.format("m"), inputs), EXPANDED, opset=23, feeds=[feeds])


def test_scores_not_finite() -> None:
    """Scores that are not finite are kept, with or without the mask that hides nothing."""
    before, after = MODELS[USELESS]["positions"]
    feeds = make_feeds(model_from_text(before, 23), SIZES[0])
    feeds["q"][0, 1, 0, 0], feeds["k"][1, 0, 2, 1] = np.nan, -np.inf
    feeds["q"][1, 2], feeds["v"][1, 0, 0, 1] = 1e30, np.inf
    check_pattern(before, after, USELESS, opset=23, feeds=[feeds])


@pytest.mark.parametrize(("name", "case"), [(USELESS, "positions"), (EXPANDED, "batch")])
def test_no_sequence(name: str, case: str) -> None:
    """An empty batch, which onnxruntime refuses before and after."""
    before, after = MODELS[name][case]
    sizes = {"b": 0, "s": 2, "t": 3}
    check_pattern(before, after, name, opset=23, sizes=sizes, runtime=False)
