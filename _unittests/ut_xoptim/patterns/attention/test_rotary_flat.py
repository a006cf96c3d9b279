"""RotaryEmbedding that reads three dimensions, the attention after as well; one table for several
sequences."""

from __future__ import annotations

import numpy as np
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import check_pattern, model_from_text, refusal_tests, rewrite_tests
from xoptim.testing.running import make_feeds, run_onnxruntime, run_reference

HEAD = """g (float[b, q, 2, 4] X, float[b, q, n] c, float[b, q, n] s) => (float[b, q, 2, 4] Y)
<int64[3] flat = {0, 0, 8}, int64[4] heads = {0, 0, 2, 4}> { BODY }"""
FULL = HEAD.replace("b, q, n", "b, q, 2")
PART = HEAD.replace("b, q, n", "b, q, 1")
ONE = """g (float[b, 2, q, 4] X, float[1, q, 2] c, float[1, q, 2] s) => (float[b, 2, q, 4] Y)
<int64[1] one = {1}, int64[4] heads = {0, 0, 2, 4}> { BODY }"""
NEIGHBOURS = "interleaved = 1, rotary_embedding_dim = 2"
FLAT = "h = Reshape(X, heads) t = Transpose<perm = [0, 2, 1, 3]>(h) "
MOVE = "t = Transpose<perm = [0, 2, 1, 3]>(X) "
BACK = "Y = Transpose<perm = [0, 2, 1, 3]>(r)"
OPTIONS = {"opset": 23, "sizes": [{"b": 2, "q": 3}, {"b": 1, "q": 1}], "atol": 1e-6}
#: name -> case -> (before, after)
MODELS = {
    "RotaryEmbedding3D": {
        "heads": (
            FULL.replace("BODY", MOVE + "r = RotaryEmbedding(t, c, s) " + BACK),
            FULL.replace(
                "BODY",
                "t = Reshape(X, flat) r = RotaryEmbedding<num_heads = 2>(t, c, s) Y = Reshape(r, heads)",
            ),
        ),
        "a part of each, neighbours": (
            PART.replace(
                "BODY",
                MOVE + "r = RotaryEmbedding<interleaved = 1, num_heads = 2, rotary_embedding_dim = 2>"
                "(t, c, s) " + BACK,
            ),
            PART.replace(
                "BODY",
                "t = Reshape(X, flat) r = RotaryEmbedding<interleaved = 1, num_heads = 2, "
                "rotary_embedding_dim = 2>(t, c, s) Y = Reshape(r, heads)",
            ),
        ),
    },
    "RotaryEmbeddingBatch": {
        "heads": (
            ONE.replace("BODY", "Y = RotaryEmbedding(X, c, s)"),
            ONE.replace(
                "BODY",
                "n = Shape<start = 0, end = 1>(X) d = Concat<axis = 0>(n, one, one) "
                "C = Expand(c, d) S = Expand(s, d) Y = RotaryEmbedding(X, C, S)",
            ),
            {"runtime": False},
        ),
        "a part of each, neighbours": (
            ONE.replace("BODY", f"Y = RotaryEmbedding<{NEIGHBOURS}>(X, c, s)").replace("1, q, 2]", "1, q, 1]"),
            ONE.replace(
                "BODY",
                "n = Shape<start = 0, end = 1>(X) d = Concat<axis = 0>(n, one, one) "
                f"C = Expand(c, d) S = Expand(s, d) Y = RotaryEmbedding<{NEIGHBOURS}>(X, C, S)",
            ).replace("1, q, 2]", "1, q, 1]"),
            {"runtime": False},
        ),
        "moved heads keep one use": (
            ONE.replace("[b, 2, q, 4] X", "[b, q, 8] X").replace("BODY", FLAT + "Y = RotaryEmbedding(t, c, s)"),
            ONE.replace("[b, 2, q, 4] X", "[b, q, 8] X").replace(
                "BODY",
                FLAT + "n = Shape<start = 0, end = 1>(X) d = Concat<axis = 0>(n, one, one) "
                "C = Expand(c, d) S = Expand(s, d) Y = RotaryEmbedding(t, C, S)",
            ),
            {"runtime": False},
        ),
    },
}  # fmt: skip
#: name -> case -> (model, reason)
REFUSED = {
    "RotaryEmbedding3D": {
        "another permutation": (
            FULL.replace("BODY", "t = Transpose<perm = [0, 2, 3, 1]>(X) r = RotaryEmbedding(t, c, s) " + BACK)
            .replace("float[b, q, 2] ", "float[b, 4, 1] ").replace("float[b, q, 2, 4] X", "float[b, 2, 2, 4] X")
            .replace("[b, q, 2, 4] Y", "[d, e, f, g] Y"),
            "the heads are not moved before",
        ),
        "not moved back": (
            FULL.replace("BODY", MOVE + "r = RotaryEmbedding(t, c, s) Y = Transpose<perm = [0, 2, 3, 1]>(r)")
            .replace("[b, q, 2, 4] Y", "[d, e, f, g] Y"),
            "the heads are not moved back",
        ),
        "heads used elsewhere": (
            FULL.replace("BODY", MOVE + "r = RotaryEmbedding(t, c, s) Z = Neg(t) " + BACK)
            .replace("4] Y)", "4] Y, float[b, 2, q, 4] Z)"),
            "the heads are used elsewhere",
        ),
        "unknown heads": (
            FULL.replace("BODY", MOVE + "r = RotaryEmbedding(t, c, s) " + BACK).replace("q, 2, 4]", "q, h, 4]"),
            "the heads are not known",
        ),
        "positions": (
            """g (float[b, q, 2, 4] X, float[7, 2] c, float[7, 2] s, int64[b, q] p) => (float[b, q, 2, 4] Y)
            { t = Transpose<perm = [0, 2, 1, 3]>(X) r = RotaryEmbedding(t, c, s, p)
              Y = Transpose<perm = [0, 2, 1, 3]>(r) }""",
            "the tables are read at positions",
        ),
    },
    "RotaryEmbeddingBatch": {
        "one sequence": (
            ONE.replace("BODY", "Y = RotaryEmbedding(X, c, s)").replace("b,", "1,"),
            "there is one sequence",
        ),
        "a table for each": (
            ONE.replace("BODY", "Y = RotaryEmbedding(X, c, s)").replace("1, q, 2]", "b, q, 2]"),
            "there is a table for each sequence",
        ),
        "sines for each": (
            ONE.replace("BODY", "Y = RotaryEmbedding(X, c, s)").replace("1, q, 2] s", "b, q, 2] s"),
            "there is a table for each sequence",
        ),
        "as many as unknown": (
            ONE.replace("BODY", "Y = RotaryEmbedding(X, c, s)").replace("1, q, 2]", "n, q, 2]"),
            "there is a table for each sequence",
        ),
        "positions": (
            """g (float[b, 2, q, 4] X, float[7, 2] c, float[7, 2] s, int64[b, q] p) => (float[b, 2, q, 4] Y)
            { Y = RotaryEmbedding(X, c, s, p) }""",
            "the tables are read at positions",
        ),
    },
}  # fmt: skip
test_rewrites = rewrite_tests(MODELS, **OPTIONS)
test_refuses = refusal_tests(REFUSED, opset=23)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_several_sequences(batch: int) -> None:
    """onnxruntime runs the model on several sequences, the result is the one of each alone."""
    model = model_from_text(ONE.replace("BODY", "Y = RotaryEmbedding(X, c, s)"), 23)
    feeds = make_feeds(model, {"b": batch, "q": 5})
    one_by_one = [run_onnxruntime(model, {**feeds, "X": x[None]})[0] for x in feeds["X"]]
    options = OptimizationOptions(patterns="fix")
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    (got,) = run_onnxruntime(builder.to_onnx(), feeds)
    np.testing.assert_array_equal(got, np.concatenate(one_by_one))
    np.testing.assert_allclose(got, run_reference(model, feeds)[0], atol=1e-6)


