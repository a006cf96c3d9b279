"""Recurrent operators whose batch comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as oh
import pytest
from onnx import ModelProto, TensorProto
from ut_xbuilder.backend_cases import data_sets, node_cases

from xoptim.linting.mending import mending_options
from xoptim.linting.model_check import check_model
from xoptim.testing import (
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

RNN = """g (float[b, t, 3] x, float[1, 4, 3] w, float[1, 4, 4] r) => (float[b, t, 1, 4] y)
{ y = RNN<hidden_size = 4, layout = 1>(x, w, r) }"""
GRU = """g (float[b, t, 3] x, float[1, 12, 3] w, float[1, 12, 4] r, float[b, 1, 4] h)
=> (float[b, 1, 4] y) { , y = GRU<hidden_size = 4, layout = 1>(x, w, r, , , h) }"""
LSTM = """g (float[b, t, 3] x, float[2, 16, 3] w, float[2, 16, 4] r, float[b, 2, 4] h,
float[b, 2, 4] c) => (float[b, t, 2, 4] y, float[b, 2, 4] z, float[b, 2, 4] k)
{ y, z, k = LSTM<hidden_size = 4, layout = 1, direction = "bidirectional">(x, w, r, , , h, c) }"""
#: name -> (before, after); neither onnxruntime nor the reference of onnx runs the first ones
MODELS = {
    "BatchwiseRecurrent": {
        "one result": (
            RNN,
            """g (float[b, t, 3] x, float[1, 4, 3] w, float[1, 4, 4] r) => (float[b, t, 1, 4] y) {
                s = Transpose<perm = [1, 0, 2]>(x) m = RNN<hidden_size = 4>(s, w, r)
                y = Transpose<perm = [2, 0, 1, 3]>(m) }""",
        ),
        "the second result": (
            GRU,
            """g (float[b, t, 3] x, float[1, 12, 3] w, float[1, 12, 4] r, float[b, 1, 4] h)
            => (float[b, 1, 4] y) {
                s = Transpose<perm = [1, 0, 2]>(x) i = Transpose<perm = [1, 0, 2]>(h)
                , m = GRU<hidden_size = 4>(s, w, r, , , i) y = Transpose<perm = [1, 0, 2]>(m) }""",
        ),
        "all results": (
            LSTM,
            """g (float[b, t, 3] x, float[2, 16, 3] w, float[2, 16, 4] r, float[b, 2, 4] h,
            float[b, 2, 4] c) => (float[b, t, 2, 4] y, float[b, 2, 4] z, float[b, 2, 4] k) {
                s = Transpose<perm = [1, 0, 2]>(x) i = Transpose<perm = [1, 0, 2]>(h)
                j = Transpose<perm = [1, 0, 2]>(c)
                a, d, e = LSTM<hidden_size = 4, direction = "bidirectional">(s, w, r, , , i, j)
                y = Transpose<perm = [2, 0, 1, 3]>(a) z = Transpose<perm = [1, 0, 2]>(d)
                k = Transpose<perm = [1, 0, 2]>(e) }""",
        ),
    }
}
REFUSED = {
    "BatchwiseRecurrent": {
        "the usual layout": (RNN.replace("1, 4] y", "4] y").replace(", layout = 1", ""), "second"),
        "no kernel in double": (RNN.replace("float[", "double["), "no kernel for this type"),
        "a kernel that refuses doubles": (GRU.replace("float[", "double["), "refuses doubles"),
        "layout 0": (GRU.replace("layout = 1", "layout = 0"), "the batch is the second dimension"),
    }
}
test_rewrites = rewrite_tests(MODELS, opset=18, runtime=False, reference=False)
test_refuses = refusal_tests(REFUSED, opset=18)


@pytest.mark.parametrize("name", ["gru", "lstm", "simple_rnn"])
def test_the_values_of_onnx(name: str) -> None:
    case = node_cases()[f"test_{name}_batchwise"]
    found, _, _ = optimize_with(case.model, "BatchwiseRecurrent")
    for feeds, expected in data_sets(case):
        got = run_onnxruntime(found, feeds)
        for output, value in zip(case.model.graph.output, got, strict=True):
            np.testing.assert_allclose(value, expected[output.name], rtol=1e-5)


def batch_second(op_type: str, directions: int, gates: int, layout: int) -> ModelProto:
    """A model with all inputs and results, in one layout."""
    names = ["x", "w", "r", "b", "n", "h", *(["c"] if op_type == "LSTM" else [])]
    outputs = ["y", "z", "k"][: 3 if op_type == "LSTM" else 2]
    direction = "bidirectional" if directions == 2 else "reverse"
    options: dict[str, Any] = {"layout": 1} if layout else {}
    node = oh.make_node(op_type, names, outputs, hidden_size=4, direction=direction, **options)
    kinds = {"n": TensorProto.INT32}
    infos = [
        [oh.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), None) for n in group]
        for group in (names, outputs)
    ]
    graph = oh.make_graph([node], "g", *infos)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("op_type", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_as_the_usual_layout(op_type: str, gates: int, directions: int, batch: int) -> None:
    """Lengths of sequences, biases, both directions; onnxruntime dies without a sequence."""
    rng, size = np.random.default_rng(0), gates * 4
    feeds: dict[str, np.ndarray] = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in {
            "x": (batch, 5, 3),
            "w": (directions, size, 3),
            "r": (directions, size, 4),
            "b": (directions, 2 * size),
            "h": (batch, directions, 4),
            "c": (batch, directions, 4),
        }.items()
    }
    feeds["n"] = np.array([5, 2, 1][:batch], dtype=np.int32)
    if op_type != "LSTM":
        del feeds["c"]
    before = batch_second(op_type, directions, gates, 1)
    found, _, _ = optimize_with(before, "BatchwiseRecurrent")
    swapped = {n: v.swapaxes(0, 1) if n in "xhc" else v for n, v in feeds.items()}
    expected = run_onnxruntime(batch_second(op_type, directions, gates, 0), swapped)
    got = run_onnxruntime(found, feeds)
    perms = [(2, 0, 1, 3), (1, 0, 2), (1, 0, 2)]
    for value, other, perm in zip(got, expected, perms, strict=False):
        np.testing.assert_allclose(value, other.transpose(perm), rtol=1e-6)


@pytest.mark.parametrize("processor", ["CPU", "CUDA"])
def test_it_is_reported_and_mended(processor: str) -> None:
    report = check_model(model_from_text(LSTM, 18), processor)
    (finding,) = (f for f in report.findings if f.code == "X006")
    assert "refuses layout=1" in finding.message and report.fixable == ("X006",)
    options = mending_options(report.fixable, processor)
    found, _, _ = optimize_with(model_from_text(LSTM, 18), options.patterns)
    assert check_model(found, processor).ok
