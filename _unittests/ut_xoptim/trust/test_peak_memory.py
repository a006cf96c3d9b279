"""The memory of a model in a process of its own."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from xoptim.trust.peak_memory import peak_memory
from xoptim.trust.sessions.session_process import SessionError, SessionProcess

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n] x) => (float[n] y) { a = Exp(x) b = Cos(x) y = Add(a, b) }"""


@pytest.mark.parametrize("is_file", [False, True])
def test_results_are_counted(is_file, tmp_path):
    model = onnx.parser.parse_model(MODEL)
    onnx.save(model, tmp_path / "m.onnx")
    source = str(tmp_path / "m.onnx") if is_file else model.SerializeToString()
    x = np.zeros(2**22, np.float32)  # 16 MB
    peak = peak_memory(source, {"x": x})
    assert peak is not None and 2 * x.nbytes < peak < 8 * x.nbytes


def test_unknown_elsewhere(monkeypatch):
    session = SessionProcess(onnx.parser.parse_model(MODEL).SerializeToString())
    try:
        assert session.peak_memory() > 2**20
        monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: "nothing")
        assert session.peak_memory() is None
        monkeypatch.undo()
    finally:
        session.close()
    assert session.peak_memory() is None


def test_refused_inputs():
    with pytest.raises(SessionError, match="x"):
        peak_memory(onnx.parser.parse_model(MODEL).SerializeToString(), {})
