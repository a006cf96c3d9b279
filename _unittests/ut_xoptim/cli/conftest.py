"""Fixtures shared by the tests of the command."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest


@pytest.fixture
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The file of a model, written in text in `MODEL` of the test module."""
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(request.module.MODEL).SerializeToString())
    return path
