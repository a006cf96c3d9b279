"""Texts of attentions."""

from __future__ import annotations

import numpy as np
import onnx

PREPARED = "FunctionAttention,FunctionAttentionGQA,"
KEYS = "kt = Transpose<perm = [0, 1, 3, 2]>(K) "
SCORES = "m = MatMul(Q, kt) s = Mul(m, scale) "
BIAS = "z = Add(s, c) "
VALUES = "w = Softmax<axis = -1>(z) y = MatMul(w, V)"
PLAIN = KEYS + SCORES + VALUES.replace("(z)", "(s)")
BODY = KEYS + SCORES + BIAS + VALUES
REPEAT = "u{0} = Unsqueeze({0}, two) e{0} = Expand(u{0}, spread) r{0} = Reshape(e{0}, four) "
SHARED = (
    REPEAT.format("K") + REPEAT.format("V")
    + BODY.replace("(K)", "(rK)").replace("MatMul(w, V)", "MatMul(w, rV)")
)  # fmt: skip
CACHE = "J = Concat<axis = 2>(P, K) L = Concat<axis = 2>(O, V) " + SHARED.replace(
    "Unsqueeze(K", "Unsqueeze(J"
).replace("Unsqueeze(V", "Unsqueeze(L")


def attention(body: str, shapes: str, mask: str, out: str, outputs: str = "") -> str:
    """An attention whose heads are inputs; *shapes* are those of Q, K, V."""
    q, k, v = shapes.split(";")
    mask = f", {mask}" if mask else ""
    return f"""agraph (float[{q}] Q, float[{k}] K, float[{v}] V{mask}) => (float[{out}] y{outputs}) <
    float scale = {{0.25}}, float zero = {{0}}, int64[1] two = {{2}}, int64[4] heads = {{0, 0, 4, 6}},
    int64[5] spread = {{1, 1, 2, 1, 1}}, int64[4] four = {{0, 4, -1, 8}},
    int64[3] flat = {{0, 0, 32}}, int64[3] flatv = {{0, 0, 24}}
> {{
    {body}
}}"""


def group(batch: int | str, steps: int | str, past: int = 0, length: int = 8) -> str:
    """Heads that queries share, with a cache if *past* is not 0."""
    total = steps + past if isinstance(steps, int) else steps
    shapes = ";".join(f"{batch}, {n}, {steps}, {length}" for n in (4, 2, 2))
    mask, outputs = f"float[{batch}, 1, {steps}, {total}] c", ""
    if past:
        mask += "".join(f", float[{batch}, 2, {past}, {length}] {n}" for n in "PO")
        outputs = "".join(f", float[{batch}, 2, {total}, {length}] {n}" for n in "JL")
    text = attention(
        CACHE if past else SHARED, shapes, mask, f"{batch}, 4, {steps}, {length}", outputs
    )
    return text.replace("{0, 4, -1, 8}", f"{{0, 4, -1, {length}}}")


MASKED = attention(BODY, "b, 4, s, 8;b, 4, t, 8;b, 4, t, 6", "float[b, 1, s, t] c", "b, 4, s, 6")
GUARD = "w0 = Softmax<axis = -1>(z) i = IsNaN(w0) w = Where(i, zero, w0) y = MatMul(w, V)"


def as_float16(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with numbers of 16 bits."""
    for value in (*proto.graph.input, *proto.graph.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    for tensor in proto.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            value = onnx.numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
    return proto
