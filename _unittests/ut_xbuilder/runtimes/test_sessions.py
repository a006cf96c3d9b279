"""Sessions of onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from xbuilder.runtimes.sessions import plain_session

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
