"""Zeros that replace NaN in weights an operator keeps: the result is the one it was, whatever the
queries, the keys, the values and the mask hold."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from xbuilder import GraphBuilder
from xoptim import get_pattern
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_pattern, make_feeds, model_from_text

PREPARED = "FunctionAttention,FunctionAttentionGQA,"
MOVED = "{0}4 = Reshape({0}, {1}) {0}t = Transpose<perm = [0, 2, 1, 3]>({0}4) "
FLAT = MOVED.format("q", "heads") + MOVED.format("k", "heads") + MOVED.format("v", "heads")
SHARED = FLAT.replace("(k, heads)", "(k, pairs)").replace("(v, heads)", "(v, pairs)")
REPEAT = "{0}u = Unsqueeze({0}t, two) {0}e = Expand({0}u, spread) {0}r = Reshape({0}e, four) "
SCORES = "kx = Transpose<perm = [0, 1, 3, 2]>(kt) m = MatMul(qt, kx) n = Mul(m, scale) "
MASK = "c = Add(n, mask) "
SEEN = "mask = Where(seen, zero, low) "
GUARD = "w0 = Softmax<axis = -1>(c) i = IsNaN(w0) w = Where(i, zero, w0) o = MatMul(w, vt) "
BACK = "ot = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(ot, flat)"
PLAIN = FLAT + SCORES + GUARD.replace("(c)", "(n)") + BACK
MASKED = FLAT + SCORES + MASK + GUARD + BACK
GROUPS = (
    SHARED + REPEAT.format("k") + REPEAT.format("v")
    + (SCORES + MASK + GUARD).replace("(kt)", "(kr)").replace("vt)", "vr)") + BACK
)  # fmt: skip
JOINED = "".join(f"{n}n = Concat<axis = 2>({n}p, {n}t) " for n in "kv")
CACHED = (
    SHARED + JOINED + REPEAT.format("k").replace("kt", "kn") + REPEAT.format("v").replace("vt", "vn")
    + (SCORES + MASK + GUARD).replace("(kt)", "(kr)").replace("vt)", "vr)") + BACK
)  # fmt: skip
PROJECTED = "".join(f"{n}0 = MatMul(x, {n}w) {n} = Add({n}0, {n}b) " for n in "qkv")
SEQUENCES = "float[b, s, 32] q, float[b, t, 32] k, float[b, t, 32] v"
BIAS = ", float[b, 1, s, t] mask"
PAIRS = "float[2, {s}, 32] q, float[2, {s}, 16] k, float[2, {s}, 16] v, float[2, 1, {s}, {t}] mask"
PAST = ", float[2, 2, 5, 8] kp, float[2, 2, 5, 8] vp"


def model(body: str, inputs: str, opset: int = 18, outputs: str = "") -> onnx.ModelProto:
    """An attention of 4 heads of length 8."""
    text = f"""g ({inputs}) => (float[b, s, 32] y{outputs}) <
        int64[4] heads = {{0, 0, 4, 8}}, int64[4] pairs = {{0, 0, 2, 8}}, int64[3] flat = {{0, 0, 32}},
        int64[1] two = {{2}}, int64[5] spread = {{1, 1, 2, 1, 1}}, int64[4] four = {{0, 4, -1, 8}},
        float scale = {{0.25}}, float zero = {{0}}, float low = {{-1}}
    > {{ {body} }}"""
    made = model_from_text(text, opset)
    (low,) = [i for i in made.graph.initializer if i.name == "low"]
    low.CopyFrom(onnx.numpy_helper.from_array(np.array(-np.inf, np.float32), "low"))
    rng = np.random.default_rng(0)
    for name in "qkv" if "qw" in body else "":
        for kind, dims in (("w", (32, 32)), ("b", (32,))):
            value = rng.standard_normal(dims).astype(np.float32)
            made.graph.initializer.append(onnx.numpy_helper.from_array(value, name + kind))
    return made


#: name -> model, pattern, where the values come from
FORMS = {
    "no mask": (model(PLAIN, SEQUENCES), "MultiHeadAttention3D", "v"),
    "known length": (
        model(PLAIN, SEQUENCES.replace("t,", "7,")), "MultiHeadAttention3D", "v",
    ),
    "mask": (model(MASKED, SEQUENCES + BIAS), "MultiHeadAttention3D(with_mask=True)", "v"),
    "heads that are not moved": (
        model(
            (SCORES + MASK + GUARD + BACK).replace("kt)", "k)").replace("qt,", "q,").replace("vt)", "v)"),
            ", ".join(f"float[b, 4, {n}, 8] {i}" for i, n in zip("qkv", "stt", strict=True)) + BIAS,
        ),
        "MultiHeadAttention3D(with_mask=True)", "v",
    ),
    "weights": (model(PROJECTED + PLAIN, "float[b, s, 32] x"), "Attention3D", "x"),
    "weights, mask": (
        model(PROJECTED + MASKED, "float[b, s, 32] x, float[b, 1, s, s] mask"), "Attention3D", "x",
    ),
    "shared heads": (model(GROUPS, PAIRS.format(s=5, t=5)), "GroupQueryAttention3D", "v"),
    "cache": (
        model(
            CACHED, PAIRS.format(s=1, t=6) + PAST,
            outputs="".join(f", float[2, 2, 6, 8] {n}n" for n in "kv"),
        ),
        "GroupQueryAttention3D(even_slower=True)", "v",
    ),
    "opset 23": (model(PLAIN, SEQUENCES, 23), "AttentionGQA", "v"),
    "opset 23, mask": (model(SEEN + MASKED, SEQUENCES + ", bool[b, 1, s, t] seen", 23), "AttentionGQA", "v"),
    "opset 23, heads that are not moved": (
        model(
            (SEEN + SCORES + MASK + GUARD + BACK).replace("kt)", "k)").replace("qt,", "q,").replace("vt)", "v)"),
            ", ".join(f"float[b, 4, {n}, 8] {i}" for i, n in zip("qkv", "stt", strict=True))
            + ", bool[b, 1, s, t] seen", 23,
        ),
        "AttentionGQA", "v",
    ),
    "opset 23, shared heads": (
        model(SEEN + GROUPS, PAIRS.format(s=5, t=5).replace("float[2, 1, 5, 5] mask", "bool[2, 1, 5, 5] seen"), 23),
        "AttentionGQA", "v",
    ),
    "opset 23, shared heads that are not moved": (
        model(
            SEEN + GROUPS.replace(SHARED, "kt = Identity(k) vt = Identity(v) qt = Identity(q) "),
            "float[b, 4, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 8] v, bool[b, 1, s, t] seen", 23,
        ),
        "AttentionGQA", "v",
    ),
    "opset 23, cache": (
        model(
            SEEN + CACHED,
            PAIRS.format(s=1, t=6).replace("float[2, 1, 1, 6] mask", "bool[2, 1, 1, 6] seen") + PAST, 23,
            "".join(f", float[2, 2, 6, 8] {n}n" for n in "kv"),
        ),
        "AttentionGQA", "v",
    ),
}  # fmt: skip


def with_fixed(proto: onnx.ModelProto, sizes: dict[str, int]) -> onnx.ModelProto:
    """The model with some of its dimensions fixed."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(proto)
    for value in (*fixed.graph.input, *fixed.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    return fixed


#: what inputs hold: the input the values come from or the queries, the number
CONTENTS = {
    "numbers": ("", 0.0),
    "NaN in the values": ("values", np.nan),
    "an infinity in the values": ("values", np.inf),
    "NaN in the queries": ("q", np.nan),
    "NaN in the keys": ("k", -np.inf),
}


def feeds_of(proto: onnx.ModelProto, content: str, values: str, sizes: dict) -> dict:
    """Random inputs; the first query of the first sequence sees nothing, an element is replaced."""
    feeds = make_feeds(proto, sizes)
    if "mask" in feeds:
        feeds["mask"][feeds["mask"] < 0] = -np.inf
        feeds["mask"][..., 0] = 0
        feeds["mask"][0, :, 0] = -np.inf
    if "seen" in feeds:
        feeds["seen"][..., 0] = True
        feeds["seen"][0, :, 0] = False
    name, number = CONTENTS[content]
    name = values if name == "values" or name not in feeds else name
    if "seen" in feeds and name == "k":
        number = np.nan  # an infinite score that is hidden is hidden for the operator
    if content != "numbers":
        feeds[name][(0,) * (feeds[name].ndim - 1) + (3,)] = number
    return feeds


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("form", FORMS)
def test_same_result(form: str, content: str) -> None:
    proto, pattern, values = FORMS[form]
    rows = [
        feeds_of(proto, content, values, sizes)
        for sizes in ({"b": 2, "s": 3, "t": 7}, {"b": 1, "s": 1, "t": 4}, {"b": 2, "s": 40, "t": 33})
    ]  # fmt: skip
    found = check_pattern(proto, None, PREPARED + pattern, feeds=rows, atol=1e-5, rtol=1e-4)
    types = [n.op_type for n in found.graph.node]
    assert any("Attention" in t for t in types)
    assert "Softmax" not in types
    assert types.count("IsNaN") == types.count("Where") == 1
    assert types.count("MatMul") == (2 if values == "x" else 1)


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("form", [f for f, (_, name, _) in FORMS.items() if "Multi" in name])
def test_cuda(form: str, content: str) -> None:
    """A sum on CUDA, which needs no shape."""
    proto, pattern, values = FORMS[form]
    proto = with_fixed(proto, {"s": 3})
    feeds = [feeds_of(proto, content, values, {"b": 2, "t": 7})]
    found = check_pattern(
        proto, None, PREPARED + pattern, feeds=feeds, atol=1e-5, rtol=1e-4, processor="CUDA"
    )
    types = [n.op_type for n in found.graph.node]
    assert types.count("ReduceSum") == types.count("IsNaN") == 1
    assert not {"MatMul", "Shape", "Expand"} & set(types)


@pytest.mark.parametrize("sizes", [{"b": 0, "s": 3, "t": 5}, {"b": 2, "s": 0, "t": 5}])
@pytest.mark.parametrize("form", ["no mask", "mask", "weights", "weights, mask"])
def test_empty(form: str, sizes: dict[str, int]) -> None:
    proto, pattern, _ = FORMS[form]
    found = check_pattern(proto, None, PREPARED + pattern, sizes=sizes, atol=1e-5, rtol=1e-4)
    assert "Softmax" not in {n.op_type for n in found.graph.node}


def reasons_of(proto: onnx.ModelProto, pattern: str) -> list[str]:
    """Why a pattern refuses; the graph is put back."""
    told: list[str] = []
    listened = get_pattern(pattern)
    listened.listener = lambda row: told.append(row[3])
    builder = GraphBuilder(proto, infer_shapes_options=True)
    prepared = [get_pattern(name) for name in PREPARED.strip(",").split(",")]
    GraphBuilderPatternOptimization(builder, [*prepared, listened]).optimize()
    before = sorted(n.op_type for n in proto.graph.node)
    assert sorted(n.op_type for n in builder.graph.nodes) == before
    return told


@pytest.mark.parametrize("name", ["vw", "vb"])
@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_weights_that_are_not_finite(name: str, number: float) -> None:
    """Zeros times these values are not 0, even where the sequence is finite."""
    proto = model(PROJECTED + PLAIN, "float[b, s, 32] x")
    (tensor,) = [i for i in proto.graph.initializer if i.name == name]
    value = onnx.numpy_helper.to_array(tensor).copy()
    value.flat[5] = number
    tensor.CopyFrom(onnx.numpy_helper.from_array(value, name))
    assert "a weight of the values is not finite" in reasons_of(proto, "Attention3D")


def test_before_opset_15() -> None:
    proto = model(PLAIN, SEQUENCES, 14)
    assert any("opset 15" in reason for reason in reasons_of(proto, "MultiHeadAttention3D"))