ATTENTION = """g (float[b, q, 4, 8] Q, float[b, q, 2, 8] K, float[b, q, 2, 8] V, float[b, q, 4] c,
   float[b, q, 4] s, int64[b, 1, q, 1] lasts, float[b, 2, p, 8] P, float[b, 2, p, 8] O) =>
   (float[b, q, 4, 8] Y, float[b, 2, t, 8] J, float[b, 2, t, 8] L) <
   float scale = {0.25}, float none = {0}, float low = {-340282346638528859811704183484516925440}, int64[1] two = {2},
   int64[5] spread = {1, 1, 2, 1, 1}, int64[1] heads = {4}, int64[1] length = {8},
   int64[1] first = {0}, int64 from = {0}, int64 step = {1}> {
   Qt = Transpose<perm = [0, 2, 1, 3]>(Q) Kt = Transpose<perm = [0, 2, 1, 3]>(K)
   Vt = Transpose<perm = [0, 2, 1, 3]>(V) Qr = RotaryEmbedding(Qt, c, s)
   Kr = RotaryEmbedding(Kt, c, s) J = Concat<axis = 2>(P, Kr) L = Concat<axis = 2>(O, Vt)
   bs = Shape<start = 0, end = 1>(J) ps = Shape<start = 2, end = 3>(P) ns = Shape<start = 1, end = 2>(Q) ts = Add(ps, ns)
   four = Concat<axis = 0>(bs, heads, ts, length)
   uJ = Unsqueeze(J, two) eJ = Expand(uJ, spread) rJ = Reshape(eJ, four)
   uL = Unsqueeze(L, two) eL = Expand(uL, spread) rL = Reshape(eL, four)
   kt = Transpose<perm = [0, 1, 3, 2]>(rJ) m = MatMul(Qr, kt) n = Mul(m, scale)
   tn = Squeeze(ts, first) columns = Range(from, tn, step) seen = LessOrEqual(columns, lasts)
   a = Where(seen, none, low) z = Add(n, a) w = Softmax<axis = -1>(z) y = MatMul(w, rL)
   Y = Transpose<perm = [0, 2, 1, 3]>(y) }"""
