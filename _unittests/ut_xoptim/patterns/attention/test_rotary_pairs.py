"""Rotary embeddings of neighbours, and those that are written in two parts."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from ut_xbuilder.graph_checks import op_types, run_onnxruntime
from ut_xoptim.prepared import prepared_tests

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_pattern, model_from_text, refusal_tests

ANGLES = "a = Mul(p, f) "
REPEAT = "{0}u = Unsqueeze({0}, last) {0}w = Expand({0}u, twice) {0}t = Reshape({0}w, table) "
TABLES = (
    ANGLES + REPEAT.format("a") + "c0 = Cos(at) s0 = Sin(at) c = Unsqueeze(c0, one) "
    "s = Unsqueeze(s0, one) "
)
SLICES = "x0 = Slice(X, first, end, last, two) x1 = Slice(X, one, end, last, two) "
STACK = (
    "n = Neg(x1) n1 = Unsqueeze(n, last) x2 = Unsqueeze(x0, last) k = Concat<axis = -1>(n1, x2) "
    "t = Reshape(k, shape) "
)
SUM = "l = Mul(X, c) r = Mul(t, s) Y = Add(l, r)"
BODY = TABLES + SLICES + STACK + SUM
#: the other ways neighbours are read
PAIRS = "g = Reshape(X, pairs) "
SPLIT = PAIRS + "h0, h1 = Split<axis = -1>(g, ones) x0 = Squeeze(h0, last) x1 = Squeeze(h1, last) "
GATHER = PAIRS + "x0 = Gather<axis = 4>(g, i0) x1 = Gather<axis = -1>(g, i1) "
COLUMNS = (
    PAIRS + "h0, h1 = Split<axis = 4>(g, ones) n = Neg(h1) k = Concat<axis = -1>(n, h0) "
    "t = Reshape(k, shape) "
)
#: cosines and sines of each pair
HALF_TABLES = ANGLES + "c0 = Cos(a) s0 = Sin(a) c = Unsqueeze(c0, one) s = Unsqueeze(s0, one) "
PARTS = "u0 = Mul(x0, c) u1 = Mul(x1, s) u = Sub(u0, u1) v0 = Mul(x1, c) v1 = Mul(x0, s) v = Add(v0, v1) "
SIDE = "w0 = Unsqueeze(u, last) w1 = Unsqueeze(v, last) w = Concat<axis = -1>(w0, w1) Y = Reshape(w, shape)"
HALVES = "x0, x1 = Split<axis = -1>(X, halves) "
#: sines with a sign, x is turned without a negation
SIGNED_TABLES = (
    ANGLES + "c0 = Cos(a) s0 = Sin(a) n0 = Neg(s0) c1 = Concat<axis = -1>(c0, c0) "
    "s1 = Concat<axis = -1>(n0, s0) c = Unsqueeze(c1, one) s = Unsqueeze(s1, one) "
)
SIGNED_PAIRS = (
    ANGLES + "c0 = Cos(a) s0 = Sin(a) "
    "c1 = Unsqueeze(c0, last) c2 = Concat<axis = -1>(c1, c1) c3 = Reshape(c2, table) "
    "s1 = Unsqueeze(s0, last) m1 = Neg(s1) s2 = Concat<axis = -1>(m1, s1) s3 = Reshape(s2, table) "
    "c = Unsqueeze(c3, one) s = Unsqueeze(s3, one) "
)
ROLLED = HALVES + "t = Concat<axis = -1>(x1, x0) "
FLIPPED = "g = Reshape(X, pairs) w = Slice(g, last, low, axis{0}, last) t = Reshape(w, shape) "
NEIGHBOURS, TWO_PARTS = "FunctionInterleavedRotaryEmbedding", "FunctionRotaryEmbeddingParts"
SIGNED = "FunctionSignedRotaryEmbedding"
FUNCTIONS = f"{NEIGHBOURS},{TWO_PARTS},{SIGNED}"


def rotary(
    body: str = BODY, x: str = "b, 2, q, 4", p: str = "1, q, 1", kind: str = "float", f: str = "2"
) -> str:
    """A rotary embedding, positions and frequencies are inputs."""
    return f"""agraph ({kind}[{x}] X, {kind}[{p}] p, {kind}[{f}] f) => ({kind}[{x}] Y) <
    int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] last = {{-1}}, int64[1] first = {{0}},
    int64[1] end = {{1000}}, int64[4] twice = {{1, 1, 1, 2}}, int64[3] table = {{0, -1, 4}},
    int64[4] shape = {{0, 0, -1, 4}}, int64[5] pairs = {{0, 0, -1, 2, 2}}, int64[2] ones = {{1, 1}},
    int64 i0 = {{0}}, int64 i1 = {{1}}, int64[2] halves = {{2, 2}}, int64[2] parts = {{4, 2}},
    int64[2] thirds = {{1, 3}}, int64[1] three = {{3}}, int64[1] axis2 = {{2}},
    float[1] minus = {{-1}}, int64[1] axis3 = {{3}}, int64[1] axis4 = {{-1}}, int64[1] low = {{-9}},
    float[1, 1, 3, 4] same = {{1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6}},
    float[1, 1, 3, 4] signed = {{-1, 2, 1, -2, -3, 4, 3, -4, 0, 6, 0, -6}},
    float[1, 1, 3, 4] even = {{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}},
    float[1, 1, 3, 4] odd = {{1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 7}}
