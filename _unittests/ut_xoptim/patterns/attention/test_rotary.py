"""Rotary embeddings: local functions, then the operator of opset 23."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.prepared import check_prepared, prepared_tests

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)
from xoptim.testing.running import make_feeds, run_onnxruntime, run_reference

ANGLES = "a = Mul(p, f) aa = Concat<axis = -1>(a, a) c0 = Cos(aa) s0 = Sin(aa) "
TABLES = ANGLES + "c = Unsqueeze(c0, one) s = Unsqueeze(s0, one) "
HALVES = "u, v = Split<axis = -1>(X, halves) "
TURNED = "n = Neg(v) t = Concat<axis = -1>(n, u) "
SUM = "l = Mul(X, c) r = Mul(t, s) Y = Add(l, r)"
BODY = TABLES + HALVES + TURNED + SUM
FUNCTION = "FunctionHalfRotaryEmbedding"
FUNCTIONS = f"{FUNCTION},FunctionCosSinCache"


def rotary(body: str = BODY, x: str = "b, 2, q, 4", p: str = "1, q, 1", out: str = "Y") -> str:
    """A rotary embedding, positions and frequencies are inputs."""
    shape = x if out == "Y" else "c, d, e, f"
    return f"""agraph (float[{x}] X, float[{p}] p, float[2] f) => (float[{shape}] {out}) <
    int64[1] one = {{1}}, int64[2] halves = {{2, 2}}, int64[2] thirds = {{1, 3}},
    int64[2] parts = {{4, 2}}, float two = {{2}}, float[2] pair = {{1, 2}}
