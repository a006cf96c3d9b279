"""The measures that are made and those that are not. No test looks at a time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import onnx
import pytest

from xbuilder.errors import OptionError
from xbuilder.runtimes import processors
from xbuilder.runtimes.processors import processor_features
from xoptim.catalogue import speed_gated as gated
from xoptim.catalogue.rewrite_function import rewrite
from xoptim.trust import tuning
from xoptim.trust.latency import Latency
from xoptim.trust.tuning import Measure, Tuning, measure_rows, summary, tune
from xoptim.trust.verification import VerificationError

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[a, 4] x, float[a, 4] z) => (float[a, 4] y) <float[4] w = {1, 2, 3, 4}> {
    s = Add (x, z) n = LayerNormalization (s, w, w) e = Sigmoid (n) y = Mul (n, e)
}"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
    return path


@pytest.fixture
def compared(monkeypatch) -> list[tuple[set[str], set[str]]]:
    """Operators of the two models, each time they are compared; the second one is said to be
    twice as fast."""
    seen = []

    def operators(path: Path, threads: int, processor: str) -> set[str]:
        assert processor == "CPU"
        return {n.op_type for n in onnx.load(path).graph.node}

    def compare(first: Any, second: Any, feeds: Any, blocks: int, seconds: float, clock: Any):
        assert set(feeds) == {"x", "z"} and clock is time.process_time
        seen.append((first, second))
        return Latency(3e-6, 0.5)

    monkeypatch.setattr(tuning, "fast_session", operators)
    monkeypatch.setattr(tuning, "compare_sessions", compare)
    return seen


def test_with_and_without(model, compared):
    steps = []
    rows = tune([model], Tuning("onnxruntime"), lambda what, share: steps.append((what, share)))
    found = {(r.pattern, r.threads): r.rewrites for r in rows}
    assert found == {
        ("QuickGelu", 1): 1,
        ("QuickGelu", 2): 1,
        ("SkipLayerNormalization(on_cpu=True)", 1): 1,
        ("SkipLayerNormalization(on_cpu=True)", 2): 1,
    }
    assert all(r.ok and r.ratio == 0.5 and r.model == "model.onnx" for r in rows)
    added = [b - a for a, b in compared]
    assert {"QuickGelu"} in added and {"SkipLayerNormalization"} in added and len(added) == 4
    shares = [share for _, share in steps]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] < 1
    assert any(what == "QuickGelu on model.onnx" for what, _ in steps)


def test_a_pattern_that_is_not_in_the_base(model, compared):
    asked = Tuning("SkipLayerNormalization(on_cpu=True)", "none", (3,))
    (row,) = tune([model], asked)
    assert (row.pattern, row.threads) == ("SkipLayerNormalization(on_cpu=True)", 3)
    ((before, after),) = compared
    assert "LayerNormalization" in before and "SkipLayerNormalization" in after


def test_a_case_measures_left_open(model, compared, monkeypatch):
    """It is measured again: the models differ by it."""
    monkeypatch.setattr(gated, "find_speed_gate", lambda pattern, processor, target: None)
    (row,) = tune([model], Tuning("SkipLayerNormalization(on_cpu=True)", threads=(1,)))
    assert row.pattern == "SkipLayerNormalization(on_cpu=True)" and row.rewrites == 1
    ((before, after),) = compared
    assert "SkipLayerNormalization" not in before and "SkipLayerNormalization" in after


def test_a_pattern_that_applies_nowhere(model, compared):
    assert tune([model], Tuning("FusedConv+TransposeTranspose")) == []
    assert compared == []


def test_wrong_results_are_not_measured(model, compared):
    @rewrite(root="Sigmoid", name="WrongSigmoid")
    def wrong(g, node):
        """Sigmoid(x) -> Tanh(x)."""
        return g.op.Tanh(node.input[0])

    rows = tune([model], Tuning([wrong], "default", (1,)))
    assert [r.pattern for r in rows] == ["WrongSigmoid"]
    assert not rows[0].ok and "'y'" in rows[0].reason and compared == []
    assert summary(rows) == []


def test_a_model_that_does_not_run(model, compared, tmp_path):
    """It is named before anything is measured."""
    path = tmp_path / "wrong.onnx"
    text = MODEL.replace("float[a, 4] z", "float[3, 5] z")
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    with pytest.raises(VerificationError, match="wrong.onnx' cannot be measured"):
        tune([model, path])
    assert compared == []


def test_files_of_the_same_name(model, compared):
    """Their paths tell them apart."""
    other = model.parent / "other" / model.name
    other.parent.mkdir()
    other.write_bytes(model.read_bytes())
    rows = tune([model, other], Tuning("QuickGelu", threads=(1,)))
    assert [r.model for r in rows] == [str(model), str(other)]


def test_real_sessions(model):
    rows = tune([model], Tuning("QuickGelu", threads=(1,), blocks=1, seconds=0.0))
    assert [r.pattern for r in rows] == ["QuickGelu"]
    assert rows[0].ratio > 0 and rows[0].microseconds > 0


def test_summary():
    rows = [
        Measure("P", "a", 1, 1, 5.0, 0.5),
        Measure("P", "b", 1, 1, 5.0, 2.0),
        Measure("Q", "a", 2, 1, 5.0, 3.0),
        Measure("R", "a", 2, 1, reason="wrong"),
    ]
    means = {g.pattern: (g.ratio, g.kept) for g in summary(rows)}
    assert means == {"P": (1.0, True), "Q": (pytest.approx(3.0), False)}
    described = measure_rows(rows)
    assert described[0]["ratio"] == 0.5 and described[3]["reason"] == "wrong"
    assert all(r["features"] == processor_features() and r["onnxruntime"] for r in described)


def test_a_processor_that_is_missing(model):
    with pytest.raises(OptionError, match="'CUDA' cannot be measured.*onnxruntime-gpu"):
        tune([model], Tuning("onnxruntime", processor="CUDA"))


def test_on_cuda(model, monkeypatch):
    """Models are optimized for it, run on it, and timed by a clock; CPU gives what is expected."""
    sessions, clocks = [], []

    def session(path: Path, threads: int, processor: str) -> str:
        sessions.append(({n.op_type for n in onnx.load(path).graph.node}, processor))
        return processor

    def compare(first: Any, second: Any, feeds: Any, blocks: int, seconds: float, clock: Any):
        clocks.append(clock)
        return Latency(3e-6, 0.5)

    monkeypatch.setattr(tuning, "providers_of", lambda processor: ["CPUExecutionProvider"])
    monkeypatch.setattr(tuning, "fast_session", session)
    monkeypatch.setattr(tuning, "compare_sessions", compare)
    monkeypatch.setattr(processors, "gpu_features", lambda: "sm_90 NVIDIA H100")
    rows = tune([model], Tuning("SkipLayerNormalization", threads=(1,), processor="CUDA"))
    assert [r.ok for r in rows] == [True] * len(rows) and rows
    assert {processor for _, processor in sessions} == {"CUDA"}
    assert any("SkipLayerNormalization" in operators for operators, _ in sessions)
    assert set(clocks) == {time.perf_counter}
    (gate, *_) = summary(rows, "CUDA")
    assert (gate.processor, gate.features) == ("CUDA", "sm_90 NVIDIA H100")
    assert measure_rows(rows, "CUDA")[0]["features"] == "sm_90 NVIDIA H100"