> {{
    {body}
}}"""


CALL = "Y = intermediate.InterleavedRotaryEmbedding(X, c, s, "
#: what the documentation draws: name -> (before, after)
MODELS = {
    NEIGHBOURS: (
        rotary(),
        rotary(TABLES + CALL + "first, end, last, two, one, shape)"),
    ),
    TWO_PARTS: (
        rotary(HALF_TABLES + HALVES + PARTS + "Y = Concat<axis = -1>(u, v)"),
        rotary(HALF_TABLES + "Y = intermediate.HalfRotaryEmbedding(X, c, s, halves)"),
    ),
    SIGNED: (
        rotary(SIGNED_TABLES + ROLLED + SUM),
        rotary(SIGNED_TABLES + "Y = intermediate.SignedHalfRotaryEmbedding(X, c, s, halves)"),
    ),
}
test_functions = prepared_tests(MODELS)

#: heads after the sequence
LATER = "b, q, 2, 4"


def later(body: str) -> str:
    """The same with the heads on axis 2."""
    return body.replace("c = Unsqueeze(c0, one) s = Unsqueeze(s0, one)",
                        "c = Unsqueeze(c0, axis2) s = Unsqueeze(s0, axis2)")  # fmt: skip


def partial(body: str) -> str:
    """Four elements of each head are turned, two are not."""
    turned = body.replace("X", "X4").replace("Y", "Y4")
    return f"X4, X2 = Split<axis = 3>(X, parts) {turned} Y = Concat<axis = 3>(Y4, X2)"


INDICES = SLICES.replace("end, last, two", "end, three, two")
CONCATS = (
    "{0}u = Unsqueeze({0}, last) {0}w = Concat<axis = -1>({0}u, {0}u) {0}t = Reshape({0}w, table) "
)
TILES = REPEAT.replace("Expand", "Tile")
#: name -> (model, attributes of the operator)
FORMS = {
    "slices": (rotary(), {"interleaved": 1}),
    "another way to write the axis": (rotary(TABLES + INDICES + STACK + SUM), {"interleaved": 1}),
    "columns of pairs, squeezed": (rotary(TABLES + SPLIT + STACK + SUM), {"interleaved": 1}),
    "columns of pairs, read": (rotary(TABLES + GATHER + STACK + SUM), {"interleaved": 1}),
    "columns of pairs": (rotary(TABLES + COLUMNS + SUM), {"interleaved": 1}),
    "tables repeated by Tile": (
        rotary(BODY.replace(REPEAT.format("a"), TILES.format("a"))), {"interleaved": 1},
    ),
    "tables repeated by Concat": (
        rotary(BODY.replace(REPEAT.format("a"), CONCATS.format("a"))), {"interleaved": 1},
    ),
    "other order": (
        rotary(BODY.replace("(X, c)", "(c, X)").replace("(t, s)", "(s, t)").replace("(l, r)", "(r, l)")),
        {"interleaved": 1},
    ),
    "heads after": (rotary(later(BODY), LATER), {"interleaved": 1, "num_heads": 2}),
    "a part of each": (
        rotary(partial(BODY), "b, 2, q, 6"), {"interleaved": 1, "rotary_embedding_dim": 4},
    ),
    "a part of each, heads after": (
        rotary(partial(later(BODY)), "b, q, 2, 6"),
        {"interleaved": 1, "rotary_embedding_dim": 4, "num_heads": 2},
    ),
    "two parts": (rotary(HALF_TABLES + SLICES + PARTS + SIDE), {"interleaved": 1}),
    "two parts, heads after": (
        rotary(later(HALF_TABLES + GATHER + PARTS + SIDE), LATER), {"interleaved": 1, "num_heads": 2},
    ),
    "two parts, halves": (MODELS[TWO_PARTS][0], {}),
    "two parts, tables of rank 3": (
        rotary(ANGLES + "c = Cos(a) s = Sin(a) " + SLICES + PARTS + SIDE), {"interleaved": 1},
    ),
    "two parts, tables of rank 2": (
        rotary(ANGLES + "c = Cos(a) s = Sin(a) " + HALVES + PARTS + "Y = Concat<axis = -1>(u, v)",
               p="q, 1"), {},
    ),
    "two parts, other order": (
        rotary(HALF_TABLES + HALVES + PARTS.replace("(x0, c)", "(c, x0)").replace("(v0, v1)", "(v1, v0)")
               + "Y = Concat<axis = -1>(u, v)"), {},
    ),
    "constant tables": (
        rotary((SLICES + STACK + SUM).replace("c)", "even)").replace("s)", "even)"), "b, 2, 3, 4"),
        {"interleaved": 1},
    ),
}  # fmt: skip
#: a product by -1 in the place of Neg
OPPOSITE = STACK.replace("n = Neg(x1)", "n = Mul(x1, minus)")
OPPOSITE_HALVES = HALVES + "n = Mul(minus, x1) t = Concat<axis = -1>(n, x0) " + SUM
FORMS |= {
    "halves times -1": (
        rotary(HALF_TABLES.replace("c =", "c2 =").replace("s =", "s2 =")
               + "c = Concat<axis = -1>(c2, c2) s = Concat<axis = -1>(s2, s2) " + OPPOSITE_HALVES), {},
    ),
    "neighbours times -1": (
        rotary(TABLES + SLICES + OPPOSITE + SUM), {"interleaved": 1},
    ),
    "signed, halves": (rotary(SIGNED_TABLES + ROLLED + SUM), {}),
    "signed, flipped halves": (rotary(SIGNED_TABLES + FLIPPED.format(3) + SUM), {}),
    "signed, flipped pairs": (
        rotary(SIGNED_PAIRS + FLIPPED.format(4) + SUM), {"interleaved": 1},
    ),
    "signed, pairs": (
        rotary(SIGNED_PAIRS + SLICES + STACK.replace("n = Neg(x1) ", "").replace("(n,", "(x1,") + SUM),
        {"interleaved": 1},
    ),
    "signed, heads after": (
        rotary(later(SIGNED_TABLES.replace("(c1, one)", "(c1, axis2)").replace("(s1, one)", "(s1, axis2)")
                     + ROLLED + SUM), LATER), {"num_heads": 2},
    ),
    "signed, constants": (
        rotary((ROLLED + SUM).replace(" c)", " same)").replace(" s)", " signed)"), "b, 2, 3, 4"), {},
    ),
    "signed, a part of each": (
        rotary(partial(SIGNED_TABLES + ROLLED + SUM), "b, 2, q, 6"), {"rotary_embedding_dim": 4},
    ),
    "halves of two results": (
        rotary(HALF_TABLES + SLICES + PARTS + "Y = Concat<axis = -1>(u, v)"), {},
    ),
    "halves of two results, heads after": (
        rotary(later(HALF_TABLES + SLICES + PARTS + "Y = Concat<axis = 3>(u, v)"), LATER),
        {"num_heads": 2},
    ),
}  # fmt: skip
SIZES = [{"b": 2, "q": 3}, {"b": 1, "q": 1}, {"b": 3, "q": 70}]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    ("operator", "opset"), [("RotaryEmbedding", 23), ("ContribRotaryEmbedding", 18)]
)
def test_operator(operator: str, opset: int, name: str) -> None:
    text, expected = FORMS[name]
    sizes = [{"b": n["b"], "q": 3} for n in SIZES] if "constant" in name else SIZES
    patterns = f"{FUNCTIONS},{operator}"
    model = check_pattern(text, None, patterns, opset=opset, sizes=sizes, atol=1e-4, rtol=1e-5)
    (node,) = [n for n in model.graph.node if n.op_type == "RotaryEmbedding"]
    attributes = {a.name: a.i for a in node.attribute}
    if "num_heads" not in expected and "rotary_embedding_dim" in expected and node.domain:
        expected = {**expected, "num_heads": 2}
    assert attributes == expected
    assert not {"Neg", "Sub"} & {n.op_type for n in model.graph.node} and not model.functions


@pytest.mark.parametrize("sizes", [{"b": 0, "q": 3}, {"b": 2, "q": 0}])
def test_empty(sizes: dict[str, int]) -> None:
    patterns = f"{FUNCTIONS},ContribRotaryEmbedding"
    text = rotary(later(BODY), LATER).replace("{0, 0, -1, 4}", "{0, 0, 2, 4}")
    text = text.replace("{0, -1, 4}", "{1, 0, 4}")
    model = check_pattern(text, None, patterns, sizes=sizes)
    assert "RotaryEmbedding" in {n.op_type for n in model.graph.node}


#: tables that stay: name -> model
STAYS = {
    "sines without a sign": rotary(
        SIGNED_TABLES.replace("n0 = Neg(s0) ", "").replace("(n0, s0)", "(s0, s0)") + ROLLED + SUM
    ),
    "the other sign": rotary(SIGNED_TABLES.replace("(n0, s0)", "(s0, n0)") + ROLLED + SUM),
    "cosines with a sign": rotary(SIGNED_TABLES.replace("(c0, c0)", "(n0, c0)") + ROLLED + SUM),
    "angles with a sign": rotary(
        SIGNED_TABLES.replace(
            "s0 = Sin(a) n0 = Neg(s0)", "n0 = Neg(a) s2 = Concat<axis = -1>(n0, a)"
        ).replace("Concat<axis = -1>(n0, s0)", "Sin(s2)")
        + ROLLED
        + SUM
    ),
    "constants without a sign": rotary(
        (ROLLED + SUM).replace(" c)", " same)").replace(" s)", " even)"), "b, 2, 3, 4"
    ),
    "halves instead of neighbours": rotary(
        BODY.replace(REPEAT.format("a"), "at = Concat<axis = -1>(a, a) ")
    ),
    "neighbours instead of halves": rotary(
        TABLES + HALVES + "n = Neg(x1) t = Concat<axis = -1>(n, x0) " + SUM
    ),
    "neighbours that differ": rotary(
        BODY.replace("Concat<axis = -1>(au, au)", "Concat<axis = -1>(au, bu)").replace(
            "aw = Expand(au, twice)",
            "b = Neg(a) bu = Unsqueeze(b, last) aw = Concat<axis = -1>(au, bu)",
        )
    ),
    "constants that differ": rotary(
        (SLICES + STACK + SUM).replace("c)", "even)").replace("s)", "odd)"), "b, 2, 3, 4"
    ),
    "another number of positions": rotary(BODY, p="1, w, 1"),
    "heads that are not known": rotary(later(BODY), "b, q, h, 4"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_no_operator_takes_is_put_back(name: str) -> None:
    model = model_from_text(STAYS[name])
    builder = GraphBuilder(model, infer_shapes_options=True)
    patterns = f"{FUNCTIONS},FunctionHalfRotaryEmbedding,ContribRotaryEmbedding"
    GraphBuilderPatternOptimization(builder, patterns).optimize()
    found = sorted(n.op_type for n in builder.graph.nodes)
    assert found == sorted(n.op_type for n in model.graph.node)


JOIN = "Y = Concat<axis = -1>(u, v)"
NO_SIGN = SIGNED_TABLES + ROLLED + SUM
FLIP = SIGNED_TABLES + FLIPPED.format(3) + SUM
#: name -> case -> (model, reason)
REFUSED = {
    SIGNED: {
        "the first half first": (rotary(NO_SIGN.replace("(x1, x0)", "(x0, x1)")), "not the first and"),
        "another operand": (rotary(NO_SIGN.replace("Mul(X, c)", "Mul(c, c)")), "not those of x"),
        "x is broadcast": (
            rotary(NO_SIGN, "1, 2, q, 4", "b, q, 1").replace("[1, 2, q, 4] Y", "[b, 2, q, 4] Y"),
            "x may be broadcast",
        ),
        "joined along another axis": (
            rotary(SIGNED_TABLES + HALVES + "k = Concat<axis = 2>(x1, x0) t = Reshape(k, shape) " + SUM),
            "nor every other element",
        ),
        "it reverses nothing": (
            rotary(FLIP.replace("Slice(g, last, low, axis3, last)", "Slice(g, first, end, axis3, one)")),
            "does not reverse one axis",
        ),
        "it reverses a part": (
            rotary(FLIP.replace("low", "first")), "does not reverse one axis",
        ),
        "another axis": (
            rotary(FLIP.replace("axis3", "axis2")), "not two halves, nor pairs",
        ),
        "an odd length": (
            rotary(FLIP, "b, 2, q, 6", f="3").replace("2, 2}, int64[2] ones", "3, 2}, int64[2] ones")
            .replace("table = {0, -1, 4}", "table = {0, -1, 6}").replace("0, 0, -1, 4}", "0, 0, -1, 6}"),
            "not two halves, nor pairs",
        ),
    },
    NEIGHBOURS: {
        "another step": (
            rotary(BODY.replace("last, two", "last, one"), "b, 2, q, 4").replace("4] Y", "n] Y"),
            "nor every other element",
        ),
        "another axis": (
            rotary(BODY.replace("end, last, two", "end, axis2, two"), "b, 2, q, 4"),
            "nor every other element",
        ),
        "an odd length": (
            rotary(BODY, "b, 2, q, 5").replace("-1, 4}", "-1, 5}").replace("5] Y", "n] Y"),
            "nor every other element",
        ),
        "rank 3": (
            rotary(ANGLES + "c = Cos(a) s = Sin(a) " + SLICES + "n = Neg(x1) t = Concat<axis = -1>(n, x0) " + SUM,
                   "b, q, 4", f="4"),
            "nor every other element",
        ),
        "the first elements are negative": (
            rotary(BODY.replace("Neg(x1)", "Neg(x0)").replace("Unsqueeze(x0", "Unsqueeze(x1")),
            "not the first and the second elements",
        ),
        "another column": (
            rotary(TABLES + GATHER.replace("(g, i1)", "(g, i0)") + STACK + SUM),
            "not the first and the second elements",
        ),
        "others than those of x": (
            rotary(BODY.replace("x2 = Unsqueeze(x0, last)", "x2 = Unsqueeze(x1, last)")),
            "not the first and the second elements",
        ),
        "stacked before": (
            rotary(BODY.replace("n1 = Unsqueeze(n, last) x2 = Unsqueeze(x0, last)",
                                "n1 = Unsqueeze(n, three) x2 = Unsqueeze(x0, three)")
                   .replace("k = Concat<axis = -1>", "k = Concat<axis = 3>")),
            "not side by side",
        ),
        "one after the other": (
            rotary(BODY.replace("k = Concat<axis = -1>", "k = Concat<axis = 3>")),
            "not side by side",
        ),
        "the other way": (
            rotary(BODY.replace("(n1, x2)", "(x2, n1)")), "cannot be 'a Unsqueeze'",
        ),
        "another shape": (
            rotary(BODY.replace("Reshape(k, shape)", "Reshape(k, other)"), "b, h, q, 4", "1, 1, 1")
            .replace("int64 i0", "int64[4] other = {0, -1, 2, 4}, int64 i0")
            .replace("h, q, 4] Y", "j, k, 4] Y"),
            "the pairs do not get the shape of x",
        ),
        "another operand": (rotary(BODY.replace("Mul(X, c)", "Mul(c, c)")), "not those of x"),
        "x is broadcast": (
            rotary(BODY, "1, 2, q, 4", "b, q, 1").replace("[1, 2, q, 4] Y", "[b, 2, q, 4] Y"),
            "x may be broadcast",
        ),
        "used elsewhere": (
            rotary(BODY.replace("Y = Add(l, r)", "Y0 = Add(l, r) Y = Add(Y0, t)")),
            "an inner result is used elsewhere",
        ),
    },
    TWO_PARTS: {
        "no product": (
            rotary(HALF_TABLES + HALVES + PARTS.replace("Sub(u0, u1)", "Sub(u0, x1)") + JOIN),
            "no Mul before Sub",
        ),
        "unequal parts": (
            rotary("x0, x1 = Split<axis = -1>(X, thirds) u0 = Mul(x0, f) u1 = Mul(x1, f) "
                   "u = Sub(u0, u1) v0 = Mul(x1, f) v1 = Mul(x0, f) v = Add(v0, v1) Y = Concat<axis = -1>(u, v)", f="1")
            .replace("4] Y", "n] Y"),
            "may not have the same shape",
        ),
        "the second half first": (
            rotary(HALF_TABLES + HALVES.replace("x0, x1", "x1, x0") + PARTS + JOIN),
            "not the first and the second elements",
        ),
        "joined in another order": (
            rotary(HALF_TABLES + HALVES + PARTS + "Y = Concat<axis = -1>(v, u)"),
            "cannot be 'n'",
        ),
        "joined along another axis": (
            rotary(HALF_TABLES + HALVES + PARTS + "z = Concat<axis = 2>(u, v) Y = Reshape(z, shape)"),
            "not joined along the last axis",
        ),
        "another second part": (
            rotary(HALF_TABLES + HALVES + PARTS.replace("v1 = Mul(x0, s)", "v1 = Mul(x0, c)") + JOIN),
            "cannot be 'sin'",
        ),
        "a difference": (
            rotary(HALF_TABLES + HALVES + PARTS.replace("Add(v0", "Sub(v0") + JOIN), "no Add before",
        ),
        "tables of rank 5": (
            rotary(HALF_TABLES.replace("(s0, one)", "(s0, ends)")
                   + HALVES + PARTS + JOIN).replace("int64[1] last", "int64[2] ends = {0, 1}, int64[1] last"),
            "x may be broadcast",
        ),
        "one cosine for two results": (
            rotary(HALF_TABLES + SLICES + PARTS + JOIN, f="1"), "not one for each pair",
        ),
        "two results along another axis": (
            rotary(HALF_TABLES + SLICES + PARTS + "z = Concat<axis = 2>(u, v) Y = Reshape(z, shape)"),
            "not joined along the last axis",
        ),
        "two results are broadcast": (
            rotary(HALF_TABLES + SLICES + PARTS + JOIN, "1, 2, q, 4", "b, q, 1")
            .replace("[1, 2, q, 4] Y", "[b, 2, q, 4] Y"),
            "x may be broadcast",
        ),
        "one cosine": (
            rotary(HALF_TABLES + HALVES + PARTS + JOIN, f="1"), "not one for each pair",
        ),
        "x is broadcast": (
            rotary(HALF_TABLES + HALVES + PARTS + JOIN, "1, 2, q, 4", "b, q, 1")
            .replace("[1, 2, q, 4] Y", "[b, 2, q, 4] Y"),
            "x may be broadcast",
        ),
    },
}  # fmt: skip
test_refuses = refusal_tests(REFUSED)


FLOAT = onnx.TensorProto.FLOAT


def sliced(
    start: str = "half", end: str = "half", step: int = 1, length: str = "2*e", axis: int = 3
) -> GraphBuilder:
    """x * cos + Concat(-x[..., half:], x[..., :half]) * sin, where half is the length of f."""
    g = GraphBuilder(18)
    g.make_tensor_input("X", FLOAT, ("a", 3, "c", length))
    g.make_tensor_input("f", FLOAT, (1, 1, "c", "e"))
    angles = g.op.Concat("f", "f", axis=3)
    names = {
        "half": g.op.Shape("f", start=3, end=4),
        "one": np.array([1], dtype=np.int64),
        "zero": np.array([0], dtype=np.int64),
        "end": np.array([2**62], dtype=np.int64),
    }
    last = [np.array([axis], dtype=np.int64), np.array([step], dtype=np.int64)]
    first = g.op.Slice("X", names["zero"], names[end], *last)
    second = g.op.Slice("X", names[start], names["end"], *last)
    turned = g.op.Concat(g.op.Neg(second), first, axis=3)
    left = g.op.Mul("X", g.op.Cos(angles))
    g.op.Add(left, g.op.Mul(turned, g.op.Sin(angles)), outputs=["Y"])
    g.make_tensor_output("Y", FLOAT, (None, None, None, None))
    return g


def optimized(made: GraphBuilder) -> onnx.ModelProto:
    options = OptimizationOptions(patterns="default+onnxruntime")
    plain = made.to_onnx(optimize=False)
    options.trust_shapes = True
    return GraphBuilder(plain, optimization_options=options).to_onnx()


@pytest.mark.parametrize("length", ["2*e", "e*2"])
@pytest.mark.parametrize("sizes", [(2, 5, 4), (1, 1, 1), (3, 1, 8)])
def test_halves_are_slices(length, sizes):
    made = sliced(length=length)
    plain, found = made.to_onnx(optimize=False), optimized(made)
    assert op_types(found).count("RotaryEmbedding") == 1 and "Slice" not in op_types(found)
    batch, count, half = sizes
    rng = np.random.default_rng(0)
    feeds = {
        "X": rng.standard_normal((batch, 3, count, 2 * half)).astype(np.float32),
        "f": rng.standard_normal((1, 1, count, half)).astype(np.float32),
    }
    (expected,), (got,) = run_onnxruntime(plain, feeds), run_onnxruntime(found, feeds)
    np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"length": "n"},
        {"start": "one"},
        {"end": "one"},
        {"start": "zero", "end": "end"},
        {"step": 2},
        {"axis": 2},
    ],
    ids=["any length", "another start", "another end", "everything", "a step", "another axis"],
)
def test_slices_that_are_no_halves(kwargs):
    assert "RotaryEmbedding" not in op_types(optimized(sliced(**kwargs)))
