"""Attention of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from ut_xoptim.patterns_ort.attention.attention_texts import (
    BODY,
    CACHE,
    GUARD,
    MASKED,
    PLAIN,
    PREPARED,
    SCORES,
    VALUES,
    as_float16,
    attention,
    group,
)

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import get_pattern
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_pattern, make_feeds, model_from_text
from xoptim.trust.sessions.session_child import open_session

UNMASKED = attention(PLAIN, "b, 4, s, 8;b, 4, t, 8;b, 4, t, 6", "", "b, 4, s, 6")
MOVED_BACK = attention(
    PLAIN.replace("y =", "y0 =") + " y = Transpose<perm = [0, 2, 1, 3]>(y0)",
    "b, 4, s, 8;b, 4, t, 8;b, 4, t, 6", "", "b, s, 4, 6",
)  # fmt: skip
MOVED = attention(
    "Qm = Transpose<perm = [0, 2, 1, 3]>(Q) kt = Transpose<perm = [0, 2, 3, 1]>(K) "
    "Vm = Transpose<perm = [0, 2, 1, 3]>(V) " + SCORES.replace("(Q,", "(Qm,")
    + VALUES.replace("(z)", "(s)").replace("V)", "Vm)").replace("y =", "y0 =")
    + " y = Transpose<perm = [0, 2, 1, 3]>(y0)",
    "b, s, 4, 8;b, t, 4, 8;b, t, 4, 6", "", "b, s, 4, 6",
)  # fmt: skip
WRITTEN = attention(
    "q = Reshape(Q, flat) k = Reshape(K, flat) v = Reshape(V, flatv) "
    "r = com.microsoft.MultiHeadAttention<num_heads = 4, scale = 0.25>(q, k, v) y = Reshape(r, heads)",
    "b, s, 4, 8;b, t, 4, 8;b, t, 4, 6", "", "b, s, 4, 6",
)  # fmt: skip


GROUP = group(2, 3)
GROUP_WRITTEN = attention(
    "qm = Transpose<perm = [0, 2, 1, 3]>(Q) q = Reshape(qm, flat) "
    "km = Transpose<perm = [0, 2, 1, 3]>(K) k = Reshape(km, half) "
    "vm = Transpose<perm = [0, 2, 1, 3]>(V) v = Reshape(vm, half) "
    "r = com.microsoft.GroupQueryAttention<causal = 0, kv_num_heads = 2, num_heads = 4, "
    "scale = 0.25>(q, k, v, , , lasts, total, , , , c) r4 = Reshape(r, heads) "
    "y = Transpose<perm = [0, 2, 1, 3]>(r4)",
    "2, 4, 3, 8;2, 2, 3, 8;2, 2, 3, 8", "float[2, 1, 3, 3] c", "2, 4, 3, 8",
).replace("{0, 0, 4, 6}", "{0, 0, 4, 8}, int64[3] half = {0, 0, 16}, int32[2] lasts = {2, 2}, int32 total = {3}")  # fmt: skip
MOVES = "".join(f"{x}m = Transpose<perm = [0, 2, 1, 3]>({x}) " for x in "QKV")
JOINED = (
    "J = Concat<axis = 2>(P, Km) L = Concat<axis = 2>(O, Vm) "
    + BODY.replace("(K)", "(J)").replace("(Q,", "(Qm,").replace("V)", "L)").replace("y =", "y0 =")
    + " y = Transpose<perm = [0, 2, 1, 3]>(y0)"
)  # fmt: skip


def joined(body: str, batch: int = 2, steps: int = 1, past: int = 5) -> str:
    """An attention that reads the keys and values of the steps before."""
    new, total = f"{batch}, {steps}, 4, 8", past + steps
    mask = f"float[{batch}, 1, {steps}, {total}] c"
    mask += "".join(f", float[{batch}, 4, {past}, 8] {n}" for n in "PO")
    out = "".join(f", float[{batch}, 4, {total}, 8] {n}" for n in "JL")
    text = attention(body, f"{new};{new};{new}", mask, new, out)
    return text.replace("{0, 0, 4, 6}", "{0, 0, 4, 8}")


JOINED_WRITTEN = joined(
    "q = Reshape(Q, flat) k = Reshape(K, flat) v = Reshape(V, flat) "
    "r, J, L = com.microsoft.MultiHeadAttention<num_heads = 4, scale = 0.25>(q, k, v, , , c, P, O) "
    "y = Reshape(r, heads)"
)
#: what the documentation draws: name -> (before, after)
MODELS = {
    "MultiHeadAttention3D": (MOVED, WRITTEN),
    "GroupQueryAttention3D": (GROUP, GROUP_WRITTEN),
}


@pytest.mark.parametrize("name", MODELS)
def test_operator(name: str) -> None:
    check_pattern(*MODELS[name], PREPARED + name, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "sizes",
    [
        {"b": 2, "s": 3, "t": 5}, {"b": 1, "s": 1, "t": 9}, {"b": 3, "s": 40, "t": 40},
        {"b": 0, "s": 3, "t": 5}, {"b": 2, "s": 0, "t": 5}, {"b": 2, "s": 0, "t": 0},
    ],
)  # fmt: skip
@pytest.mark.parametrize("text", [MOVED_BACK, MOVED, MOVED_BACK.replace("6]", "8]")])
def test_sizes(text: str, sizes: dict[str, int]) -> None:
    """Empty batches, empty sequences; keys that are moved already, or not."""
    found = check_pattern(
        text, None, PREPARED + "MultiHeadAttention3D", sizes=sizes, atol=1e-5, rtol=1e-5
    )
    assert "MultiHeadAttention" in {n.op_type for n in found.graph.node}


def hidden_rows(text: str, low: float) -> dict[str, np.ndarray]:
    """Random inputs; the first query of the first sequence sees nothing."""
    rng = np.random.default_rng(0)
    feeds = {}
    for i in model_from_text(text).graph.input:
        sizes = {"b": 2, "s": 3, "t": 5}
        dims = [sizes.get(d.dim_param, d.dim_value) for d in i.type.tensor_type.shape.dim]
        feeds[i.name] = rng.standard_normal(dims).astype(np.float32)
    feeds["c"][feeds["c"] < -0.5] = low
    feeds["c"][..., 0] = 0
    first = feeds["c"][:1] if feeds["c"].ndim > 2 else feeds["c"]
    first[..., 0, :] = low
    return feeds


@pytest.mark.parametrize("low", [np.float32(-np.inf), np.finfo(np.float32).min, np.float32(-1e4)])
def test_masks(low: np.float32) -> None:
    """Rows that are entirely hidden keep their result, NaN included."""
    feeds = [hidden_rows(MASKED, low)]
    found = check_pattern(
        MASKED, None, PREPARED + "MultiHeadAttention3D(with_mask=True)",
        feeds=feeds, atol=1e-5, rtol=1e-5,
    )  # fmt: skip
    assert "MultiHeadAttention" in {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("mask", ["s, t", "4, s, t", "1, s, t", "b, 4, s, t"])
def test_masks_of_any_rank(mask: str) -> None:
    """The first query sees nothing; a mask of fewer dimensions is the same for each sequence."""
    text = MASKED.replace("[b, 1, s, t] c", f"[{mask}] c")
    found = check_pattern(
        text, None, PREPARED + "MultiHeadAttention3D(with_mask=True)",
        feeds=[hidden_rows(text, np.float32(-np.inf))], atol=1e-5, rtol=1e-5,
    )  # fmt: skip
    types = {n.op_type for n in found.graph.node}
    assert "MultiHeadAttention" in types and ("Unsqueeze" in types) is (mask[0] != "b")


@pytest.mark.parametrize("mask", ["s", "1, s", "1, 1, s", "s, 1", "1, 1, 1, s"])
def test_a_row_or_a_column_of_any_rank(mask: str) -> None:
    """It is repeated where there are as many keys as queries."""
    text = MASKED.replace("[b, 1, s, t] c", f"[{mask}] c").replace(", t,", ", s,")
    found = check_pattern(
        text, None, PREPARED + "MultiHeadAttention3D(with_mask=True)",
        sizes=[{"b": 2, "s": 3}, {"b": 1, "s": 1}], atol=1e-5, rtol=1e-5,
    )  # fmt: skip
    assert {"MultiHeadAttention", "Expand"} <= {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("low", [np.float32(-np.inf), np.finfo(np.float32).min, np.float32(-1e4)])
@pytest.mark.parametrize(
    ("batch", "steps", "past"), [(2, 3, 0), (1, 3, 5), (3, 1, 5), (1, 1, 1), (1, 40, 7)]
)
def test_groups(batch: int, steps: int, past: int, low: np.float32) -> None:
    text = group(batch, steps, past)
    found = check_pattern(
        text, None, PREPARED + "GroupQueryAttention3D(even_slower=True)",
        feeds=[hidden_rows(text, low)], atol=1e-5, rtol=1e-5,
    )  # fmt: skip
    (node,) = [n for n in found.graph.node if n.op_type == "GroupQueryAttention"]
    assert len(node.output) == (3 if past else 1)
    assert not {"Softmax", "MatMul", "Concat"} & {n.op_type for n in found.graph.node}


def test_cache() -> None:
    """Keys and values that are joined: the operator does it, with a mask."""
    before = joined(MOVES + JOINED)
    check_pattern(before, JOINED_WRITTEN, PREPARED + "MultiHeadAttention3D", atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("low", [np.float32(-np.inf), np.finfo(np.float32).min, np.float32(-1e4)])
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize(("batch", "steps", "past"), [(2, 1, 5), (2, 3, 4), (1, 1, 0)])
def test_cache_sizes(batch: int, steps: int, past: int, guarded: bool, low: np.float32) -> None:
    """Rows that are entirely hidden, nothing before."""
    body = JOINED.replace(VALUES.split(" y")[0], GUARD.split(" y")[0]) if guarded else JOINED
    text = joined(MOVES + body, batch, steps, past)
    found = check_pattern(
        text, None, PREPARED + "MultiHeadAttention3D",
        feeds=[hidden_rows(text, low)], atol=1e-5, rtol=1e-5,
    )  # fmt: skip
    types = {n.op_type for n in found.graph.node}
    (node,) = [n for n in found.graph.node if n.op_type == "MultiHeadAttention"]
    assert len(node.output) == 3
    assert "Softmax" not in types
    assert ("IsNaN" in types) == guarded


#: name -> (model, pattern): the graph is put back
STAYS = {
    "a mask": (MASKED, "MultiHeadAttention3D"),
    "a mask without queries": (
        MASKED.replace("[b, 1, s, t] c", "[b, 1, 1, t] c"), "MultiHeadAttention3D(with_mask=True)",
    ),
    "guarded, a mask": (MASKED.replace(VALUES, GUARD), "MultiHeadAttention3D"),
    "heads moved to sequences and back": (UNMASKED, "MultiHeadAttention3D"),
    "double": (MOVED_BACK.replace("float", "double"), "MultiHeadAttention3D"),
    "an empty batch": (group("b", 3), "GroupQueryAttention3D"),
    "an empty sequence": (group(2, "s"), "GroupQueryAttention3D"),
    "a cache and several of each": (group(2, 3, 5), "GroupQueryAttention3D"),
    "short heads": (group(2, 3, 0, 4), "GroupQueryAttention3D"),
    "other keys": (
        GROUP.replace("float[2, 2, 3, 8]", "float[2, 2, 5, 8]").replace("[2, 1, 3, 3]", "[2, 1, 3, 5]"),
        "GroupQueryAttention3D",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_stays(name: str) -> None:
    text, pattern = STAYS[name]
    model = model_from_text(text)
    builder = GraphBuilder(model, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, PREPARED + pattern).optimize()
    found = sorted(n.op_type for n in builder.graph.nodes)
    assert found == sorted(n.op_type for n in model.graph.node)


def test_one_head() -> None:
    """One head needs no transposition: the operator is 1 to 1.28 times slower, measured."""
    text = attention(
        "qu = Unsqueeze(Q, one) kt = Transpose<perm = [0, 2, 1]>(K) ku = Unsqueeze(kt, one) "
        "vu = Unsqueeze(V, one) m = MatMul(qu, ku) s = Mul(m, scale) w = Softmax<axis = -1>(s) "
        "o = MatMul(w, vu) y = Squeeze(o, one)",
        "b, s, 8;b, t, 8;b, t, 6", "", "b, s, 6",
    ).replace("float zero", "int64[1] one = {1}, float zero")  # fmt: skip
    reasons: list[str] = []
    pattern = get_pattern("MultiHeadAttention3D")
    pattern.listener = lambda told: reasons.append(told[3])
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, [get_pattern("FunctionAttention"), pattern]).optimize()
    expected = "one head is not moved, the operator would copy it, even_slower=True applies it"
    assert expected in reasons
    assert "Softmax" in {n.op_type for n in builder.graph.nodes}


# -- Attention of onnxruntime: the number of keys it is told, masks that hold NaN and infinities

GQA = PREPARED + "GroupQueryAttention3D(even_slower=True)"
MHA = PREPARED + "MultiHeadAttention3D(with_mask=True)"
LOWEST, INFINITY, NAN = np.finfo(np.float32).min, np.float32(-np.inf), np.float32(np.nan)


def with_past(batch: int, steps: int) -> onnx.ModelProto:
    """Heads that queries share, keys and values of an unknown number of steps before."""
    mask = f"float[{batch}, 1, {steps}, p] c0, float[{batch}, 1, {steps}, {steps}] c1, "
    mask += f"float[{batch}, 2, p, 8] P, float[{batch}, 2, p, 8] O"
    outputs = "".join(f", float[{batch}, 2, t, 8] {n}" for n in "JL")
    shapes = ";".join(f"{batch}, {n}, {steps}, 8" for n in (4, 2, 2))
    text = attention(CACHE, shapes, mask, f"{batch}, 4, {steps}, 8", outputs)
    proto = model_from_text(text.replace("{0, 4, -1, 6}", "{0, 4, -1, 8}"))
    proto.graph.node.insert(0, oh.make_node("Concat", ["c0", "c1"], ["c"], axis=3))
    return proto


def feeds_of(proto: onnx.ModelProto, past: int, steps: int, low: np.float32) -> dict:
    """Random inputs, the first query of the first sequence sees nothing."""
    feeds = make_feeds(proto, {"p": past, f"p+{steps}": past + steps, "b": 2, "s": 3, "t": 5})
    cut = "c0" in feeds
    mask = np.concatenate([feeds["c0"], feeds["c1"]], axis=3) if cut else feeds["c"]
    mask[mask < -0.5] = low
    mask[..., 0] = 0
    mask[0, :, 0] = low
    if cut:
        feeds["c0"], feeds["c1"] = mask[..., :past], mask[..., past:]
    return feeds


def told(proto: onnx.ModelProto, feeds: dict) -> tuple[list[int], int]:
    """The inputs of GroupQueryAttention: seqlens_k, total_sequence_length."""
    (node,) = [n for n in proto.graph.node if n.op_type == "GroupQueryAttention"]
    known = {i.name: onh.to_array(i) for i in proto.graph.initializer}
    seen = onnx.ModelProto()
    seen.CopyFrom(proto)
    missing = [name for name in node.input[5:7] if name not in known]
    seen.graph.output.extend(onnx.ValueInfoProto(name=name) for name in missing)
    if missing:
        values = open_session(seen.SerializeToString(), []).run(missing, feeds)
        known.update(zip(missing, values, strict=True))
    lasts, total = (known[name] for name in node.input[5:7])
    assert lasts.dtype == total.dtype == np.int32
    return lasts.tolist(), int(total)


@pytest.mark.parametrize("past", [0, 1, 6])
@pytest.mark.parametrize(("batch", "steps"), [(1, 1), (1, 4), (3, 1)])
def test_unknown_past(batch: int, steps: int, past: int) -> None:
    """seqlens_k is the number of keys of each sequence minus one, nothing before or some."""
    proto = with_past(batch, steps)
    feeds = feeds_of(proto, past, steps, LOWEST)
    found = check_pattern(proto, None, GQA, feeds=[feeds], atol=1e-5, rtol=1e-5)
    assert told(found, feeds) == ([past + steps - 1] * batch, past + steps)


@pytest.mark.parametrize(("batch", "steps", "past"), [(2, 3, 0), (1, 3, 5), (3, 1, 5), (1, 1, 0)])
def test_known_past(batch: int, steps: int, past: int) -> None:
    proto = model_from_text(group(batch, steps, past))
    feeds = feeds_of(proto, past, steps, LOWEST)
    found = check_pattern(proto, None, GQA, feeds=[feeds], atol=1e-5, rtol=1e-5)
    assert told(found, feeds) == ([past + steps - 1] * batch, past + steps)


#: a mask -> its first row, what hides elsewhere
ROWS = {
    "infinities": INFINITY,
    "lowest": LOWEST,
    "NaN": NAN,
    "an infinite score": np.float32(np.inf),
    "half of the lowest": LOWEST / 2,
}
LENGTHS_MODELS = {
    "MultiHeadAttention": (model_from_text(MASKED), MHA),
    "MultiHeadAttention, zeros": (model_from_text(MASKED.replace(VALUES, GUARD)), MHA),
    "GroupQueryAttention": (model_from_text(group(2, 3)), GQA),
    "GroupQueryAttention, past": (model_from_text(group(1, 3, 5)), GQA),
    "GroupQueryAttention, zeros": (model_from_text(group(2, 3).replace(VALUES.split(" y")[0], GUARD.split(" y")[0])), GQA),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", LENGTHS_MODELS)
@pytest.mark.parametrize("whole", [True, False])
def test_mask(name: str, row: str, whole: bool) -> None:
    """A row of the mask that holds one number only, or a part of it; the others are usual."""
    proto, patterns = LENGTHS_MODELS[name]
    feeds = feeds_of(proto, 0, 3, LOWEST)
    feeds["c"][0, 0, 1, : None if whole else 2] = ROWS[row]
    found = check_pattern(proto, None, patterns, feeds=[feeds], atol=1e-5, rtol=1e-5)
    assert name.split(",")[0] in {n.op_type for n in found.graph.node}


def test_a_mask_of_any_numbers() -> None:
    """With a cache, MultiHeadAttention adds the mask as it is: AttentionAnyMask comes after it."""
    model = model_from_text(joined(MOVES + JOINED, steps=3), 23)
    builder = GraphBuilder(model, infer_shapes_options=True)
    patterns = PREPARED + "AttentionAnyMask,MultiHeadAttention3D"
    GraphBuilderPatternOptimization(builder, patterns).optimize()
    types = [n.op_type for n in builder.graph.nodes]
    assert "MultiHeadAttention" in types and not {"Attention", "Greater"} & set(types)


def many_heads(steps: int) -> str:
    """Twelve queries share six heads."""
    text = group(1, steps).replace(f"1, 4, {steps}", f"1, 12, {steps}")
    return text.replace(f"1, 2, {steps}", f"1, 6, {steps}").replace("{0, 4, -1", "{0, 12, -1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (group(1, 3, 5), "the products read shared heads once, even_slower=True applies it"),
        (group(1, 1, 5), "the products read shared heads once, even_slower=True applies it"),
        (many_heads(127), "the products of many heads are faster, even_slower=True applies it"),
        (many_heads(128), ""),
    ],
)
def test_products_that_are_faster(text: str, reason: str) -> None:
    """The operator takes 1.02 to 2.2 of their time there."""
    pattern = get_pattern("GroupQueryAttention3D")
    reasons: list[str] = []
    pattern.listener = lambda told: reasons.append(told[3])
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    patterns = [*get_pattern(PREPARED.strip(","), as_list=True), pattern]
    GraphBuilderPatternOptimization(builder, patterns).optimize()
    operators = {n.op_type for n in builder.graph.nodes}
    assert ("GroupQueryAttention" in operators) == (not reason)
    assert not reason or reason in reasons


@pytest.mark.parametrize("processor", ["CUDA", "CPU,CUDA"])
def test_shared_heads_on_cuda(processor: str) -> None:
    """Products were measured faster than the operator."""
    options = OptimizationOptions(patterns=PREPARED + "GroupQueryAttention3D", processor=processor)
    model = as_float16(model_from_text(GROUP))
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    operators = {n.op_type for n in builder.to_onnx().graph.node}
    assert "GroupQueryAttention" not in operators and "Softmax" in operators


@pytest.mark.parametrize(
    ("steps", "total", "is_read"),
    [
        ("s", "s", True), ("3", "t", True), ("8", "16", True), ("s", "24", True),
        ("s", "t", False), ("8", "t", False), ("16", "12", False),
    ],
)  # fmt: skip
def test_masks_on_cuda(steps: str, total: str, is_read: bool) -> None:
    """A kernel of CUDA fails on a mask when the queries are a multiple of 8 and the keys are not."""
    text = MASKED.replace(" t,", f" {total},").replace(" s,", f" {steps},")
    text = text.replace(" t]", f" {total}]")
    name = "MultiHeadAttention3D(with_mask=True)"
    for processor in ("CUDA", "CPU,CUDA"):
        options = OptimizationOptions(patterns=PREPARED + name, processor=processor)
        builder = GraphBuilder(
            model_from_text(text), infer_shapes_options=True, optimization_options=options
        )
        operators = {n.op_type for n in builder.to_onnx().graph.node}
        assert ("MultiHeadAttention" in operators) is is_read
    check_pattern(text, None, PREPARED + name, sizes={"b": 2, "s": 8, "t": 11}, atol=1e-5)
