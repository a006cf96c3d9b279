"""Masks made from the length of joined keys."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array, to_array
from ut_xoptim.patterns_ort.attention.attention_texts import BODY, PREPARED, REPEAT

from xbuilder import GraphBuilder
from xoptim import get_pattern
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_pattern, model_from_text

NAME = "JoinedLengths"
ALL = f"{PREPARED}{NAME},MultiHeadAttention3D,SharedHeadsAttention"
MOVES = """q1 = Reshape(q0, hq) Q = Transpose<perm = [0, 2, 1, 3]>(q1)
    k1 = Reshape(k0, hk) K = Transpose<perm = [0, 2, 1, 3]>(k1)
    v1 = Reshape(v0, hk) V = Transpose<perm = [0, 2, 1, 3]>(v1)
    J = Concat<axis = 2>(P, K) L = Concat<axis = 2>(O, V) """
TOTAL = "js = Shape(J) t = Gather(js, two) "
PIECES = "ps = Shape(P) p = Gather(ps, two) ks = Shape(k0) n = Gather(ks, one) t = Add(p, n) "
#: a causal mask of as many columns as t
CAUSAL = """qs = Shape(q0) steps = Gather(qs, one) before = Sub(t, steps) cols = Range(zero, t, one)
    rows = Range(before, t, one) r = Unsqueeze(rows, last) see = LessOrEqual(cols, r)
    c = Where(see, none, low) """
EACH = BODY.replace("(K)", "(J)").replace("MatMul(w, V)", "MatMul(w, L)")
SHARED = (
    (REPEAT.format("J") + REPEAT.format("L") + BODY)
    .replace("(K)", "(rJ)")
    .replace("MatMul(w, V)", "MatMul(w, rL)")
)
END = " y1 = Transpose<perm = [0, 2, 1, 3]>(y) z0 = Reshape(y1, flat)"


def model(
    lengths: str,
    body: str = EACH,
    mask: str = CAUSAL,
    heads: int = 4,
    moves: str = MOVES,
    inputs: str = "",
) -> Any:
    """An attention of 4 heads of 8 elements, with the keys of the steps before."""
    cache = "".join(f", float[b, {heads}, p, 8] {n}" for n in "PO")
    joined = "".join(f", float[b, {heads}, t, 8] {n}" for n in "JL")
    return model_from_text(
        f"""agraph (float[b, s, 32] q0, float[b, s, {8 * heads}] k0, float[b, s, {8 * heads}] v0{cache}{inputs})
        => (float[b, s, 32] z0{joined}) <
    float scale = {{0.25}}, float none = {{0}}, float low = {{-1e9}}, int64 zero = {{0}},
    int64 one = {{1}}, int64 two = {{2}}, int64[1] last = {{1}}, int64[1] axis = {{2}}, int64[1] place = {{0}}, int64[1] first = {{0}},
    int64[4] hq = {{0, 0, 4, 8}}, int64[4] hk = {{0, 0, {heads}, 8}}, int64[3] flat = {{0, 0, 32}},
    int64[5] spread = {{1, 1, 2, 1, 1}}, int64[4] four = {{0, 4, -1, 8}}
    > {{ {moves} {lengths} {mask} {body.replace(", two)", ", axis)")} {END} }}""",
        18,
    )


SIZES = [
    {"b": 2, "s": 3, "p": 5, "t": 8},
    {"b": 1, "s": 1, "p": 4, "t": 5},
    {"b": 2, "s": 2, "p": 0, "t": 2},
]
#: what the documentation draws: pattern -> (before, after)
MODELS = {NAME: (model(TOTAL), model(PIECES))}


def test_lengths() -> None:
    before, after = MODELS[NAME]
    check_pattern(before, after, f"{PREPARED}{NAME}", sizes=SIZES, atol=1e-5, rtol=1e-5)


LENGTHS = {
    "a number": TOTAL,
    "of values": TOTAL.replace("(J)", "(L)"),
    "from the end": TOTAL.replace("two", "minus").replace("js =", "minus = Neg(two) js ="),
    "one dimension of the shape": "js = Shape<start = 2, end = 3>(J) t = Squeeze(js) ",
    "a vector": "js = Shape(J) g = Gather(js, axis) t = Squeeze(g) ",
    "the batch too": TOTAL + "b = Gather(js, zero) f = Cast<to = 1>(b) u = Mul(f, none) ",
}


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize(("body", "heads"), [(EACH, 4), (SHARED, 2)])
def test_the_operator_joins(name: str, body: str, heads: int) -> None:
    """An operator for attention reads the mask and joins keys and values."""
    mask = CAUSAL
    if "u =" in LENGTHS[name]:
        mask = CAUSAL.replace(
            "c = Where(see, none, low)", "c0 = Where(see, none, low) c = Add(c0, u)"
        )
    proto = model(LENGTHS[name], body, mask, heads)
    found = check_pattern(proto, None, ALL, sizes=SIZES, atol=1e-5, rtol=1e-5)
    kinds = Counter(node.op_type for node in found.graph.node)
    assert kinds["MultiHeadAttention"] == 1
    assert not {"Softmax", "MatMul"} & set(kinds)


def test_rotated_keys() -> None:
    """RotaryEmbedding turns the keys once they are moved; queries share heads."""
    turned = "K = com.microsoft.RotaryEmbedding(K0, place, cos, sin) J ="
    moves = MOVES.replace("K = Transpose", "K0 = Transpose").replace("J =", turned)
    proto = model(TOTAL, SHARED, CAUSAL, 2, moves, ", float[16, 4] cos, float[16, 4] sin")
    found = check_pattern(proto, None, ALL, sizes=SIZES, atol=1e-5, rtol=1e-5)
    assert "MultiHeadAttention" in {node.op_type for node in found.graph.node}


ROWS = "c = Where(see, none, low) "
UNMOVED = MOVES.replace("K = Transpose", "K0 = Transpose").replace("J =", "K = Neg(K0) J =")
#: name -> (model, reason)
REFUSED = {
    "nothing is joined": (
        model(TOTAL, EACH.replace("MatMul(w, L)", "MatMul(w, L0)").replace("kt =", "L0 = Neg(L) kt =")),
        "nothing is joined, or no mask",
    ),
    "another length": (model(PIECES), "the mask does not depend on what is joined"),
    "the keys themselves": (
        model(TOTAL + "m0 = ReduceMin<keepdims = 0>(J) ", mask=CAUSAL.replace("none, low", "m0, low")),
        "the mask depends on more than a dimension",
    ),
    "the queries": (
        model(TOTAL, EACH.replace("MatMul(Q, kt)", "MatMul(Q2, kt)").replace(
            "kt =", "m0 = ReduceMin<keepdims = 0>(J) Q2 = Mul(Q, m0) kt =")),
        "something else depends on it",
    ),
    "keys that are not moved": (model(TOTAL, moves=UNMOVED), "the heads are not moved before"),
    "a row for all queries": (
        model(TOTAL, mask=CAUSAL.replace(ROWS, "c0 = Where(see, none, low) c = ReduceMin(c0, first) ")),
        "the mask is broadcast in another way",
    ),
    "heads have their own masks": (
        model(TOTAL, SHARED, CAUSAL.replace(ROWS, "c0 = Where(see, none, low) c = Mul(c0, slopes)"),
              2, MOVES, ", float[4, 1, 1] slopes"),
        "heads have their own masks",
    ),
}  # fmt: skip


def reasons(proto: Any, processor: str = "CPU") -> list[str]:
    """The answers of the pattern once the attention is recognized."""
    found: list[str] = []
    pattern = get_pattern(NAME)
    pattern.listener = lambda told: found.append(told[3])
    builder = GraphBuilder(proto, infer_shapes_options=True)
    patterns = [*get_pattern(PREPARED.strip(","), as_list=True), pattern]
    GraphBuilderPatternOptimization(builder, patterns, processor=processor).optimize()
    return found


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    proto, reason = REFUSED[case]
    assert reason in reasons(proto)


def test_another_processor_and_type() -> None:
    assert "it is for the processor CPU" in reasons(model(TOTAL), "CUDA")
    proto = model(TOTAL)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for array in proto.graph.initializer:
        if array.data_type == TensorProto.FLOAT:
            array.CopyFrom(from_array(to_array(array).astype(np.float64), array.name))
    assert "onnxruntime has no MultiHeadAttention for this type" in reasons(proto)
