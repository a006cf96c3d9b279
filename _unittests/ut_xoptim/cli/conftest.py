"""Fixtures shared by the tests of the command."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from ut_xoptim.cli.command_line import TRANSPOSES


@pytest.fixture
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The file of a model, written in text in `MODEL` of the test module."""
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(request.module.MODEL).SerializeToString())
    return path


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    """The files of two models, one operator of which differs."""
    paths = []
    for name, text in (("one", TRANSPOSES), ("two", TRANSPOSES.replace("Neg(c)", "Abs(c)"))):
        paths.append(tmp_path / f"{name}.onnx")
        onnx.save(onnx.parser.parse_model(text), paths[-1])
    return paths