PATTERNS = (
    "FunctionAttention,FunctionAttentionGQA,AttentionGQA,RotaryEmbedding3D,ReshapeReshape,"
    "TransposeTranspose"
)


@pytest.mark.parametrize(
    "sizes", [{"b": 2, "q": 1, "p": 5}, {"b": 1, "q": 3, "p": 4}, {"b": 3, "q": 2, "p": 0}]
)
def test_attention(sizes: dict[str, int]) -> None:
    """Queries and keys are turned, keys and values joined with those of the steps before."""
    model = check_pattern(
        ATTENTION, None, PATTERNS, opset=23, sizes=sizes, atol=1e-5, rtol=1e-5, reference=False
    )
    types = [n.op_type for n in model.graph.node]
    assert "Attention" in types and "Transpose" not in types and "Expand" not in types
    assert types.count("Concat") == 0


def test_mask_of_the_joined_keys() -> None:
    """The mask needs the number of keys: they are joined before the attention."""
    text = ATTENTION.replace("ts = Add(ps, ns)", "ts = Shape<start = 2, end = 3>(J)")
    model = check_pattern(text, None, PATTERNS, opset=23, atol=1e-5, rtol=1e-5, reference=False)
    types = [n.op_type for n in model.graph.node]
    assert "Attention" in types and types.count("Concat") == 2


def test_turned_keys_used_elsewhere() -> None:
    """The keys stay as they are: something else reads them."""
    text = ATTENTION.replace("Y = Trans", "R = Neg(Kr) Y = Trans")
    text = text.replace("8] L) <", "8] L, float[b, 2, q, 8] R) <")
    options = OptimizationOptions(patterns=PATTERNS)
    builder = GraphBuilder(
        model_from_text(text, 23), infer_shapes_options=True, optimization_options=options
    )
    types = [n.op_type for n in builder.to_onnx().graph.node]
    assert types.count("Transpose") == 4 and "Attention" in types
