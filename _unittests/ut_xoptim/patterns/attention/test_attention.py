"""Attention: local functions, then the operator of opset 23."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from ut_xoptim.patterns_ort.attention.attention_texts import as_float16
from ut_xoptim.prepared import prepared_tests

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_no_match, check_pattern, model_from_text

FUSED = "m = com.microsoft.FusedMatMul<alpha = 0.5, transB = 1>(Q, K) "
KEYS = "kt = Transpose<perm = [0, 1, 3, 2]>(K) "
SCORES = "m = MatMul(Q, kt) s = Mul(m, scale) "
VALUES = "w = Softmax<axis = -1>(z) y = MatMul(w, V)"
GUARD = "w0 = Softmax<axis = -1>(z) i = IsNaN(w0) w = Where(i, zero, w0) y = MatMul(w, V)"
MASKED = "b = Where(c, zero, hidden) z = Add(s, b) "
PLAIN = KEYS + SCORES + VALUES.replace("(z)", "(s)")
GIVEN = KEYS + SCORES + "z = Add(s, b) " + VALUES
BODY = KEYS + SCORES + MASKED + VALUES
LOWEST = "-340282346638528859811704183484516925440"


def attention(
    body: str = BODY,
    q: str = "b, 4, s, 8",
    k: str = "b, 4, t, 8",
    v: str = "b, 4, t, 6",
    mask: str = "bool[b, 1, s, t] c",
    out: str = "b, 4, s, 6",
    hidden: str = LOWEST,
    outputs: str = "",
) -> str:
    """An attention whose heads are inputs."""
    inputs = ", ".join([f"float[{q}] Q, float[{k}] K, float[{v}] V", *([mask] if mask else [])])
    return f"""agraph ({inputs}) => (float[{out}] y{outputs}) <
    float scale = {{0.25}}, float zero = {{0}}, float four4 = {{4}}, float hidden = {{{hidden}}}, float[1, 1, 1, 1, 1]
    wide = {{2}}, int64[1] two = {{2}}, int64[5] spread = {{1, 1, 2, 1, 1}},
    int64[4] four = {{0, 4, -1, 8}}, int64 start = {{0}}, int64 step = {{1}}