> {{
    {body}
}}"""


#: what the documentation draws: name -> (before, after)
MODELS = {
    "FunctionHalfRotaryEmbedding": (
        rotary(),
        rotary(TABLES + "Y = intermediate.HalfRotaryEmbedding(X, c, s, halves)"),
    ),
    "FunctionCosSinCache": (
        rotary(),
        rotary(BODY.replace(ANGLES, "c0, s0 = intermediate.CosSinCache(p, f) ")),
    ),
}
test_functions = prepared_tests(MODELS)
OPERATOR = {
    "RotaryEmbedding": (
        rotary(x="1, 2, q, 4"),
        rotary(
            "a = Mul(p, f) c0 = Cos(a) c1 = Unsqueeze(c0, one) c = Squeeze(c1, one) "
            "s0 = Sin(a) s1 = Unsqueeze(s0, one) s = Squeeze(s1, one) "
            "Y = RotaryEmbedding(X, c, s)",
            x="1, 2, q, 4",
        ),
    ),
}


def test_operator() -> None:
    before, after = OPERATOR["RotaryEmbedding"]
    check_pattern(before, after, f"{FUNCTIONS},RotaryEmbedding", opset=23, atol=1e-5)


def test_order_of_operands() -> None:
    swapped = BODY.replace("Mul(X, c)", "Mul(c, X)").replace("Add(l, r)", "Add(r, l)")
    check_prepared(rotary(swapped), MODELS["FunctionHalfRotaryEmbedding"][1], FUNCTION)


#: the halves are as long as the tables
UNKNOWN = "X = Concat<axis = -1>(A, B) " + BODY.replace(
    "Split<axis = -1>(X, halves)", "Split<axis = -1, num_outputs = 2>(X)"
)
#: name -> model; each ends with one RotaryEmbedding
FORMS = {
    "batch of one": rotary(x="1, 2, q, 4"),
    "one table for the batch": rotary(),
    "a table for each sequence": rotary(p="b, q, 1"),
    "tables of two dimensions": rotary(
        ANGLES + HALVES + TURNED + SUM.replace("c)", "c0)").replace("s)", "s0)"), p="q, 1"
    ),
    "tables of three dimensions": rotary(
        ANGLES + HALVES + TURNED + SUM.replace("c)", "c0)").replace("s)", "s0)")
    ),
    "scaled tables": rotary(
        BODY.replace("Cos(aa)", "Cos(aa) c1 = Mul(c0, two)").replace("Unsqueeze(c0", "Unsqueeze(c1")
    ),
    "tables joined after": rotary(
        "a = Mul(p, f) h = Cos(a) c0 = Concat<axis = 2>(h, h) g = Sin(a) "
        "s0 = Concat<axis = 2>(g, g) c = Unsqueeze(c0, one) s = Unsqueeze(s0, one) "
        + HALVES + TURNED + SUM
    ),
    "halves of an unknown length": rotary(UNKNOWN, x="b, 2, q, g")
    .replace("float[b, 2, q, g] X", "float[b, 2, q, e] A, float[b, 2, q, e] B")
    .replace("[2] f", "[e] f"),
    "tables of an even length": rotary(BODY).replace("[2] f", "[e] f"),
    "a part of the heads": rotary(
        TABLES + "X4, X2 = Split<axis = 3>(X, parts) "
        + (HALVES + TURNED + SUM).replace("X", "X4").replace("Y =", "Y4 =")
        + " Y = Concat<axis = 3>(Y4, X2)",
        x="b, 2, q, 6",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_rotary_embedding(name: str) -> None:
    selection = f"{FUNCTIONS},RotaryEmbedding"
    sizes = [{"b": 2, "q": 3, "e": 2}, {"b": 1, "q": 1, "e": 2}]
    model = check_pattern(FORMS[name], None, selection, opset=23, atol=1e-5, sizes=sizes)
    assert [n.op_type for n in model.graph.node].count("RotaryEmbedding") == 1
    assert not model.functions and "intermediate" not in {o.domain for o in model.opset_import}
    assert not {"Neg", "Add"} & {n.op_type for n in model.graph.node}


#: name -> model, pattern, reason
REFUSED = {
    "rank 3": (
        rotary(ANGLES + HALVES + TURNED + SUM.replace("c)", "c0)").replace("s)", "s0)"), "b, q, 4"),
        "FunctionHalfRotaryEmbedding", "not a half",
    ),
    "unequal parts": (
        rotary(TABLES + "v, u = Split<axis = -1>(X, thirds) " + TURNED + SUM),
        "FunctionHalfRotaryEmbedding", "not a half",
    ),
    "another axis": (
        rotary(TABLES + HALVES.replace("-1", "1") + TURNED + SUM, "b, 4, q, 4"),
        "FunctionHalfRotaryEmbedding", "not a half",
    ),
    "first half negative": (
        rotary(TABLES + "v, u = Split<axis = -1>(X, halves) " + TURNED + SUM),
        "FunctionHalfRotaryEmbedding", "not the first and the second elements",
    ),
    "halves not swapped": (
        rotary(BODY.replace("Concat<axis = -1>(n, u)", "Concat<axis = -1>(u, n)")),
        "FunctionHalfRotaryEmbedding", "cannot be 'n'",
    ),
    "another operand": (
        rotary(BODY.replace("Mul(X, c)", "Mul(c, c)")),
        "FunctionHalfRotaryEmbedding", "not those of x",
    ),
    "x is broadcast": (
        rotary(x="1, 2, q, 4", p="b, q, 1", out="Y1").replace("Y =", "Y1 ="),
        "FunctionHalfRotaryEmbedding", "may be broadcast",
    ),
    "half used elsewhere": (
        rotary(BODY.replace("Y = Add(l, r)", "Y0 = Add(l, r) w = Concat<axis=-1>(u, u) Y = Add(Y0, w)")),
        "FunctionHalfRotaryEmbedding", "used elsewhere|not the only use",
    ),
    "other angles": (
        rotary(BODY.replace("Sin(aa)", "Sin(bb)").replace("c0 =", "bb = Concat<axis = -1>(p, p) c0 =")),
        "FunctionCosSinCache", "Sin was expected",
    ),
    "angles along another axis": (
        rotary(BODY.replace("Concat<axis = -1>(a, a)", "Concat<axis = 1>(a, a)")),
        "FunctionCosSinCache", "the axis is not the last one",
    ),
    "two tables": (
        rotary(BODY.replace("(a, a)", "(a, p, p)")), "FunctionCosSinCache", "Concat has 3 inputs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    check_no_match(*REFUSED[name])


@pytest.mark.parametrize(
    ("body", "x", "p"),
    [
        (
            BODY.replace("(a, a)", "(a, b)").replace("aa =", "b = Neg(a) aa ="),
            "b, 2, q, 4",
            "1, q, 1",
        ),
        (BODY, "b, 2, q, 4", "b, 1, 1"),
        (BODY, "b, 2, q, 4", "b, w, 1"),
    ],
)
def test_functions_that_stay_alone_are_put_back(body: str, x: str, p: str) -> None:
    """The halves differ, or the number of positions: the nodes are what they were."""
    text = rotary(body, x, p)
    model = model_from_text(text, 23)
    builder = GraphBuilder(model, infer_shapes_options=True)
    optimizer = GraphBuilderPatternOptimization(builder, f"{FUNCTIONS},RotaryEmbedding")
    optimizer.optimize()
    result = builder.to_onnx(optimize=False)
    assert sorted(n.op_type for n in result.graph.node) == sorted(
        n.op_type for n in model.graph.node
    )
    assert not result.functions


def test_double_stays() -> None:
    text = rotary().replace("float", "double")
    builder = GraphBuilder(model_from_text(text, 23), infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, f"{FUNCTIONS},RotaryEmbedding").optimize()
    assert "RotaryEmbedding" not in {n.op_type for n in builder.graph.nodes}


# -- RotaryEmbedding that reads three dimensions, the attention after as well; one table for
# several sequences

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
FLAT_MODELS = {
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
FLAT_REFUSED = {
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
test_rewrites = rewrite_tests(FLAT_MODELS, **OPTIONS)
test_flat_refuses = refusal_tests(FLAT_REFUSED, opset=23)


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


# -- RotaryConcatPart: parts beside zeros are concatenated instead of added

NAME = "RotaryConcatPart"
SIZES = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3},
    int64[2, 1] first = {0, 1}, int64[3, 1] last = {-3, 3, -1}, int64[2, 2] cells = {0, 0, 1, 1},
    int64[2, 1] apart = {0, 2}, int64[0, 1] none = {}, int64[3, 1] far = {3, 4, 5},
    float[1, 2] z2 = {0, 0}, float[1, 3] z3 = {0, 0, 0}, float[1, 2] z21 = {0, 1}"""


