"""Which of onnxruntime's optimizers changes the results."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from xoptim.trust import runtime_bisection
from xoptim.trust.runtime_bisection import (
    RuntimeOptimizationError,
    bisect_runtime,
    runtime_optimizers,
)

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) { t = Identity(x)  u = Neg(t)  y = Exp(u) }"""


@pytest.fixture
def path(tmp_path):
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_the_optimizers_that_change_a_model(path):
    assert "Level1_RuleBasedTransformer" in runtime_optimizers(path)
    text = MODEL.replace("t = Identity(x)  u = Neg(t)", "u = Neg(x)")
    onnx.save(onnx.parser.parse_model(text), path)
    assert runtime_optimizers(path) == ()


def test_same_results(path):
    done = bisect_runtime(path)
    assert done.wrong == () and done.report.ok and done.runs == 1
    assert [row.output for row in done.report.rows] == ["y"]


@pytest.mark.parametrize("wrong", [("B",), ("A", "C"), ("A", "B", "C", "D")])
def test_a_smallest_set_is_found(path, monkeypatch, wrong):
    def run(search, disabled):
        enabled = set() if disabled is None else {"A", "B", "C", "D"} - set(disabled)
        return ["y"], [np.float32([2 if enabled.issuperset(wrong) else 1])]

    monkeypatch.setattr(runtime_bisection, "runtime_optimizers", lambda model: tuple("ABCD"))
    monkeypatch.setattr(runtime_bisection._Search, "_run", run)
    done = bisect_runtime(path)
    assert done.wrong == wrong and done.applied == tuple("ABCD") and done.runs == 5
    assert not done.report.ok


def test_a_model_onnxruntime_refuses(path):
    path.write_bytes(b"nothing")
    with pytest.raises(RuntimeOptimizationError, match=r"model\.onnx"):
        runtime_optimizers(path)
