"""Measures small models of every kind in each opset, as they are and optimized."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from xbuilder.errors import XoptimError
from xbuilder.operators.opsets import ir_version_for, newest_opset
from xoptim import optimize
from xoptim.trust.latency import compare_sessions, fast_session

#: sets that are compared with the model itself
SETS = ("default", "default+onnxruntime")
#: opsets, axes of reductions are inputs in all of them
OPSETS = range(18, newest_opset() + 1)
#: name -> inputs with their shapes, weights with theirs, constants, nodes that give y
MODELS: dict[str, tuple[dict[str, str], dict[str, str], str, str]] = {
    "encoder": (
        {"x": "1,64,128"},
        {"wq": "128,128", "wk": "128,128", "wv": "128,128", "wo": "128,128", "bo": "128",
         "scale": "128", "bias": "128", "w1": "128,512", "b1": "512", "w2": "512,128"},
        "int64[4] heads = {0, 0, 4, 32}, int64[3] flat = {0, 0, 128}, float s = {0.1767767}, "
        "float half = {0.5}, float one = {1}, float root = {1.41421356}",
        """q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)
        q4 = Reshape(q, heads) k4 = Reshape(k, heads) v4 = Reshape(v, heads)
        qt = Transpose<perm = [0, 2, 1, 3]>(q4) kt = Transpose<perm = [0, 2, 3, 1]>(k4)
        vt = Transpose<perm = [0, 2, 1, 3]>(v4) m = MatMul(qt, kt) z = Mul(m, s)
        p = Softmax<axis = -1>(z) o = MatMul(p, vt) ot = Transpose<perm = [0, 2, 1, 3]>(o)
        of = Reshape(ot, flat) oo = MatMul(of, wo) ob = Add(oo, bo) r = Add(ob, x)
        n = LayerNormalization(r, scale, bias) h = MatMul(n, w1) hb = Add(h, b1)
        d = Div(hb, root) e = Erf(d) e1 = Add(e, one) g = Mul(hb, e1) g2 = Mul(g, half)
        f = MatMul(g2, w2) y = Add(f, r)""",
    ),
    "log_softmax": (
        {"x": "32,1000"}, {"b": "1000"}, "float one = {1}",
        "a = Add(x, b) p = Softmax<axis = -1>(a) l = Log(p) y = Mul(l, one)",
    ),
    "rms_swiglu": (
        {"x": "1,64,128"},
        {"scale": "128", "wg": "128,256", "wu": "128,256", "wd": "256,128"},
        "int64[1] last = {-1}, float two = {2}, float eps = {1e-6}, float one = {1}",
        """x2 = Pow(x, two) v = ReduceMean<keepdims = 1>(x2, last) ve = Add(v, eps) r = Sqrt(ve)
        i = Div(one, r) n = Mul(x, i) ns = Mul(n, scale) g = MatMul(ns, wg) u = MatMul(ns, wu)
        gs = Sigmoid(g) a = Mul(g, gs) h = Mul(a, u) d = MatMul(h, wd) y = Add(x, d)""",
    ),
    "rotary": (
        {"x": "1,8,64,32"},
        {"cos": "1,1,64,32", "sin": "1,1,64,32"},
        "int64[1] zero = {0}, int64[1] mid = {16}, int64[1] end = {32}, int64[1] last = {3}",
        """a = Slice(x, zero, mid, last) b = Slice(x, mid, end, last) n = Neg(b)
        t = Concat<axis = 3>(n, a) c = Mul(x, cos) s = Mul(t, sin) y = Add(c, s)""",
    ),
    "image": (
        {"x": "1,3,32,32"},
        {"w": "16,3,3,3", "scale": "16", "bias": "16", "mean": "16", "wd": "16,1,3,3",
         "wp": "32,16,1,1"},
        "float three = {3}, float low = {0}, float high = {6}, float six = {6}, "
        "int64[2] space = {2, 3}, float[16] var = {" + ", ".join(["1"] * 16) + "}",
        """c = Conv<pads = [1, 1, 1, 1]>(x, w) b = BatchNormalization(c, scale, bias, mean, var)
        p = Add(b, three) q = Clip(p, low, high) m = Mul(b, q) h = Div(m, six)
        d = Conv<pads = [1, 1, 1, 1], group = 16>(h, wd) r = Relu(d) e = Conv(r, wp)
        y = ReduceMean<keepdims = 1>(e, space)""",
    ),
    "quantized": (
        {"x": "64,128"}, {"w": "128,256", "b": "256"},
        "float s = {0.05}, uint8 z = {128}, float sw = {0.02}, int8 zw = {0}",
        """q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        qw = QuantizeLinear(w, sw, zw) dw = DequantizeLinear(qw, sw, zw)
        m = MatMul(d, dw) a = Add(m, b) y = Relu(a)""",
    ),
    "normalized": (
        {"x": "2,16,24,24"}, {"scale": "16,1,1", "bias": "16,1,1"},
        "int64[3] groups = {0, 4, -1}, int64[4] back = {2, 16, 24, 24}, float[4] one = {1, 1, 1, 1}, "
        "float[4] zero = {0, 0, 0, 0}",
        """g = Reshape(x, groups) n = InstanceNormalization(g, one, zero) r = Reshape(n, back)
        m = Mul(r, scale) a = Add(m, bias) s = Sigmoid(a) y = Mul(a, s)""",
    ),
    "shapes": (
        {"x": "4,32,64"}, {},
        "int64 first = {0}, int64 second = {1}, int64[1] axis = {0}, int64[1] rest = {-1}",
        """shape = Shape(x) a = Gather(shape, first) b = Gather(shape, second) p = Mul(a, b)
        pu = Unsqueeze(p, axis) t = Concat<axis = 0>(pu, rest) f = Reshape(x, t)
        e = Elu(f) y = Transpose<perm = [1, 0]>(e)""",
    ),
}  # fmt: skip


def model_of(name: str, opset: int) -> onnx.ModelProto:
    """A model of the sample in an opset.

    :param name: a key of :data:`MODELS`
    :param opset: the opset
    """
    inputs, weights, constants, nodes = MODELS[name]
    declared = ", ".join(f"float[{shape}] {x}" for x, shape in inputs.items())
    head = f'<ir_version: {ir_version_for(opset)}, opset_import: ["" : {opset}]>'
    model = onnx.parser.parse_model(
        f"{head} {name} ({declared}) => (float y) <{constants}> {{ {nodes} }}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    generator = np.random.default_rng(0)
    for weight, shape in weights.items():
        values = generator.standard_normal(sizes_of(shape)).astype(np.float32) / 8
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, weight))
    return model


def sizes_of(text: str) -> tuple[int, ...]:
    """A shape out of its text."""
    return tuple(map(int, text.split(",")))


def measured_opsets(
    opsets: Iterable[int] = OPSETS, blocks: int = 15, seconds: float = 0.03
) -> Iterator[dict[str, Any]]:
    """Measures each model in each opset with each set: CPU time over that of the model, one thread,
    both with the optimizations of onnxruntime; results are compared first.

    :param opsets: the opsets
    :param blocks: blocks of runs in turns
    :param seconds: time of a block
    :return: rows
    """
    generator = np.random.default_rng(0)
    for name, (inputs, *_) in MODELS.items():
        feeds = {
            x: generator.standard_normal(sizes_of(shape)).astype(np.float32)
            for x, shape in inputs.items()
        }
        for opset in opsets:
            model = model_of(name, opset)
            row: dict[str, Any] = {"model": name, "opset": opset, "microseconds": ""}
            try:
                first = fast_session(model.SerializeToString(), 1)
            except Exception as e:  # the errors of onnxruntime have no common class
                print(f"{name}, opset {opset}: {e}"[:200], file=sys.stderr)
                continue
            for patterns in SETS:
                row[patterns] = _ratio(row, model, first, feeds, patterns, blocks, seconds)
            print(", ".join(f"{k} {v}" for k, v in row.items()), flush=True)
            yield row


def _ratio(
    row: dict[str, Any],
    model: onnx.ModelProto,
    first: onnxruntime.InferenceSession,
    feeds: dict[str, np.ndarray],
    patterns: str,
    blocks: int,
    seconds: float,
) -> float:
    """The ratio for a set; the time of the model itself is added to the row.

    :raises XoptimError: the results are others
    """
    optimized = optimize(model, patterns=patterns).model
    second = fast_session(optimized.SerializeToString(), 1)
    expected, got = (s.run(None, feeds)[0] for s in (first, second))
    if not np.allclose(expected, got, rtol=1e-3, atol=1e-4):
        raise XoptimError(f"{row['model']}, opset {row['opset']}, {patterns}: other results")
    found = compare_sessions(first, second, feeds, blocks, seconds)
    row["microseconds"] = round(found.before * 1e6, 1)
    return round(found.ratio, 3)
