"""Models are written whole, or not at all."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array
from ut_xoptim.cli.command_line import (
    TRANSPOSES,
    files,
    ops,
    parse,
    run,
)

from xbuilder import GraphBuilder
from xoptim.analysis.weights import weights

MODEL = TRANSPOSES


def test_failure_while_writing_leaves_nothing(model, tmp_path, monkeypatch):
    import xoptim.tasks.saving as module

    def fail(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(module, "save_model", fail)
    stats = tmp_path / "stats.csv"
    result = run("optimize", model, "-o", tmp_path / "out.onnx", "--stats", stats, code=1)
    assert "No space left" in result.stderr
    assert files(tmp_path) == {"model.onnx"}


@pytest.fixture
def scaled_model(tmp_path, monkeypatch):
    """A weight of another file, multiplied by 2, computed when it is written; its last element, if
    it is given, overflows."""
    for size in ("DEFERRED_BYTES", "_LATE_BYTES"):
        monkeypatch.setattr(weights, size, 1000)
    value = np.random.default_rng(0).random((400, 64), dtype=np.float32)

    def saved(last):
        model = parse("""<ir_version: 8, opset_import: ["" : 18]>
            g (float[a, 400] x) => (float[a, 64] y) <float k = {2}>
            { z = MatMul(x, W) y = Mul(z, k) }""")
        value[-1, -1] = last
        model.graph.initializer.append(from_array(value, "W"))
        onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="w.data")
        return tmp_path / "model.onnx"

    return saved


def optimizations(monkeypatch):
    """The option `late_checks` of each optimization from now on."""
    asked = []
    optimize = GraphBuilder.to_onnx

    def recorded(self, *args, **kwargs):
        asked.append(self.optimization_options.late_checks)
        return optimize(self, *args, **kwargs)

    monkeypatch.setattr(GraphBuilder, "to_onnx", recorded)
    return asked


def test_a_weight_is_checked_when_it_is_written(scaled_model, tmp_path, monkeypatch):
    model, asked = scaled_model(0.5), optimizations(monkeypatch)
    run("optimize", model, tmp_path / "out.onnx")
    assert asked == [True] and ops(tmp_path / "out.onnx") == ["MatMul"]


@pytest.mark.parametrize("last", [3e38, np.inf])
def test_a_weight_that_overflows_is_not_replaced(scaled_model, tmp_path, monkeypatch, last):
    """The model is optimized again, the first one leaves nothing behind."""
    model, asked = scaled_model(last), optimizations(monkeypatch)
    stats = tmp_path / "stats.csv"
    result = run("optimize", model, tmp_path / "out.onnx", "--stats", stats, "--verify")
    assert asked == [True, False] and ops(tmp_path / "out.onnx") == ["MatMul", "Mul"]
    kept = {"model.onnx", "w.data", "out.onnx", "stats.csv"}
    assert files(tmp_path) - {"out.onnx.data"} == kept
    assert result.output.count("MatMul") <= 1 and "late" not in result.output
    onnx.checker.check_model(str(tmp_path / "out.onnx"))


def test_a_dry_run_is_what_a_run_does(scaled_model, monkeypatch):
    """No weight is written, they are checked when they are multiplied."""
    model, asked = scaled_model(3e38), optimizations(monkeypatch)
    run("optimize", model, "--dry-run")
    assert asked == [False]
