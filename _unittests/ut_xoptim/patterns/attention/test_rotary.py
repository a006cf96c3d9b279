"""Rotary embeddings: local functions, then the operator of opset 23."""

from __future__ import annotations

import pytest
from ut_xoptim.prepared import check_prepared, prepared_tests

from xbuilder import GraphBuilder
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_no_match, check_pattern, model_from_text

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
    model = check_pattern(FORMS[name], None, selection, opset=23, atol=1e-5)
    assert [n.op_type for n in model.graph.node].count("RotaryEmbedding") == 1
    assert not model.functions and "intermediate" not in {o.domain for o in model.opset_import}
    assert not {"Neg", "Add"} & {n.op_type for n in model.graph.node}


#: name -> model, pattern, reason
REFUSED = {
    "rank 3": (
        rotary(ANGLES + HALVES + TURNED + SUM.replace("c)", "c0)").replace("s)", "s0)"), "b, q, 4"),
        "FunctionHalfRotaryEmbedding", "rank is not 4",
    ),
    "unequal parts": (
        rotary(TABLES + "v, u = Split<axis = -1>(X, thirds) " + TURNED + SUM),
        "FunctionHalfRotaryEmbedding", "halves of a known length",
    ),
    "another axis": (
        rotary(TABLES + HALVES.replace("-1", "1") + TURNED + SUM, "b, 4, q, 4"),
        "FunctionHalfRotaryEmbedding", "along the last axis",
    ),
    "first half negative": (
        rotary(TABLES + "v, u = Split<axis = -1>(X, halves) " + TURNED + SUM),
        "FunctionHalfRotaryEmbedding", "not the only use|no Neg",
    ),
    "halves not swapped": (
        rotary(BODY.replace("Concat<axis = -1>(n, u)", "Concat<axis = -1>(u, n)")),
        "FunctionHalfRotaryEmbedding", "not .-x2, x1.",
    ),
    "another operand": (
        rotary(BODY.replace("Mul(X, c)", "Mul(c, c)")),
        "FunctionHalfRotaryEmbedding", "not one of x",
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
        "FunctionCosSinCache", "not one Sin",
    ),
    "angles along another axis": (
        rotary(BODY.replace("Concat<axis = -1>(a, a)", "Concat<axis = 1>(a, a)")),
        "FunctionCosSinCache", "the axis is not the last one",
    ),
    "two tables": (
        rotary(BODY.replace("(a, a)", "(a, p, p)")), "FunctionCosSinCache", "not twice the same",
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
