"""Attention of onnxruntime: the number of keys it is told, masks that hold NaN and infinities."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper as onh
import pytest
from ut_xoptim.patterns_ort.attention.attention_texts import (
    CACHE,
    GUARD,
    MASKED,
    PREPARED,
    VALUES,
    attention,
    group,
)

from xoptim.testing import check_pattern, make_feeds, model_from_text
from xoptim.trust.session_child import open_session

GQA = PREPARED + "GroupQueryAttention3D"
MHA = PREPARED + "MultiHeadAttention3D(with_mask=True)"
LOWEST, INFINITY, NAN = np.finfo(np.float32).min, np.float32(-np.inf), np.float32(np.nan)


def with_past(batch: int, steps: int) -> onnx.ModelProto:
    """Heads that queries share, keys and values of an unknown number of steps before."""
    mask = f"float[{batch}, 1, {steps}, t] c, float[{batch}, 2, p, 8] P, float[{batch}, 2, p, 8] O"
    outputs = "".join(f", float[{batch}, 2, t, 8] {n}" for n in "JL")
    shapes = ";".join(f"{batch}, {n}, {steps}, 8" for n in (4, 2, 2))
    text = attention(CACHE, shapes, mask, f"{batch}, 4, {steps}, 8", outputs)
    proto = model_from_text(text.replace("{0, 4, -1, 6}", "{0, 4, -1, 8}"))
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "t":
                dim.dim_param = f"p+{steps}"
    return proto


def feeds_of(proto: onnx.ModelProto, past: int, steps: int, low: np.float32) -> dict:
    """Random inputs, the first query of the first sequence sees nothing."""
    feeds = make_feeds(proto, {"p": past, f"p+{steps}": past + steps, "b": 2, "s": 3, "t": 5})
    mask = feeds["c"]
    mask[mask < -0.5] = low
    mask[..., 0] = 0
    mask[0, :, 0] = low
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
MODELS = {
    "MultiHeadAttention": (model_from_text(MASKED), MHA),
    "MultiHeadAttention, zeros": (model_from_text(MASKED.replace(VALUES, GUARD)), MHA),
    "GroupQueryAttention": (model_from_text(group(2, 3)), GQA),
    "GroupQueryAttention, past": (model_from_text(group(1, 3, 5)), GQA),
    "GroupQueryAttention, zeros": (model_from_text(group(2, 3).replace(VALUES.split(" y")[0], GUARD.split(" y")[0])), GQA),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("whole", [True, False])
def test_mask(name: str, row: str, whole: bool) -> None:
    """A row of the mask that holds one number only, or a part of it; the others are usual."""
    proto, patterns = MODELS[name]
    feeds = feeds_of(proto, 0, 3, LOWEST)
    feeds["c"][0, 0, 1, : None if whole else 2] = ROWS[row]
    found = check_pattern(proto, None, patterns, feeds=[feeds], atol=1e-5, rtol=1e-5)
    assert name.split(",")[0] in {n.op_type for n in found.graph.node}
