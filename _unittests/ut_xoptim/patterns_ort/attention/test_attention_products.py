"""Attention as products and a Softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import get_pattern
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_pattern, model_from_text

pytestmark = pytest.mark.usefixtures("open_gates")
PREPARED = "FunctionAttention,FunctionAttentionGQA,"
LOW = float(np.finfo(np.float32).min)
#: positions of keys, not after those of queries; some keys are hidden from every query
CAUSAL = """zs = Shape<start = 2, end = 3>(Q) zn = Squeeze(zs, zero) r = Range(from, zn, step)
    xs = Shape<start = 2, end = 3>(K) xn = Squeeze(xs, zero) k = Range(from, xn, step)
    rows = Unsqueeze(r, rowAxes) columns = Unsqueeze(k, columnAxes)
    before = LessOrEqual(columns, rows) """
SEEN = "both = And(before, seen) c = Where(both, none, low) "
ALONE = "c = Where(before, none, low) "
REPEAT = """b{0} = Shape<start = 0, end = 1>({0}) s{0} = Shape<start = 2, end = 3>({0})
    f{0} = Concat<axis = 0>(b{0}, heads, s{0}, length) u{0} = Unsqueeze({0}, two)
    e{0} = Expand(u{0}, spread) r{0} = Reshape<allowzero = 1>(e{0}, f{0}) """
SHARED = REPEAT.format("K") + REPEAT.format("V") + "kt = Transpose<perm = [0, 1, 3, 2]>(rK) "
SCORES = "m = MatMul(Q, kt) s = Mul(m, scale) z = Add(s, c) "
WEIGHTS = "w = Softmax<axis = -1>(z) "
GUARD = "w0 = Softmax<axis = -1>(z) i = IsNaN(w0) w = Where(i, none, w0) "
ALL = "kt = Transpose<perm = [0, 1, 3, 2]>(K) "


def model(
    body: str,
    dims: str = "b, 4, s, 8;b, 2, s, 8",
    inputs: str = ", bool[b, 1, 1, s] seen",
    low: float = LOW,
    constants: str = "",
    kind: str = "float",
) -> Any:
    """An attention; *dims* are those of the queries, of the keys and values."""
    q, k = dims.split(";")
    text = f"""agraph ({kind}[{q}] Q, {kind}[{k}] K, {kind}[{k}] V{inputs}) => ({kind}[{q}] y) <
    {kind} scale = {{0.25}}, {kind} none = {{0}}, int64[1] two = {{2}}, int64 from = {{0}},
    int64 step = {{1}}, int64[1] zero = {{0}}, int64[3] rowAxes = {{0, 1, 3}},
    int64[3] columnAxes = {{0, 1, 2}}, int64[5] spread = {{1, 1, 2, 1, 1}},
    int64[1] heads = {{4}}, int64[1] length = {{8}}, {kind} low = {{0}}{constants}
