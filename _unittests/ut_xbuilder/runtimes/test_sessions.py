"""Sessions of onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import pytest

from xbuilder.errors import OptionError
from xbuilder.runtimes.sessions import plain_session, providers_of

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (TYPE[n] x) => (TYPE[n] y) { a = Identity(x) y = Neg(a) }"""


@pytest.mark.parametrize("is_path", [False, True])
def test_results(tmp_path: Path, is_path: bool) -> None:
    content = onnx.parser.parse_model(MODEL.replace("TYPE", "float")).SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    session = plain_session(str(path) if is_path else content)
    (found,) = session.run(None, {"x": np.array([1, -2], np.float32)})
    assert found.tolist() == [-1, 2]


def test_no_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    """The exception says it all, nothing is printed."""
    content = onnx.parser.parse_model(MODEL.replace("TYPE", "bfloat16")).SerializeToString()
    with pytest.raises(Exception, match="Neg"):
        plain_session(content)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("processor", ["CUDA", "CPU,CUDA"])
def test_providers_of_a_gpu(monkeypatch: pytest.MonkeyPatch, processor: str) -> None:
    """The CPU runs what CUDA has no kernel for."""
    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: both)
    assert providers_of(processor) == both
    assert providers_of("CPU") == both[1:]


def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(OptionError, match="has CPUExecutionProvider. Install onnxruntime-gpu"):
        providers_of("CUDA")
