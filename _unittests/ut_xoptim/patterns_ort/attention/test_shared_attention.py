"""Attention of onnxruntime whose heads several queries share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xoptim.patterns_ort.attention.attention_texts import PREPARED, group

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import get_pattern
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_pattern, model_from_text

NAME = "SharedHeadsAttention"
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SEEN = """rows = Range(past, total, step) columns = Range(from, total, step)
    r4 = Unsqueeze(rows, rowAxes) c4 = Unsqueeze(columns, columnAxes)
    before = LessOrEqual(c4, r4) c = Where(before, none, low) """
NUMBERS = """size = Shape<start = 1, end = 2>(Q) n = Squeeze(size, zero)
    before0 = Shape<start = 2, end = 3>(P) past = Squeeze(before0, zero) total = Add(past, n) """
MOVES = "".join(f"{x}m = Transpose<perm = [0, 2, 1, 3]>({x}) " for x in "QKV")
TURNS = "".join(f"{x}t = com.microsoft.RotaryEmbedding({x}m, zero, cos, sin) " for x in "QK")
CACHE = "J = Concat<axis = 2>(P, K0) L = Concat<axis = 2>(O, Vm) "
REPEATS = "".join(
    f"b{x} = Shape<start = 0, end = 1>({x}) s{x} = Shape<start = 2, end = 3>({x}) "
    f"f{x} = Concat<axis = 0>(b{x}, heads, s{x}, length) u{x} = Unsqueeze({x}, two) "
    f"e{x} = Expand(u{x}, spread) r{x} = Reshape<allowzero = 1>(e{x}, f{x}) "
    for x in "JL"
)
SCORES = "kt = Transpose<perm = [0, 1, 3, 2]>(rJ) m = MatMul(Q0, kt) s = Mul(m, scale) "
MASKED = SCORES + "z = Add(s, c) "
WEIGHTS = "w = Softmax<axis = -1>(z) "
GUARD = "w0 = Softmax<axis = -1>(z) i = IsNaN(w0) w = Where(i, none, w0) "
VALUES = "y0 = MatMul(w, rL) y = Transpose<perm = [0, 2, 1, 3]>(y0)"
TABLES = "float[m, 4] cos, float[m, 4] sin"


def model(
    body: str, inputs: str = "", heads: int = 2, outputs: str = "", low: float = -1e30
) -> Any:
    """A step of 4 heads whose keys and values have fewer; *inputs* are those beside queries, keys
    and values."""
    few = f"b, {heads}, p, 8"
    cache = f", float[{few}] P, float[{few}] O" if "P" in body else ""
    text = f"""agraph (float[b, s, 4, 8] Q, float[b, s, {heads}, 8] K,
        float[b, s, {heads}, 8] V{cache}{inputs}) => (float[b, s, 4, 8] y{outputs}) <
    float scale = {{0.25}}, float none = {{0}}, float low = {{0}}, int64[1] two = {{2}},
    int64[1] zero = {{0}}, int64 from = {{0}}, int64 step = {{1}}, int64[3] rowAxes = {{0, 1, 3}},
    int64[3] columnAxes = {{0, 1, 2}}, int64[5] spread = {{1, 1, {4 // heads}, 1, 1}},
    int64[1] heads = {{4}}, int64[1] length = {{8}}, int64[1] times = {{{4 // heads}}},
    int64[1] one = {{1}}, int64[2] ones = {{0, 1}}, int64[1] few = {{{8 * heads}}},
    int64[3] flat = {{0, 0, 32}}, int64[3] flatKeys = {{0, 0, {8 * heads}}},
    int64[1] whole = {{32}}, int64[4] split4 = {{0, 0, 4, 8}},
    int64[4] keys4 = {{0, 0, {heads}, 8}}, int64[5] split5 = {{0, 0, {heads}, {4 // heads}, 8}},
    int64[5] back5 = {{0, 0, {4 // heads}, {heads}, 8}}
> {{ {body} }}"""
    proto = model_from_text(text)
    for tensor in proto.graph.initializer:
        if tensor.name == "low":
            tensor.float_data[0] = low
    return proto


def plain(body: str) -> str:
    """Queries and keys that are not turned."""
    return body.replace("Q0", "Qm").replace("K0", "Km")


def turned(body: str) -> str:
    """Queries and keys that are turned."""
    return TURNS + body.replace("Q0", "Qt").replace("K0", "Kt")


NEW = ", float[b, 2, t, 8] J, float[b, 2, t, 8] L"
JOINED = CACHE + REPEATS
ALONE = REPEATS.replace("J", "Km").replace("L", "Vm") + plain(MASKED + WEIGHTS + VALUES).replace(
    "rJ", "rKm"
).replace("rL", "rVm")
STEP = NUMBERS + SEEN + MOVES + plain(JOINED + MASKED + WEIGHTS + VALUES)
ORDER = "perm = [0, 1, 3, 2, 4]"
WRITTEN = (
    NUMBERS + SEEN + f"""steps = Shape<start = 2, end = 3>(c) many = Mul(steps, times)
    q5 = Reshape(Q, split5) q6 = Transpose<{ORDER}>(q5) q7 = Reshape(q6, flat)
    qs = Concat<axis = 0>(zero, many, few) q = Reshape(q7, qs) k = Reshape(K, flatKeys)
    v = Reshape(V, flatKeys) last = Shape<start = 3, end = 4>(c) cc = Concat<axis = 3>(c, c)
    cs = Concat<axis = 0>(ones, many, last) c2 = Reshape(cc, cs)
    r, J, L = com.microsoft.MultiHeadAttention<num_heads = 2, scale = 0.25>(q, k, v, , , c2, P, O)
    bs = Concat<axis = 0>(zero, steps, whole) r1 = Reshape(r, bs) r5 = Reshape(r1, back5)
    r6 = Transpose<{ORDER}>(r5) r7 = Reshape(r6, flat) y = Reshape(r7, split4)"""
)  # fmt: skip
MASK = ", float[b, 1, s, s] c"

#: what the documentation draws: name -> (before, after)
MODELS = {NAME: (model(STEP, outputs=NEW), model(WRITTEN, outputs=NEW))}


def test_nodes() -> None:
    check_pattern(*MODELS[NAME], PREPARED + NAME, **CLOSE)


def written(proto: Any, **options: Any) -> dict[str, int]:
    """Operators once a model is optimized, results are compared."""
    found = check_pattern(proto, None, PREPARED + NAME, **CLOSE, **options)
    types = [n.op_type for n in found.graph.node]
    assert types.count("MultiHeadAttention") == 1
    assert not {"Softmax", "MatMul", "Expand"} & set(types)
    return {name: types.count(name) for name in types}


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_steps(heads: int, is_turned: bool, masked: bool) -> None:
    """Keys and values of the steps before, none of them, one query or several, one head."""
    body = (NUMBERS + SEEN if masked else "") + MOVES
    scores = MASKED if masked else SCORES
    rest = JOINED + scores + (WEIGHTS if masked else WEIGHTS.replace("(z)", "(s)")) + VALUES
    body += turned(rest) if is_turned else plain(rest)
    out = f", float[b, {heads}, t, 8] J, float[b, {heads}, t, 8] L"
    proto = model(body, f", {TABLES}" if is_turned else "", heads, out)
    sizes = [
        {"b": b, "s": s, "p": p, "m": 9}
        for b, s, p in [(2, 1, 5), (1, 3, 4), (3, 2, 0), (2, 4, 1), (0, 1, 5), (2, 0, 5)]
    ]
    types = written(proto, sizes=sizes)
    assert types.get("RotaryEmbedding", 0) == 2 * is_turned
    assert types.get("Concat", 0) >= masked


@pytest.mark.parametrize("low", [float(np.finfo(np.float32).min), -np.inf, -1e4])
@pytest.mark.parametrize("weights", [WEIGHTS, GUARD])
def test_hidden_rows(weights: str, low: float) -> None:
    """Rows that are entirely hidden keep their result, NaN included."""
    body = NUMBERS + SEEN.replace(
        "c = Where(before, none, low)", "both = And(before, seen) c = Where(both, none, low)"
    )
    body += MOVES + plain(JOINED + MASKED + weights + VALUES)
    proto = model(body, ", bool[b, 1, 1, t] seen", outputs=NEW, low=low)
    rng, feeds = np.random.default_rng(0), []
    for b, s, p in ((2, 1, 5), (1, 3, 4), (2, 2, 0)):
        shapes = {
            "Q": (b, s, 4, 8),
            **dict.fromkeys("KV", (b, s, 2, 8)),
            **dict.fromkeys("PO", (b, 2, p, 8)),
        }
        seen = rng.random((b, 1, 1, s + p)) < 0.6
        seen[0] = False
        feeds.append(
            {
                **{n: rng.standard_normal(d).astype(np.float32) for n, d in shapes.items()},
                "seen": seen,
            }
        )
    found = check_pattern(proto, None, PREPARED + NAME, feeds=feeds, **CLOSE)
    assert "Softmax" not in {n.op_type for n in found.graph.node}


def name_the_sum(proto: Any) -> None:
    """Names the number of keys by the formula that the outputs prove, as exporters do."""
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "t":
                dim.dim_param = "p+s"


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize(
    ("mask", "inputs"),
    [
        ("c = Where(seen, none, low) ", "bool[b, 1, 1, t] seen"),
        ("c = Where(seen, none, low) ", "bool[1, 1, t] seen"),
        ("c = Where(seen, none, low) ", "bool[t] seen"),
        ("c = Where(seen, none, low) ", "bool[s, t] seen"),
        ("c = Where(seen, none, low) ", "bool[1, s, t] seen"),
        ("c = Neg(seen) ", "float[b, 1, 1, t] seen"),
    ],
)
def test_masks_of_any_rank(mask: str, inputs: str, guarded: bool) -> None:
    """One row for every query (padding), or one for each."""
    body = mask + MOVES + plain(JOINED + MASKED + (GUARD if guarded else WEIGHTS) + VALUES)
    proto = model(body, f", {inputs}", outputs=NEW)
    name_the_sum(proto)
    sizes = [
        {"b": b, "s": s, "p": p, "p+s": p + s} for b, s, p in [(2, 1, 5), (1, 3, 4), (3, 2, 0)]
    ]
    found = check_pattern(proto, None, PREPARED + NAME, **CLOSE, sizes=sizes)
    types = [n.op_type for n in found.graph.node]
    assert types.count("MultiHeadAttention") == 1
    assert types.count("Softmax") == 0
    is_row = not inputs.startswith(("bool[s", "bool[1, s"))
    assert types.count("Expand") == is_row + guarded


REFUSED = {
    "no cache": (model(MOVES + ALONE, MASK), "no keys and values of the steps before are joined"),
    "a mask for each head": (
        model(STEP.replace("c = Where(before, none, low)", "c0 = Where(before, none, low) c = Mul(c0, slopes)"),
              ", float[4, 1, 1] slopes", outputs=NEW),
        "heads have their own masks",
    ),
    "one number for each query": (
        model(STEP.replace("LessOrEqual(c4, r4)", "LessOrEqual(step, r4)"), outputs=NEW),
        "the mask is broadcast in another way",
    ),
    "the queries are not moved": (
        model(STEP.replace("MatMul(Qm", "MatMul(Qn").replace("kt =", "Qn = Neg(Qm) kt ="), outputs=NEW),
        "the queries are not moved before",
    ),
    "the values are not moved": (
        model(STEP.replace("(O, Vm)", "(O, Vn)").replace("L = Concat<axis = 2>", "Vn = Neg(Vm) L = Concat<axis = 2>"), outputs=NEW),
        "the heads are not moved before",
    ),
    "heads that are inputs": (model_from_text(group(2, 3, 5)), "the heads are not moved before"),
}  # fmt: skip


def reasons_of(proto: Any) -> list[str]:
    """Why the pattern refuses a model whose attention is recognized."""
    reasons: list[str] = []
    pattern = get_pattern(NAME)
    pattern.listener = lambda told: reasons.append(told[3])
    builder = GraphBuilder(proto, infer_shapes_options=True)
    patterns = [*get_pattern(PREPARED.strip(","), as_list=True), pattern]
    GraphBuilderPatternOptimization(builder, patterns).optimize()
    assert "MultiHeadAttention" not in {n.op_type for n in builder.graph.nodes}
    return reasons


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    proto, reason = REFUSED[case]
    assert reason in reasons_of(proto)


def test_double() -> None:
    """onnxruntime has no kernel for it."""
    proto = model_from_text(group(2, 3, 5).replace("float", "double"))
    assert "onnxruntime has no MultiHeadAttention for this type" in reasons_of(proto)


@pytest.mark.parametrize(
    ("steps", "past", "is_read"), [("s", 5, False), (4, 5, False), (4, 4, True), (1, 5, True)]
)
def test_masks_on_cuda(steps: int | str, past: int, is_read: bool) -> None:
    """A kernel of CUDA fails on a mask when its rows are a multiple of 8 and the keys are not."""
    proto = model(STEP, outputs=NEW)
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            size = {"s": steps, "p": past}.get(dim.dim_param)
            if isinstance(size, int):
                dim.dim_value = size
    options = OptimizationOptions(patterns=PREPARED + NAME, processor="CUDA")
    builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
    operators = {n.op_type for n in builder.to_onnx().graph.node}
    assert ("MultiHeadAttention" in operators) is is_read