> {{ {body} }}"""
    proto = model_from_text(text)
    for tensor in proto.graph.initializer:
        if tensor.name == "low":
            (tensor.float_data if tensor.float_data else tensor.double_data)[0] = low
    return proto


VALUES = WEIGHTS + "y = MatMul(w, rV)"
GROUPED = model(SHARED + SCORES + VALUES, inputs=", float[b, 1, s, s] c")
GROUPED_AFTER = model(
    """size = Shape<start = 2, end = 3>(Q) rows = Mul(size, times) kt = Transpose<perm = [0, 1, 3, 2]>(K)
    joined = Concat<axis = 0>(few, rows, zero) q = Reshape(Q, joined) m = MatMul(q, kt)
    s = Mul(m, scale) split = Concat<axis = 0>(many, size, zero) t = Reshape(s, split)
    z = Add(t, c) w = Softmax<axis = -1>(z) g = Reshape(w, joined) p = MatMul(g, V)
    y = Reshape(p, split)""",
    inputs=", float[b, 1, s, s] c",
    constants=", int64[1] times = {2}, int64[2] few = {0, 2}, int64[2] many = {0, 4}",
)
CAUSAL_BEFORE = model(
    CAUSAL + SEEN + ALL + SCORES + WEIGHTS + "y = MatMul(w, V)", "b, 4, s, 8;b, 4, s, 8"
)
CAUSAL_AFTER = model(
    CAUSAL + SEEN + ALL + """m = MatMul(Q, kt) s = Mul(m, scale) z = Add(s, c)
    h = ReduceMax(z, last) d = Sub(z, h) f = Max(d, least) w = Softmax<axis = -1>(f)
    y = MatMul(w, V)""",
    "b, 4, s, 8;b, 4, s, 8",
    constants=", int64[1] last = {-1}, float least = {-80}",
)  # fmt: skip
#: what the documentation draws: name -> (before, after)
MODELS = {
    "CausalAttention": (CAUSAL_BEFORE, CAUSAL_AFTER),
    "GroupedAttention": (GROUPED, GROUPED_AFTER),
}


@pytest.mark.parametrize("name", MODELS)
def test_nodes(name: str) -> None:
    check_pattern(*MODELS[name], PREPARED + name, atol=1e-5, rtol=1e-5)


def test_fused_product() -> None:
    """The product transposes the keys by itself, or scales."""
    fused = "m = com.microsoft.FusedMatMul<transB = 1, alpha = 0.25>(Q, K) z = Add(m, c) "
    dims = "b, 4, s, 8;b, 4, s, 8"
    before = model(CAUSAL + SEEN + fused + WEIGHTS + "y = MatMul(w, V)", dims)
    check_pattern(before, CAUSAL_AFTER, PREPARED + "CausalAttention", atol=1e-5, rtol=1e-5)
    shared = (SHARED.split("kt =")[0] + fused).replace("(Q, K)", "(Q, rK)")
    before = model(shared + VALUES, inputs=", float[b, 1, s, s] c")
    check_pattern(before, GROUPED_AFTER, PREPARED + "GroupedAttention", atol=1e-5, rtol=1e-5)


def feeds(proto: Any, batch: int, steps: int, scale: float = 1.0) -> dict[str, np.ndarray]:
    """Random inputs; the first keys of the first sequence are hidden: so is every key, from the
    first queries."""
    rng = np.random.default_rng(0)
    sizes = {"b": batch, "s": steps, "t": steps + 3}
    found = {}
    for i in proto.graph.input:
        shape = [sizes.get(d.dim_param, d.dim_value) for d in i.type.tensor_type.shape.dim]
        found[i.name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    if "seen" in found:
        found["seen"] = found["seen"] > -1
        found["seen"][:1, ..., :2] = False
    return found


@pytest.mark.parametrize("low", [LOW, -np.inf, -1e4])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("mask", "weights", "scale"),
    [(SEEN, WEIGHTS, 1.0), (SEEN, GUARD, 1.0), (ALONE, WEIGHTS, 1.0), (SEEN, WEIGHTS, 1e5)],
)
def test_causal(mask: str, weights: str, low: float, shared: bool, scale: float) -> None:
    """Rows that are entirely hidden keep their result, NaN included; scores may be large; empty
    batches and sequences."""
    heads = SHARED if shared else ALL
    dims = "b, 4, s, 8;b, 2, s, 8" if shared else "b, 4, s, 8;b, 4, s, 8"
    end = "y = MatMul(w, rV)" if shared else "y = MatMul(w, V)"
    proto = model(CAUSAL + mask + heads + SCORES + weights + end, dims, low=low)
    sizes = [(2, 5), (1, 1), (3, 40), (0, 3), (2, 0)]
    found = check_pattern(
        proto, None, PREPARED + "CausalAttention",
        feeds=[feeds(proto, *size, scale=scale) for size in sizes], atol=1e-5 * scale, rtol=1e-5,
    )  # fmt: skip
    types = [n.op_type for n in found.graph.node]
    assert "ReduceMax" in types and ("Expand" in types) is False


def test_scores_that_are_not_finite() -> None:
    """NaN stay where they are."""
    proto = CAUSAL_BEFORE
    given = feeds(proto, 2, 5)
    given["Q"][0, 0, 3, 0], given["Q"][1, 1, 2, 0] = np.nan, np.inf
    check_pattern(proto, None, PREPARED + "CausalAttention", feeds=[given], atol=1e-5, rtol=1e-5)


def test_sum() -> None:
    """A term of the mask is enough."""
    mask = SEEN + "qs = Shape(both) wide = Expand(c, qs) sum = Add(bias, wide) "
    body = CAUSAL + mask + ALL + SCORES.replace("Add(s, c)", "Add(s, sum)") + WEIGHTS
    inputs = ", bool[b, 1, 1, s] seen, float[1, 4, s, s] bias"
    proto = model(body + "y = MatMul(w, V)", "b, 4, s, 8;b, 4, s, 8", inputs)
    given = [feeds(proto, *size) for size in [(2, 5), (1, 1), (3, 40)]]
    check_pattern(proto, None, PREPARED + "CausalAttention", feeds=given, atol=1e-5, rtol=1e-5)


def test_bias_beside_what_is_hidden() -> None:
    """A bias may be added to the visible scores, as in T5."""
    mask = SEEN.replace("none", "bias")
    body = CAUSAL + mask + ALL + SCORES + WEIGHTS + "y = MatMul(w, V)"
    inputs = ", bool[b, 1, 1, s] seen, float[1, 4, s, s] bias"
    proto = model(body, "b, 4, s, 8;b, 4, s, 8", inputs)
    given = [feeds(proto, *size) for size in [(2, 5), (1, 1), (3, 40)]]
    found = check_pattern(
        proto, None, PREPARED + "CausalAttention", feeds=given, atol=1e-5, rtol=1e-5
    )
    assert "ReduceMax" in [n.op_type for n in found.graph.node]


#: positions repeated for each sequence
TILED = CAUSAL.replace(
    "rows = Unsqueeze(r, rowAxes) columns = Unsqueeze(k, columnAxes)",
    """
    bs = Shape<start = 0, end = 1>(Q) times = Concat<axis = 0>(bs, once)
    r1 = Unsqueeze(r, zero) k1 = Unsqueeze(k, zero) rt = Tile(r1, times) kt0 = Tile(k1, times)
    rows = Unsqueeze(rt, lastRows) columns = Unsqueeze(kt0, lastColumns)""",
)
AXES = ", int64[1] once = {1}, int64[2] lastRows = {1, 3}, int64[2] lastColumns = {1, 2}"


def test_positions_of_each_sequence() -> None:
    body = TILED + SEEN + ALL + SCORES + WEIGHTS + "y = MatMul(w, V)"
    proto = model(body, "b, 4, s, 8;b, 4, s, 8", constants=AXES)
    given = [feeds(proto, *size) for size in [(2, 5), (1, 1), (3, 40), (0, 3)]]
    found = check_pattern(
        proto, None, PREPARED + "CausalAttention", feeds=given, atol=1e-5, rtol=1e-5
    )
    assert "ReduceMax" in [n.op_type for n in found.graph.node]


@pytest.mark.parametrize("pattern", ["CausalAttention", "GroupedAttention"])
def test_known_length(pattern: str) -> None:
    """The shapes are constants."""
    dims = "b, 4, 6, 8;b, 2, 6, 8"
    if pattern == "CausalAttention":
        proto = model(CAUSAL + SEEN + SHARED + SCORES + VALUES, dims, ", bool[b, 1, 1, 6] seen")
    else:
        proto = model(SHARED + SCORES + VALUES, dims, ", float[b, 4, 6, 6] c")
    found = check_pattern(proto, None, PREPARED + pattern, atol=1e-5, rtol=1e-5)
    assert not {"Expand", "Concat"} & {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("sizes", [{"b": 2, "s": 1, "t": 9}, {"b": 3, "s": 4, "t": 4}, {"b": 0, "s": 2, "t": 3}, {"b": 2, "s": 0, "t": 3}])  # fmt: skip
@pytest.mark.parametrize("body", [SCORES + VALUES, SCORES + GUARD + "y = MatMul(w, rV)", "m = MatMul(Q, kt) z = Div(m, four_) w = Softmax<axis = -1>(z) y = MatMul(w, rV)"])  # fmt: skip
def test_grouped(body: str, sizes: dict[str, int]) -> None:
    """There may be no mask, more keys than queries."""
    proto = model(
        SHARED + body, "b, 4, s, 8;b, 2, t, 8", ", float[b, 1, s, t] c",
        constants=", float four_ = {4}",
    )  # fmt: skip
    found = check_pattern(
        proto, None, PREPARED + "GroupedAttention", sizes=sizes, atol=1e-5, rtol=1e-5
    )
    assert "Expand" not in {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("opset", [18, 23])
def test_set(opset: int) -> None:
    """The set writes it before the operators, for the processor CPU."""
    proto = model(CAUSAL + SEEN + SHARED + SCORES + VALUES)
    proto.opset_import[0].version = opset
    found = {}
    for processor in ("CPU", "CUDA"):
        options = OptimizationOptions(patterns="default+onnxruntime", processor=processor)
        builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
        found[processor] = {n.op_type for n in builder.to_onnx().graph.node}
    assert "ReduceMax" in found["CPU"] and "Expand" not in found["CPU"]
    assert "ReduceMax" not in found["CUDA"] and "Attention" not in found["CUDA"]


PAST = CAUSAL.replace(
    "rows = Unsqueeze(r,", "ps = Shape(past) rp = Add(r, ps) rows = Unsqueeze(rp,"
)
#: 0, 1, 2, 0, 1, 2: the positions begin again
AGAIN = """three = Constant<value_int = 3>() r = Range(from, three, step) ROWS
    xs = Shape<start = 2, end = 3>(K) xn = Squeeze(xs, zero) k = Range(from, xn, step)
    columns = Unsqueeze(k, columnAxes) before = LessOrEqual(columns, rows) """
BESIDE = AGAIN.replace(
    "ROWS",
    """bs = Shape<start = 0, end = 1>(Q) times = Concat<axis = 0>(bs, two)
    r1 = Unsqueeze(r, zero) rt = Tile(r1, times) rows = Unsqueeze(rt, lastRows)""",
)
BELOW = AGAIN.replace(
    "ROWS",
    """times = Constant<value_ints = [2, 1]>() ends = Constant<value_ints = [1]>()
    first = Constant<value_ints = [0, 1]>() r1 = Unsqueeze(r, ends) rt = Tile(r1, times)
    rows = Unsqueeze(rt, first)""",
)
#: name -> (model, reason)
REFUSED = {
    **{
        f"positions that begin again {name}": (
            model(
                body + SEEN + ALL + SCORES + WEIGHTS + "y = MatMul(w, V)", "b, 4, 6, 8;b, 4, 6, 8",
                ", bool[b, 1, 1, 6] seen", constants=AXES,
            ),
            "may not hide half",
        )
        for name, body in (("beside", BESIDE), ("below", BELOW))
    },
    "another mask": (GROUPED, "may not hide half"),
    "no mask": (model(SHARED + "s = MatMul(Q, kt) w = Softmax<axis = -1>(s) y = MatMul(w, rV)"), "may not hide half"),
    "keys after the queries": (
        model((CAUSAL + SEEN + SHARED + SCORES + VALUES).replace("(columns, rows)", "(rows, columns)")),
        "may not hide half",
    ),
    "another order": (
        model((CAUSAL + SEEN + SHARED + SCORES + VALUES).replace("LessOrEqual", "GreaterOrEqual")),
        "may not hide half",
    ),
    "steps before": (
        model(PAST + SEEN + SHARED + SCORES + VALUES, inputs=", bool[b, 1, 1, s] seen, float[p] past"),
        "may not hide half",
    ),
    "one or the other": (
        model(CAUSAL + SEEN.replace("And", "Or") + SHARED + SCORES + VALUES),
        "may not hide half",
    ),
    "it hides little": (model(CAUSAL + SEEN + SHARED + SCORES + VALUES, low=-5.0), "may not hide half"),
    "double": (
        model(CAUSAL + SEEN + SHARED + SCORES + VALUES, kind="double"),
        "may not hide half",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    """The reason; the graph is put back."""
    proto, reason = REFUSED[name]
    reasons: list[str] = []
    pattern = get_pattern("CausalAttention")
    pattern.listener = lambda told: reasons.append(told[3])
    builder = GraphBuilder(proto, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, [get_pattern("FunctionAttention"), pattern]).optimize()
    assert any(reason in text for text in reasons), reasons
    found = {n.op_type for n in builder.graph.nodes}
    assert "Softmax" in found and not {"ReduceMax", "LocalAttention"} & found


def test_refuses_cuda() -> None:
    reasons: list[str] = []
    pattern = get_pattern("CausalAttention")
    pattern.listener = lambda told: reasons.append(told[3])
    options = OptimizationOptions(
        patterns=[get_pattern("FunctionAttention"), pattern], processor="CPU,CUDA"
    )
    GraphBuilder(CAUSAL_BEFORE, infer_shapes_options=True, optimization_options=options).to_onnx()
    assert "it is for the processor CPU" in reasons