def parts(body: str, a: str = "float[1, 3] a", b: str = "float[1, 2] b", y: str = "1, 5") -> str:
    """A sum of parts."""
    return f"agraph ({a}, {b}) => (float[{y}] y) <{SIZES}> {{ {body} }}"


def rows(body: str, a: str = "float[2, n] a", b: str = "float[3, n] b") -> str:
    """A sum of rows written on zeros of the shape of one of both."""
    zeros = (
        "n = Shape<start = 1>(a) s5 = Concat<axis = 0>(five, n) z5 = ConstantOfShape(s5) "
        "s3 = Concat<axis = 0>(three, n) z3d = ConstantOfShape(s3) "
    )
    return parts(zeros + body, a, b, "5, n").replace("<int64", "<int64[1] five = {5}, int64")


PADS = """<int64[4] before = {0, 2, 0, 0}, int64[4] after = {0, 0, 0, 3}, int64[2] ends = {2, 2},
    int64[1] column = {-1}, int64[4] twice = {1, 2, 0, 0}, int64[4] less = {0, 3, 0, -1},
    float filler = {1}, int64"""
SIDES = "l = Concat<axis = 1>(z2, a) r = Concat<axis = -1>(b, z3) y = Add(l, r)"
WRITTEN = "l = ScatterND(z5, first, a) r = ScatterND(z5, last, b) y = Add(l, r)"
MIXED = "l = Concat<axis = 0>(a, z3d) r = ScatterND(z5, last, b) y = Add(l, r)"
JOINED = parts("y = Concat<axis = 0>(a, b)", "float[2, n] a", "float[3, n] b", "5, n")
#: symbolic dimension before the axis, zeros made of its shape
DYNAMIC = """n = Shape<start = 0, end = 1>(a) s3 = Concat<axis = 0>(n, three) z = ConstantOfShape(s3)
    s2 = Concat<axis = 0>(n, two) w = ConstantOfShape(s2)
    l = Concat<axis = 1>(w, a) r = Concat<axis = 1>(b, z) y = Add(l, r)"""