> {{
    {body}
}}"""


REPEAT = "u{0} = Unsqueeze({0}, two) e{0} = Expand(u{0}, spread) r{0} = Reshape(e{0}, four) "
GROUPED = (
    REPEAT.format("K")
    + REPEAT.format("V")
    + BODY.replace("(K)", "(rK)").replace("MatMul(w, V)", "MatMul(w, rV)")
)
SHARED = {"k": "b, 2, t, 8", "v": "b, 2, t, 8", "out": "b, 4, s, 8"}
CALL = "intermediate.LocalAttention<guarded = 0, masked = 1, scale = 0.25>(Q, kt, V, b, scale)"
PREPARED = "FunctionAttention,FunctionAttentionGQA,"
#: what the documentation draws: name -> (before, after)
MODELS = {
    "FunctionAttention": (
        attention(),
        attention(KEYS + f"b = Where(c, zero, hidden) y = {CALL}"),
    ),
    "FunctionAttentionGQA": (
        attention(REPEAT.format("K") + REPEAT.format("V") + KEYS.replace("(K)", "(rK)")
                  + f"b = Where(c, zero, hidden) y = {CALL}".replace("V,", "rV,"), **SHARED),
        attention(
            "b = Where(c, zero, hidden) y = intermediate.LocalAttentionGQA"
            "<guarded = 0, masked = 1, scale = 0.25>(Q, K, V, b, two, spread, four, scale)", **SHARED
        ),
    ),
}  # fmt: skip
OPERATOR = {
    "AttentionGQA": (
        attention(mask=""  , body=PLAIN),
        attention(mask="", body="y = Attention<scale = 0.25>(Q, K, V)"),
    ),
    "AttentionAnyMask": (
        attention(GIVEN, mask="float[b, 1, s, t] b"),
        attention(
            "x = ReduceMax<keepdims = 1>(b, last) h = Mul(x, half) k = Greater(x, hidden) "
            "d = Where(k, zero, h) e = Add(b, d) y = Attention<scale = 0.25>(Q, K, V, e)",
            mask="float[b, 1, s, t] b",
        ).replace("int64 start", "float half = {-0.5}, int64[1] last = {-1}, int64 start"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATOR)
def test_operator(name: str) -> None:
    check_pattern(*OPERATOR[name], PREPARED + name, 23, atol=1e-5, rtol=1e-5)


test_functions = prepared_tests({"FunctionAttention": MODELS["FunctionAttention"]})
ALL = PREPARED + "AttentionGQA"
ANY = PREPARED + "AttentionAnyMask"


def at_opset(model: ModelProto, opset: int) -> ModelProto:
    """The same nodes in another opset."""
    model.opset_import[0].version = opset
    return model


def optimized(text: str, patterns: str, opset: int = 23) -> list[str]:
    """Operators left, patterns that prepare others included."""
    builder = GraphBuilder(model_from_text(text, opset), infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, patterns, verifies=True).optimize()
    return [node.op_type for node in builder.graph.nodes]


def test_grouped_function() -> None:
    """The second function holds a call to the first one."""
    builder = GraphBuilder(model_from_text(attention(GROUPED, **SHARED)), infer_shapes_options=True)
    optimizer = GraphBuilderPatternOptimization(builder, PREPARED.rstrip(","), verifies=True)
    optimizer.keeps_functions = True
    optimizer.optimize()
    assert [n.op_type for n in builder.graph.nodes] == ["Where", "LocalAttentionGQA"]
    call = builder.graph.nodes[1]
    assert list(call.input[:4]) == ["Q", "K", "V", "b"]


def hidden_rows(batch: int, steps: int, total: int) -> np.ndarray:
    """A mask: the first query of the first sequence sees nothing, others see something."""
    mask = np.random.default_rng(0).random((batch, 1, steps, total)) < 0.6
    mask[..., 0] = True
    mask[0, :, 0] = False
    return mask


def feeds(batch: int, steps: int, total: int, heads: int = 4, values: int = 6) -> dict:
    """Random heads."""
    rng = np.random.default_rng(1)
    shapes = {"Q": (4, steps, 8), "K": (heads, total, 8), "V": (heads, total, values)}
    rows = {n: rng.standard_normal((batch, *s)).astype(np.float32) for n, s in shapes.items()}
    return {**rows, "c": hidden_rows(batch, steps, total)}


ZEROS_OF_MASK = "shape = Shape(c) zeros = ConstantOfShape<value = float[1] {0}>(shape) "
SIZES = [(2, 3, 5), (1, 1, 4), (3, 7, 7)]
#: name -> model whose inputs are Q, K, V, c
FORMS = {
    "lowest float": attention(),
    "guarded infinity": attention(KEYS + SCORES + MASKED + GUARD, hidden="-inf"),
    "guarded lowest float": attention(KEYS + SCORES + MASKED + GUARD),
    "divided": attention(BODY.replace("Mul(m, scale)", "Div(m, scale)")),
    "scaled queries": attention(
        BODY.replace("m = MatMul(Q, kt) s = Mul(m, scale)", "q = Mul(Q, scale) s = MatMul(q, kt)")
    ),
    "factor first": attention(BODY.replace("Mul(m, scale)", "Mul(scale, m)")),
    "mask first": attention(BODY.replace("Add(s, b)", "Add(b, s)")),
    "no scale": attention(BODY.replace("s = Mul(m, scale) ", "").replace("(s, b)", "(m, b)")),
    "what is hidden": attention(BODY.replace("zero, hidden)", "hidden, zero)")),
    "what is hidden, guarded infinity": attention(
        KEYS + SCORES + MASKED.replace("zero, hidden)", "hidden, zero)") + GUARD, hidden="-inf"
    ),
    "what is hidden, infinity": attention(
        BODY.replace("zero, hidden)", "hidden, zero)"), hidden="-inf"
    ),
    "infinity": attention(hidden="-inf"),
    "another number": attention(hidden="-1e9"),
    "fused product": attention(FUSED + MASKED.replace("Add(s", "Add(m") + VALUES),
    "fused product that is scaled": attention(FUSED + "s = Div(m, four4) " + MASKED + VALUES),
    "fused product of transposed keys": attention(
        KEYS
        + FUSED.replace(", transB = 1>(Q, K)", ">(Q, kt)")
        + MASKED.replace("Add(s", "Add(m")
        + VALUES
    ),
    "another number, guarded": attention(KEYS + SCORES + MASKED + GUARD, hidden="-10000"),
    "zeros of the shape of the mask": attention(ZEROS_OF_MASK + BODY.replace("zero,", "zeros,")),
}


@pytest.mark.parametrize("name", FORMS)
def test_rows_that_see_nothing(name: str) -> None:
    """The result of a query everything is hidden from stays what it was, under both runtimes."""
    rows = [feeds(*sizes) for sizes in SIZES]
    model = model_of(FORMS[name])
    found = check_pattern(model, None, ALL, feeds=rows, atol=1e-5, rtol=1e-5)
    assert [n.op_type for n in found.graph.node].count("Attention") == 1
    types = {n.op_type for n in found.graph.node}
    assert "Softmax" not in types and ({"MatMul", "IsNaN"} <= types) is ("guarded" in name)
    assert ({"ReduceMax", "Sub"} <= types) is (name.endswith("infinity") and "guarded" not in name)


def model_of(text: str, opset: int = 23) -> ModelProto:
    """A model, of which the number that hides may be an infinity, which no text says."""
    model = model_from_text(text.replace("{-inf}", "{-3e38}"), opset)
    for tensor in model.graph.initializer:
        if tensor.name == "hidden" and "{-inf}" in text:
            tensor.ClearField("float_data")
            tensor.raw_data = np.float32(-np.inf).tobytes()
    return model


@pytest.mark.parametrize("mask", ["s, t", "1, s, t", "4, s, t", "1, 1, s, t"])
@pytest.mark.parametrize("hidden", ["-inf", "-1e9", LOWEST])
def test_masks_of_any_rank(mask: str, hidden: str) -> None:
    """The operator broadcasts them as the sum does."""
    given = feeds(2, 3, 5)
    rows = given["c"][:1, 0] if len(mask) > 4 else given["c"][0, 0]
    given["c"] = np.broadcast_to(
        rows, [{"s": 3, "t": 5}.get(d) or int(d) for d in mask.split(", ")]
    )
    model = model_of(attention(mask=f"bool[{mask}] c", hidden=hidden))
    found = check_pattern(model, None, ALL, feeds=[given], atol=1e-5, rtol=1e-5)
    assert "Softmax" not in {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("length", ["s", "5"])
def test_one_row_for_every_query(length: str) -> None:
    """It is repeated where there are as many keys, a sequence may be hidden as a whole."""
    text = attention(mask="bool[b, 1, 1, s] c", k="b, 4, s, 8", v="b, 4, s, 6")
    rows = [feeds(2, n, n) for n in ([1, 5, 7] if length == "s" else [5])]
    rows = [{**row, "c": row["c"][:, :, :1]} for row in rows]
    text = text.replace(", s,", f", {length},").replace(", s]", f", {length}]")
    found = check_pattern(text, None, ALL, opset=23, feeds=rows, atol=1e-5, rtol=1e-5)
    types = {n.op_type for n in found.graph.node}
    assert {"Attention", "Expand"} <= types and "Softmax" not in types


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("mask", ["b, 1, 1, t", "1, 1, t", "t"])
def test_one_row_for_more_keys(mask: str, is_shared: bool) -> None:
    """It is repeated for shared heads; one query of the others was measured slower."""
    shared = {**SHARED} if is_shared else {}
    text = attention(*((GROUPED,) if is_shared else ()), mask=f"bool[{mask}] c", **shared)
    rows = [feeds(*sizes, *((2, 8) if is_shared else ())) for sizes in SIZES]
    for row in rows:
        c = row["c"][:, :, :1]
        row["c"] = c if mask.startswith("b") else c[0] if mask.startswith("1") else c[0, 0, 0]
    found = check_pattern(text, None, ALL, opset=23, feeds=rows, atol=1e-5, rtol=1e-5)
    types = {n.op_type for n in found.graph.node}
    assert ({"Attention", "Expand"} <= types) is is_shared


#: numbers of a row of a mask, which the operator takes for others, or not
LOW, INF = float(np.finfo(np.float32).min), np.inf
ROWS = [
    [1.5, -3, 0, -1e4, 700], [0, -INF, LOW, 0, LOW / 2], [-INF] * 5, [LOW] * 5, [LOW / 2] * 5,
    [LOW, -INF, LOW, -INF, LOW], [LOW / 2, LOW, LOW, LOW, -INF], [-3e38] * 5, [-1e9] * 5,
    [0, np.nan, 1, LOW, -INF], [0, INF, 1, 2, -INF], [-INF, -INF, np.nan, -INF, LOW],
]  # fmt: skip


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("mask", ["s, t", "1, s, t", "4, s, t", "1, 1, s, t", "2, 4, s, t"])
def test_any_mask(mask: str, is_shared: bool) -> None:
    """Whatever numbers the mask holds, the result is the same, NaN included."""
    dims = {"s": len(ROWS), "t": 5}
    given = feeds(2, *dims.values(), *((2, 8) if is_shared else ()))
    shape = [dims.get(d) or int(d) for d in mask.split(", ")]
    given["b"] = np.broadcast_to(np.array(ROWS, dtype=np.float32), shape).copy()
    body = GIVEN.replace("(K)", "(rK)").replace("V)", "rV)")
    repeated = REPEAT.format("K") + REPEAT.format("V") + body
    text = attention(
        *((repeated,) if is_shared else (GIVEN,)),
        mask=f"float[{mask}] b", **(SHARED if is_shared else {}),
    )  # fmt: skip
    text = text.replace("b, 4, s", "2, 4, s").replace("b, 4, t", "2, 4, t")
    text = text.replace("b, 2, t", "2, 2, t")
    del given["c"]
    found = check_pattern(text, None, ANY, opset=23, feeds=[given], atol=1e-5, rtol=1e-5)
    types = [n.op_type for n in found.graph.node]
    assert types.count("Attention") == 1 and not {"Softmax", "Expand"} & set(types)


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize(
    ("text", "processor"),
    [
        (attention(GIVEN.replace(VALUES, GUARD), mask="float[b, 1, s, t] b"), "CPU"),
        (attention(GIVEN, mask="float[b, 1, s, t] b"), "CUDA"),
        (attention(GIVEN, mask="float[b, 1, s, t] b").replace("float", "double"), "CPU"),
        (attention(PLAIN, mask=""), "CPU"),
        (attention(GIVEN, mask="float[b, 1, 1, t] b"), "CPU"),
        (attention(GIVEN, "b, 4, 1, 8", mask="float[b, 1, 1, t] b", out="b, 4, 1, 6"), "CPU"),
    ],
    ids=["guarded", "CUDA", "double", "no mask", "a row", "one query"],
)
def test_any_mask_stays(text: str, processor: str, opset: int) -> None:
    options = OptimizationOptions(patterns=ANY, processor=processor)
    builder = GraphBuilder(
        model_from_text(text, opset), infer_shapes_options=True, optimization_options=options
    )
    assert "Attention" not in {n.op_type for n in builder.to_onnx().graph.node}


def test_shared_heads() -> None:
    rows = [feeds(*sizes, 2, 8) for sizes in SIZES]
    found = check_pattern(
        attention(GROUPED, **SHARED), None, ALL, opset=23, feeds=rows, atol=1e-5, rtol=1e-5
    )
    assert [n.op_type for n in found.graph.node] == ["Where", "Attention"]
    assert list(found.graph.node[1].input[:3]) == ["Q", "K", "V"]


def test_shared_heads_of_a_fused_product() -> None:
    body = GROUPED.replace(KEYS.replace("(K)", "(rK)") + SCORES, FUSED.replace("K)", "rK) "))
    assert "FusedMatMul" in body
    rows = [feeds(*sizes, 2, 8) for sizes in SIZES]
    text = attention(body.replace("Add(s", "Add(m"), **SHARED)
    found = check_pattern(text, None, ALL, opset=23, feeds=rows, atol=1e-5, rtol=1e-5)
    assert [n.op_type for n in found.graph.node] == ["Where", "Attention"]
    assert list(found.graph.node[1].input[:3]) == ["Q", "K", "V"]


def test_keys_and_values_of_other_heads() -> None:
    """Keys are repeated twice, values four times: both stay repeated."""
    body = GROUPED.replace("Expand(uV, spread)", "Expand(uV, wider)")
    text = attention(body, **{**SHARED, "v": "b, 1, t, 8"}).replace(
        "int64 start", "int64[5] wider = {1, 1, 4, 1, 1}, int64 start"
    )
    rows = [feeds(*sizes, 2, 8) for sizes in SIZES]
    rows = [{**row, "V": row["V"][:, :1]} for row in rows]
    found = check_pattern(text, None, ALL, opset=23, feeds=rows, atol=1e-5, rtol=1e-5)
    assert [n.op_type for n in found.graph.node].count("Expand") == 2


MOVED = {"q": "b, s, 4, 8", "k": "b, t, 4, 8", "v": "b, t, 4, 6", "out": "b, s, 4, 6"}
FLAT = (
    "Qm = Transpose<perm = [0, 2, 1, 3]>(Q) kt = Transpose<perm = [0, 2, 3, 1]>(K) "
    "Vm = Transpose<perm = [0, 2, 1, 3]>(V) " + SCORES.replace("(Q,", "(Qm,") + MASKED
    + VALUES.replace("V)", "Vm)").replace("y =", "y0 =") + " y = Transpose<perm = [0, 2, 1, 3]>(y0)"
)  # fmt: skip


def test_three_dimensions() -> None:
    """Heads moved before and back after: the operator moves them."""
    rows = [{**f, **{n: f[n].transpose(0, 2, 1, 3) for n in "QKV"}} for f in (feeds(2, 3, 5),)]
    found = check_pattern(
        attention(FLAT, **MOVED), None, ALL, opset=23, feeds=rows, atol=1e-5, rtol=1e-5
    )
    (node,) = [n for n in found.graph.node if n.op_type == "Attention"]
    assert {a.name: a.i for a in node.attribute if a.name != "scale"} == {
        "q_num_heads": 4,
        "kv_num_heads": 4,
    }
    assert "Transpose" not in {n.op_type for n in found.graph.node}


@pytest.mark.parametrize(("opset", "fused"), [(23, 1), (24, 1), (25, 0), (28, 0)])
def test_only_where_there_is_a_kernel(opset: int, fused: int) -> None:
    """onnxruntime expands the operator of opset 25, which is slower than what it replaces."""
    model = at_opset(model_from_text(attention(), 23), opset)
    builder = GraphBuilder(model, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, ALL).optimize()
    assert [n.op_type for n in builder.graph.nodes].count("Attention") == fused


def test_queries_of_every_sequence() -> None:
    """The same queries for each sequence, there is nothing to move: three dimensions."""
    queries = (
        "tail = Constant<value = int64[3] {4, 3, 8}>() first = Shape<start = 0, end = 1>(K) "
        "sizes = Concat<axis = 0>(first, tail) Qm = Expand(scale, sizes)"
    )
    body = FLAT.replace("Qm = Transpose<perm = [0, 2, 1, 3]>(Q)", queries)
    text = attention(body, mask="bool[b, 1, 3, t] c", **{**MOVED, "out": "b, 3, 4, 6"})
    found = optimized(text, ALL + ",FilledMove")
    assert "Attention" in found
    assert "Transpose" not in found


CACHE = (
    "J = Concat<axis = 2>(P, K) L = Concat<axis = 2>(O, V) "
    + GROUPED.replace("Unsqueeze(K", "Unsqueeze(J").replace("Unsqueeze(V", "Unsqueeze(L")
)  # fmt: skip


def cached(steps: int, past: int) -> str:
    """Keys and values joined with those of the steps before."""
    total = steps + past
    return attention(
        CACHE,
        q=f"b, 4, {steps}, 8",
        k=f"b, 2, {steps}, 8",
        v=f"b, 2, {steps}, 8",
        mask=f"bool[b, 1, {steps}, {total}] c, float[b, 2, {past}, 8] P, float[b, 2, {past}, 8] O",
        out=f"b, 4, {steps}, 8",
        outputs=f", float[b, 2, {total}, 8] J, float[b, 2, {total}, 8] L",
    )


@pytest.mark.parametrize(("batch", "steps", "past"), [(2, 3, 5), (2, 3, 0), (1, 1, 9), (3, 4, 1)])
def test_cache(batch: int, steps: int, past: int) -> None:
    rng = np.random.default_rng(3)
    rows = feeds(batch, steps, steps, 2, 8)
    rows["c"] = hidden_rows(batch, steps, steps + past)
    for name in "PO":
        rows[name] = rng.standard_normal((batch, 2, past, 8)).astype(np.float32)
    found = check_pattern(
        cached(steps, past), None, ALL, opset=23, feeds=[rows], atol=1e-5, rtol=1e-5
    )
    assert [n.op_type for n in found.graph.node] == ["Where", "Attention"]
    assert list(found.graph.node[1].output) == ["y", "J", "L"]


def test_any_mask_with_a_cache() -> None:
    """The operator joins the keys and values of the steps before, and gives them back."""
    text = cached(3, 5).replace("bool[b, 1, 3, 8] c", "float[b, 1, 3, 8] b")
    rng = np.random.default_rng(3)
    rows = {**feeds(2, 3, 3, 2, 8), "b": np.zeros((2, 1, 3, 8), dtype=np.float32)}
    rows["b"][0, 0] = [[LOW] * 8, [-INF] * 8, [0, LOW, -INF, 1, 2, 3, 4, 5]]
    del rows["c"]
    for name in "PO":
        rows[name] = rng.standard_normal((2, 2, 5, 8)).astype(np.float32)
    text = text.replace(MASKED, "z = Add(s, b) ")
    found = check_pattern(text, None, ANY, opset=23, feeds=[rows], atol=1e-5, rtol=1e-5)
    assert found.graph.node[-1].op_type == "Attention"
    assert list(found.graph.node[-1].output) == ["y", "J", "L"]


RANGES = (
    "st = Shape<start = 2, end = 3>(Q) tt = Shape<start = 2, end = 3>(K) sq = Squeeze(st) "
    "tq = Squeeze(tt) rows0 = Range(start, sq, step) cols0 = Range(start, tq, step) "
    "one = Constant<value_ints = [1]>() nil = Constant<value_ints = [0]>() "
    "rows = Unsqueeze(rows0, one) cols = Unsqueeze(cols0, nil) c = LessOrEqual(cols, rows) "
)


def test_causal_mask_of_infinities() -> None:
    """A query always sees the first key: no NaN is possible."""
    model = model_from_text(attention(RANGES + BODY, mask="", hidden="-3e38"), 23)
    for tensor in model.graph.initializer:
        if tensor.name == "hidden":
            tensor.ClearField("float_data")
            tensor.raw_data = np.float32(-np.inf).tobytes()
    rows = [{n: f[n] for n in "QKV"} for f in (feeds(2, 5, 5), feeds(1, 7, 7))]
    found = check_pattern(model, None, ALL, feeds=rows, atol=1e-5, rtol=1e-5)
    (node,) = [n for n in found.graph.node if n.op_type == "Attention"]
    assert node.input[3] == "c"


#: name -> (model, pattern, reason)
REFUSED = {
    "rank 3": (
        attention(PLAIN.replace("0, 1, 3, 2", "0, 2, 1"), "b, s, 8", "b, t, 8", "b, t, 6", "", "b, s, 6"),
        "FunctionAttention", "four dimensions",
    ),
    "another axis": (
        attention(BODY.replace("axis = -1", "axis = 2")), "FunctionAttention", "not the last one",
    ),
    "no product": (
        attention(BODY.replace("m = MatMul(Q, kt)", "m0 = MatMul(Q, kt) m = Abs(m0)")),
        "FunctionAttention", "not a product",
    ),
    "scale by head": (
        attention(BODY.replace("Mul(m, scale)", "Mul(m, x)"), mask="bool[b, 1, s, t] c, float[4, 1, 1] x"),
        "FunctionAttention", "not a product",
    ),
    "inverse": (
        attention(BODY.replace("Mul(m, scale)", "Div(scale, m)")), "FunctionAttention", "not a product",
    ),
    "transposed queries": (
        attention(FUSED.replace("transB", "transA") + MASKED.replace("Add(s", "Add(m") + VALUES, "b, 4, 8, s", "b, 4, 8, t"),
        "FunctionAttention", "another operand than the keys is transposed",
    ),
    "keys without heads": (
        attention(FUSED + MASKED.replace("Add(s", "Add(m") + VALUES, k="t, 8"), "FunctionAttention", "same heads",
    ),
    "broadcast heads": (
        attention(k="b, 1, t, 8"), "FunctionAttention", "same heads",
    ),
    "broadcast values": (
        attention(v="1, 4, t, 6"), "FunctionAttention", "same heads",
    ),
    "broader mask": (
        attention(q="1, 4, s, 8", k="1, 4, t, 8", v="1, 4, t, 6", mask="bool[b, 1, s, t] c"),
        "FunctionAttention", "the mask may be broader",
    ),
    **{
        f"{op_type} {scale}": (
            attention(BODY.replace("Mul(m", f"{op_type}(m")).replace("{0.25}", f"{{{scale}}}"),
            "FunctionAttention", "the scale is not a positive number",
        )
        for op_type, scale in [("Mul", -0.25), ("Div", "1e-40")]
    },
    **{
        f"{op_type} {scale}": (
            attention(BODY.replace("Mul(m", f"{op_type}(m")).replace("{0.25}", f"{{{scale}}}"),
            "FunctionAttention", "the scores are not a product",
        )
        for op_type, scale in [("Mul", 0), ("Div", 0), ("Mul", "1e-60")]
    },
    "an empty batch": (
        attention(q="0, 4, s, 8", k="0, 4, t, 8", v="0, 4, t, 6"), "FunctionAttention", "a dimension is null",
    ),
    "weights are an output": (
        attention(outputs=", float[b, 4, s, t] w"), "FunctionAttention", "elsewhere",
    ),
    "scores are an output": (
        attention(outputs=", float[b, 4, s, t] z"), "FunctionAttention", "elsewhere",
    ),
    "ones replace NaN": (
        attention(KEYS + SCORES + MASKED + GUARD.replace("zero", "scale")),
        "FunctionAttention", "do not replace NaN",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    check_no_match(*REFUSED[name])


#: name -> model the operator refuses: everything is put back
STAYS = {
    "a mask that is given": attention(GIVEN, mask="float[b, 1, s, t] b"),
    "a mask broadcast along the queries": attention(mask="bool[b, 1, 1, t] c"),
    "a number that is added to what is seen": attention(BODY.replace("zero, hidden)", "scale, hidden)")),
    "zeros that make the mask broader": attention(
        ZEROS_OF_MASK.replace("Shape(c)", "Shape(M)") + BODY.replace("zero,", "zeros,"),
        mask="bool[1, t] c, float[s, t] M",
    ),
    "double": attention().replace("float", "double").replace(LOWEST, "-1e300"),
    "double without mask": attention(PLAIN, mask="").replace("float", "double"),
    "heads that are not known": attention(q="b, h, s, 8", k="b, h, t, 8", v="b, h, t, 6", out="b, h, s, 6"),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_stays(name: str) -> None:
    before = sorted(n.op_type for n in model_from_text(STAYS[name], 23).graph.node)
    assert sorted(optimized(STAYS[name], ALL)) == before


GUARDED = {
    "infinity": (attention(KEYS + SCORES + MASKED + GUARD, hidden="-inf"), -np.inf),
    "lowest float": (attention(KEYS + SCORES + MASKED + GUARD), None),
    "no mask": (attention(KEYS + SCORES + GUARD.replace("(z)", "(s)"), mask=""), None),
}


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("operand", "QK")
def test_nan_under_a_guard(name: str, operand: str) -> None:
    """Their weights are NaN, zeros replace them, whatever the mask does."""
    text, hidden = GUARDED[name]
    model = model_from_text(text.replace("{-inf}", "{-3e38}"), 23)
    for tensor in model.graph.initializer:
        if tensor.name == "hidden" and hidden is not None:
            tensor.ClearField("float_data")
            tensor.raw_data = np.float32(hidden).tobytes()
    given = feeds(2, 3, 5)
    given[operand][0, 1, 2, 0] = np.nan
    given = {i.name: given[i.name] for i in model.graph.input}
    found = check_pattern(model, None, ALL, feeds=[given], atol=1e-5, rtol=1e-5)
    assert "Softmax" not in {n.op_type for n in found.graph.node}


def test_a_mask_that_hides_nothing() -> None:
    """A constant condition, expanded to the batch: the operator has no mask."""
    text = attention(
        "n = Shape<start = 0, end = 1>(Q) e = Concat<axis = 0>(n, ends) c = Expand(true, e) " + BODY,
        q="b, 4, 3, 8", k="b, 4, 5, 8", v="b, 4, 5, 6", mask="", out="b, 4, 3, 6",
    ).replace(
        "float zero", "int64[3] ends = {1, 3, 5}, bool[1, 1, 1, 5] true = {1, 1, 1, 1, 1}, float zero"
    )  # fmt: skip
    found = check_pattern(text, None, ALL, opset=23, atol=1e-5, rtol=1e-5)
    assert [n.op_type for n in found.graph.node] == ["Attention"]
    assert len(found.graph.node[0].input) == 3
    partly = text.replace("{1, 1, 1, 1, 1}", "{1, 1, 0, 1, 1}")
    found = check_pattern(partly, None, ALL, opset=23, atol=1e-5, rtol=1e-5)
    assert len(found.graph.node[-1].input) == 4


ZEROS = (
    "d = Shape(Q) p = Shape<start = 2, end = 3>(K) h = Slice(d, from, to) "
    "e = Concat<axis = 0>(h, p) c = ConstantOfShape(e) "
)


@pytest.mark.parametrize("values", [VALUES, GUARD])
def test_zeros_that_are_added(values: str) -> None:
    """They change nothing; what replaces NaN stays."""
    text = attention(
        ZEROS + KEYS + SCORES + "z = Add(s, c) " + values, mask=""
    ).replace("float zero", "int64[1] from = {0}, int64[1] to = {3}, float zero")  # fmt: skip
    found = check_pattern(text, None, ALL, opset=23, atol=1e-5, rtol=1e-5)
    types = [n.op_type for n in found.graph.node]
    assert types == ["Attention"] if values == VALUES else "IsNaN" in types


ONE = (
    "qu = Unsqueeze(Q, head) kt = Transpose<perm = [0, 2, 1]>(K) ku = Unsqueeze(kt, head) "
    "vu = Unsqueeze(V, head) m = MatMul(qu, ku) z = Mul(m, scale) w = Softmax<axis = -1>(z) "
    "o = MatMul(w, vu) "
)
SEQUENCES = {"q": "b, s, 8", "k": "b, t, 8", "v": "b, t, 6", "mask": ""}


@pytest.mark.parametrize("axis", [1, -3])
@pytest.mark.parametrize("sizes", [{"b": 2, "s": 3, "t": 5}, {"b": 1, "s": 1, "t": 4}])
def test_one_head(sizes: dict[str, int], axis: int) -> None:
    """A sequence is one head: the operator reads and gives it as it is."""
    text = attention(ONE + "y = Squeeze(o, head)", **SEQUENCES, out="b, s, 6")
    text = text.replace("float zero", f"int64[1] head = {{{axis}}}, float zero")
    found = check_pattern(text, None, ALL, opset=23, sizes=sizes, atol=1e-5, rtol=1e-5)
    (node,) = found.graph.node
    assert list(node.input) == ["Q", "K", "V"]
    assert {a.name: a.i for a in node.attribute if a.name != "scale"} == {
        "q_num_heads": 1,
        "kv_num_heads": 1,
    }


def test_one_head_that_stays_one() -> None:
    """The head is not removed after, or the Unsqueeze is not on the axis of heads."""
    text = attention(ONE + "y = Relu(o)", **SEQUENCES, out="b, 1, s, 6")
    text = text.replace("float zero", "int64[1] head = {1}, float zero")
    found = check_pattern(text, None, ALL, opset=23, atol=1e-5, rtol=1e-5)
    (node,) = [n for n in found.graph.node if n.op_type == "Attention"]
    assert len(node.attribute) == 1  # scale: four dimensions
    text = attention(
        ONE + "y = Squeeze(o, head)", "h, s, 8", "h, t, 8", "h, t, 6", "", "h, s, 6"
    ).replace("float zero", "int64[1] head = {0}, float zero")  # fmt: skip
    assert "Attention" not in optimized(text, ALL)


def test_before_opset_23_nothing_is_prepared() -> None:
    assert "Softmax" in optimized(attention(), ALL, 18)


@pytest.mark.parametrize(
    ("text", "fused"),
    [
        (attention(mask="", body=PLAIN), 1),
        (attention(), 0),
        (attention(GROUPED, **SHARED), 0),
    ],
    ids=["simple", "mask", "shared heads"],
)
def test_on_cuda(text: str, fused: int) -> None:
    """Products are faster than the operator with a mask or shared heads."""
    model = model_from_text(text, 23)
    options = OptimizationOptions(patterns=ALL, processor="CUDA")
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    operators = [n.op_type for n in builder.to_onnx().graph.node]
    assert operators.count("Attention") == fused and operators.count("Softmax") == 1 - fused


def test_halves_that_may_be_infinite() -> None:
    """The kernel returns zeros where every score is minus infinity."""
    proto = as_float16(model_from_text(attention(PLAIN, mask="").replace(LOWEST, "1"), 23))
    found = check_pattern(proto, None, ALL, atol=4e-3, reference=False)
    assert "Attention" not in {n.op_type for n in found.graph.node}