PARTS_MODELS = {
    NAME: {
        "two halves": (parts(SIDES), parts("y = Concat<axis = 1>(b, a)")),
        "a dimension that is not known": (
            parts(DYNAMIC, "float[n, 3] a", "float[n, 2] b", "n, 5"),
            parts("y = Concat<axis = 1>(b, a)", "float[n, 3] a", "float[n, 2] b", "n, 5"),
        ),
        "several parts on a side": (
            parts(
                "l = Concat<axis = 1>(b, z3, b) r = Concat<axis = 1>(z2, a, z2) y = Add(l, r)",
                y="1, 7",
            ),
            parts("y = Concat<axis = 1>(b, a, b)", y="1, 7"),
        ),
        "zeros in pieces, an empty part": (
            parts(
                "l = Concat<axis = 1>(z2, z3, b, e) r = Concat<axis = 1>(b, a, e, z2) "
                "y = Add(l, r)",
                a="float[1, 3] a, float[1, 0] e",
                y="1, 7",
            ),
            parts("y = Concat<axis = 1>(b, a, b)", a="float[1, 3] a, float[1, 0] e", y="1, 7"),
        ),
        "rows written on zeros": (rows(WRITTEN), JOINED),
        "rows added to zeros": (
            rows(WRITTEN.replace("ScatterND(", 'ScatterND<reduction = "add">(')),
            JOINED,
        ),
        "a Concat and rows": (rows(MIXED), JOINED),
        "rows written twice": (
            rows(
                "l0 = ScatterND(z5, top, t) l = ScatterND(l0, next, u) r = ScatterND(z5, last, b) y = Add(l, r)",
                "float[1, n] t, float[1, n] u, float[2, n] a",
            ).replace(
                "int64[2, 1] first",
                "int64[1, 1] top = {0}, int64[1, 1] next = {-4}, int64[2, 1] first",
            ),
            parts(
                "y = Concat<axis = 0>(t, u, b)",
                "float[1, n] t, float[1, n] u, float[2, n] a",
                "float[3, n] b",
                "5, n",
            ),
        ),
        "zeros around": (
            parts("l = Pad(a, before) r = Pad(b, after) y = Add(l, r)").replace("<int64", PADS),
            parts("y = Concat<axis = 1>(b, a)"),
        ),
        "zeros around, along one axis, and a Concat": (
            parts(
                "l = Pad(a, ends, , column) r = Concat<axis = 1>(b, z3, b) y = Add(l, r)", y="1, 7"
            ).replace("<int64", PADS),
            parts("y = Concat<axis = 1>(b, a, b)", y="1, 7"),
        ),
        "a side is used elsewhere": (
            parts(SIDES.replace("y = Add(l, r)", "t = Add(l, r) y = Sub(t, l)")),
            parts("l = Concat<axis = 1>(z2, a) t = Concat<axis = 1>(b, a) y = Sub(t, l)"),
        ),
    }
}
PARTS_REFUSED = {
    NAME: {
        "another operand": (
            parts("l = Concat<axis = 1>(z2, a) r = Concat<axis = 1>(b, z3) n = Neg(r) y = Add(l, n)"),
            "both sides are not Concat, Pad or ScatterND",
        ),
        "not zeros": (parts(SIDES.replace("z2", "z21")), "a part is not beside zeros"),
        "both at one place": (
            parts("l = Concat<axis = 1>(z2, a) r = Concat<axis = 1>(z3, b) y = Add(l, r)"),
            "a part is not beside zeros",
        ),
        "zeros beside zeros": (
            parts(
                "l = Concat<axis = 1>(z2, a, z2) r = Concat<axis = 1>(b, z3, z2) y = Add(l, r)",
                y="1, 7",
            ),
            "zeros are beside zeros",
        ),
        "a length that is not known": (
            parts(SIDES, b="float[1, m] b", y="c, d"),
            "the length of a part is not known",
        ),
        "broadcast": (
            parts(DYNAMIC.replace("(b, z)", "(b, z3)"), "float[n, 3] a", y="n, 5"),
            "one side may be broadcast",
        ),
        "other axes": (
            "agraph (float[2, 5] a, float[4, 2] b) => (float[4, 5] y) <float[2, 5] z = "
            "{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, float[4, 3] w = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}>"
            "{ l = Concat<axis = 0>(a, z) r = Concat<axis = 1>(b, w) y = Add(l, r) }",
            "the axes are not the same",
        ),
        "rows written at the same place": (
            rows("l0 = ScatterND(z5, first, a) l = ScatterND(l0, first, a) r = ScatterND(z5, last, b) y = Add(l, r)"),
            "a part is not beside zeros",
        ),
        "ones around": (
            parts("l = Pad(a, before, filler) r = Pad(b, after) y = Add(l, r)").replace("<int64", PADS),
            "zeros are not added along one axis",
        ),
        "reflections around": (
            parts("l = Pad<mode = \"reflect\">(a, before) r = Pad(b, after) y = Add(l, r)").replace("<int64", PADS),
            "zeros are not added along one axis",
        ),
        "zeros along two axes": (
            parts("l = Pad(a, twice) r = Pad(b, after) y = Add(l, r)", y="2, 5").replace("<int64", PADS),
            "zeros are not added along one axis",
        ),
        "an end that is removed": (
            parts("l = Pad(a, less) r = Pad(b, after) y = Add(l, r)").replace("<int64", PADS),
            "zeros are not added along one axis",
        ),
        "a padded length that is not known": (
            parts("l = Pad(a, before) r = Pad(b, after) y = Add(l, r)", a="float[1, m] a", y="c, d").replace("<int64", PADS),
            "the length of a part is not known",
        ),
        "rows on something else": (
            rows(WRITTEN.replace("ScatterND(z5, first", "ScatterND(c, first"), "float[2, n] a, float[5, n] c"),
            "rows are not written on zeros",
        ),
        "the largest of the rows": (
            rows(WRITTEN.replace("ScatterND(", 'ScatterND<reduction = "max">(')),
            "the reduction may keep a zero",
        ),
        "rows that are not constant": (
            rows(WRITTEN.replace("last, b", "i, b"), b="float[3, n] b, int64[3, 1] i"),
            "the rows are not known",
        ),
        "cells": (
            rows(
                WRITTEN.replace("first, a", "cells, v"), "float[2, n] a, float[2] v"
            ),
            "what is written is not whole rows",
        ),
        "rows that do not follow each other": (
            rows(WRITTEN.replace("first", "apart")),
            "the rows do not follow each other",
        ),
        "a row out of range": (
            rows(WRITTEN.replace("last", "far")),
            "the rows do not follow each other",
        ),
        "no row": (
            rows(WRITTEN.replace("first, a", "none, e"), "float[2, n] a, float[0, n] e"),
            "no row is written",
        ),
    }
}  # fmt: skip

test_parts_rewrites = rewrite_tests(PARTS_MODELS)
test_parts_refuses = refusal_tests(PARTS_REFUSED)


def test_a_half_turned() -> None:
    """The nodes FunctionHalfRotaryEmbedding matches are there afterwards."""
    check_pattern(
        "agraph (float[n, 4] x) => (float[n, 4] y) <int64[2] halves = {2, 2}, int64[1] two = {2}> {"
        "u, v = Split<axis = 1>(x, halves) w = Neg(v) n = Shape<end = 1>(x) "
        "s = Concat<axis = 0>(n, two) z = ConstantOfShape(s) "
        "l = Concat<axis = 1>(w, z) r = Concat<axis = 1>(z, u) y = Add(l, r) }",
        "agraph (float[n, 4] x) => (float[n, 4] y) <int64[2] halves = {2, 2}> {"
        "u, v = Split<axis = 1>(x, halves) w = Neg(v) y = Concat<axis = 1>(w, u) }",
        NAME,
    )


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    sides=st.integers(0, 31),
    axis=st.integers(-2, 1),
    wrong=st.integers(0, 5),
)
def test_any_parts(lengths: list[int], sides: int, axis: int, wrong: int) -> None:
    """Parts on one side or the other; zeros of one of them may be something else."""
    inputs, constants, left, right = [], [], [], []
    for i, n in enumerate(lengths):
        shape = f"2, {n}" if axis % 2 else f"{n}, 2"
        value = 1 if i == wrong else 0
        inputs.append(f"float[{shape}] p{i}")
        constants.append(f"float[{shape}] z{i} = {{{', '.join([str(value)] * (2 * n))}}}")
        a, b = (left, right) if sides >> i & 1 else (right, left)
        a.append(f"p{i}")
        b.append(f"z{i}")
    total = f"2, {sum(lengths)}" if axis % 2 else f"{sum(lengths)}, 2"
    text = (
        f"agraph ({', '.join(inputs)}) => (float[{total}] y) <{', '.join(constants)}> {{"
        f"l = Concat<axis = {axis}>({', '.join(left)}) r = Concat<axis = {axis}>({', '.join(right)})"
        "y = Add(l, r) }"
    )
    model = model_from_text(text, 18)
    done = wrong >= len(lengths) or lengths[wrong] == 0
    if done and sum(lengths):
        found = check_pattern(model, None, NAME)
        assert "Add" not in {n.op_type for n in found.graph.node}
    else:
        result, _, _ = optimize_with(model, NAME)
        assert "Add" in {n.op_type for n in result.graph.node} or not sum(lengths)
